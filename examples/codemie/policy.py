"""What the policy refuses, before anything runs."""
from vial.codemie import CodeExecutorTool

tool = CodeExecutorTool(file_repository=None, user_id="user123")
try:
    tool.execute(code="import os\nos.system('ls')")
except Exception as why:
    print(type(why).__name__)
    print(str(why).splitlines()[0])
# prints:
# ToolException
# Code failed security validation (2 violation(s) detected):
