"""Only the modules of a list."""
import asyncio

from vial.toolweaver import SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment(
        allowed_imports=["json", "math", "datetime"]
    )
    code1 = """
import json
return json.dumps({"key": "value"})
"""
    print(await sandbox.execute_code(code1))

    code2 = """
import os  # Not in allowed_imports
os.system("rm -rf /")
"""
    try:
        await sandbox.execute_code(code2)
    except ImportError as why:
        print(f"ImportError: {why}")
    await sandbox.aclose()


asyncio.run(main())
# prints:
# {"key": "value"}
# ImportError: Import 'os' not allowed
