"""nemo - NeMo Agent Toolkit's code execution: its sandbox client and its tool.

    from vial.nemo import get_sandbox   # was: nat.tool.code_execution.code_sandbox
"""
from .output import format_code_output
from .sandbox import LocalSandbox, PistonSandbox, Sandbox, get_sandbox
from .tool import CodeExecutionToolConfig, code_execution_tool

__all__ = ["CodeExecutionToolConfig", "LocalSandbox", "PistonSandbox", "Sandbox",
           "code_execution_tool", "format_code_output", "get_sandbox"]
