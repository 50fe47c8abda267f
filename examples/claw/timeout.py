"""Example 4: time runs out."""
from vial.claw import CodeSandbox, ResourceLimits

limits = ResourceLimits(timeout_seconds=2)
code = """
import time
time.sleep(10)
"""

result = CodeSandbox().execute(code, "python", limits=limits)
assert result.timeout is True
assert result.exit_code == 124
print(result.error_message)
# prints:
# Execution timed out after 2s
