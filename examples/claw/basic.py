"""One execution, and what is known about it."""
from vial.claw import CodeSandbox

sandbox = CodeSandbox()
result = sandbox.execute("print('Hello, World!')", "python")

print(f"Success: {result.success}")
print(f"Output: {result.stdout}", end="")
print(f"In time: {result.execution_time < 30}")
# prints:
# Success: True
# Output: Hello, World!
# In time: True
