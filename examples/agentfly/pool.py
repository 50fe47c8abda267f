"""The factory gives an environment that is started and reset."""
import asyncio

from vial.agentfly import PythonSandboxEnv


async def main():
    env = await PythonSandboxEnv.acquire()
    result = await env.step("print('Ready to use!')")
    print(result, end="")
    await env.aclose()


asyncio.run(main())
# prints:
# Ready to use!
