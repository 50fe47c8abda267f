"""Example 1: data processing."""
import json

from vial.claw import CodeSandbox

code = """
import json
data = {"items": [1, 2, 3, 4, 5]}
result = {"sum": sum(data["items"])}
print(json.dumps(result))
"""

sandbox = CodeSandbox()
result = sandbox.execute(code, "python")
output = json.loads(result.stdout)
print(output["sum"])
# prints:
# 15
