"""Code that goes on where the code before it ended: a session_id."""
import asyncio
import os

from vial.nemo import CodeExecutionToolConfig, code_execution_tool


async def main():
    tool = code_execution_tool(CodeExecutionToolConfig(
        uri=os.environ.get("SANDBOX_URL", "http://127.0.0.1:6000"), timeout=30.0))
    await tool("total = 40", session_id="sums")
    print((await tool("print(total + 2)", session_id="sums"))["stdout"].strip())


asyncio.run(main())
# prints:
# 42
