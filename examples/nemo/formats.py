"""The three forms that a program may have.  SANDBOX_URL: where the server is."""
import asyncio
import os

from vial.nemo import get_sandbox


async def main():
    sandbox = get_sandbox("local", uri=os.environ.get("SANDBOX_URL"))
    for code in (
        "import numpy as np\nprint(np.array([1, 2, 3]))",
        "{'generated_code': 'print(\"Hello from dict format\")'}",
        "```python\nprint('Hello from markdown')\n```",
    ):
        result = await sandbox.execute_code(code, timeout=30)
        print(result["process_status"], result["stdout"].strip())


asyncio.run(main())
# prints:
# completed [1 2 3]
# completed Hello from dict format
# completed Hello from markdown
