"""Variables stay between steps, until reset()."""
import asyncio

from vial.agentfly import PythonSandboxEnv


async def main():
    env = await PythonSandboxEnv.acquire()
    await env.step("x = [1, 2, 3]")
    await env.step("x.append(4)")
    print(await env.step("print(x)"), end="")

    await env.reset()
    print(await env.step("print(x)"), end="")
    await env.aclose()


asyncio.run(main())
# prints:
# [1, 2, 3, 4]
# NameError: name 'x' is not defined
