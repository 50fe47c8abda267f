"""claw - PC-Agent-Claw's `autonomous.code_sandbox`, without Docker.

    from vial.claw import CodeSandbox   # was: from autonomous.code_sandbox import CodeSandbox
"""
from .debugger import AutoDebuggerIntegration
from .languages import LANGUAGE_CONFIGS
from .models import ExecutionResult, ResourceLimits
from .sandbox import CodeSandbox

__all__ = ["LANGUAGE_CONFIGS", "AutoDebuggerIntegration", "CodeSandbox", "ExecutionResult",
           "ResourceLimits"]
