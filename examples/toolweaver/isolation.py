"""No files, no network; awaiting, state and logs."""
import asyncio

from vial.toolweaver import SandboxEnvironment


async def main():
    sandbox = SandboxEnvironment(filesystem_access=False)
    code = """
with open("/etc/passwd", "r") as f:
    return f.read()
"""
    try:
        await sandbox.execute_code(code)
    except PermissionError:
        print("PermissionError")

    try:
        await sandbox.execute_code("await asyncio.open_connection('192.0.2.1', 80)")
    except OSError:
        print("External calls fail")

    await sandbox.execute_code("await asyncio.sleep(0)\nkept = 1\nprint('logged')")
    print(await sandbox.execute_code("return kept"), sandbox.get_logs()["stdout"], end="")
    sandbox.reset()
    try:
        await sandbox.execute_code("return kept")
    except NameError as why:
        print(why)
    await sandbox.aclose()


asyncio.run(main())
# prints:
# PermissionError
# External calls fail
# 1 logged
# name 'kept' is not defined
