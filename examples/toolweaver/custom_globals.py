"""Data and functions for the code; the functions run here."""
import asyncio

from vial.toolweaver import SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment()
    globals_dict = {
        "data": [1, 2, 3, 4, 5],
        "multiply": lambda x, y: x * y,
    }
    code = """
# Access provided globals
total = sum(data)
doubled = multiply(total, 2)
return doubled
"""
    result = await sandbox.execute_code(code, globals_dict=globals_dict)
    print(f"Result: {result}")
    await sandbox.aclose()


asyncio.run(main())
# prints:
# Result: 30
