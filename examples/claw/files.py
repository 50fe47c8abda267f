"""Example 2: several files."""
from vial.claw import CodeSandbox

files = {
    "config.json": '{"setting": "value"}',
    "utils.py": "def helper(): return 42",
}

code = """
import json
from utils import helper
with open('/sandbox/config.json') as f:
    config = json.load(f)
print(f"Config: {config}, Helper: {helper()}")
"""

result = CodeSandbox().execute(code, "python", files=files)
print(result.stdout, end="")
# prints:
# Config: {'setting': 'value'}, Helper: 42
