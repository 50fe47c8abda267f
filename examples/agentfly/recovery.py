"""A step that does not end raises, and the environment is there for the next one."""
import asyncio

from vial.agentfly import PythonSandboxEnv


async def main():
    env = await PythonSandboxEnv.acquire()
    try:
        result = await env.step("while True: pass")
    except Exception:
        result = await env.step("print('Recovered!')")
    print(result, end="")
    await env.aclose()


asyncio.run(main())
# prints:
# Recovered!
