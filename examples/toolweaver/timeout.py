"""Time runs out, in a busy loop, too."""
import asyncio

from vial.toolweaver import ResourceLimits, SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment(
        limits=ResourceLimits(timeout_seconds=1)
    )
    code = """
while True:  # Infinite loop
    pass
"""
    try:
        await sandbox.execute_code(code)
    except TimeoutError:
        print("Code exceeded 1 second timeout")
    await sandbox.aclose()


asyncio.run(main())
# prints:
# Code exceeded 1 second timeout
