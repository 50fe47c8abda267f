"""An environment with settings of its own: started, stepped, closed."""
import asyncio

from vial.agentfly import PythonSandboxEnv


async def main():
    env = PythonSandboxEnv(
        cpu=1,
        mem="1g",
        start_timeout=30.0,
    )
    await env.start()
    result = await env.step("import math; print(math.pi)")
    print(result, end="")
    await env.aclose()


asyncio.run(main())
# prints:
# 3.141592653589793
