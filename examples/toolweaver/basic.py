"""Code in, value out, within limits."""
import asyncio

from vial.toolweaver import ResourceLimits, SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment(
        limits=ResourceLimits(
            max_memory_mb=256,
            timeout_seconds=10,
        )
    )
    code = """
result = sum([i**2 for i in range(100)])
return result
"""
    result = await sandbox.execute_code(code)
    print(f"Result: {result}")
    await sandbox.aclose()


asyncio.run(main())
# prints:
# Result: 328350
