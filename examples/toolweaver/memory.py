"""Memory runs out, there and not here."""
import asyncio

from vial.toolweaver import ResourceLimits, SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment(
        limits=ResourceLimits(max_memory_mb=100)
    )
    code = """
# Try to allocate 500MB
big_list = [0] * (500 * 1024 * 1024 // 8)
"""
    try:
        await sandbox.execute_code(code)
    except MemoryError:
        print("Code exceeded 100MB memory limit")
    await sandbox.aclose()


asyncio.run(main())
# prints:
# Code exceeded 100MB memory limit
