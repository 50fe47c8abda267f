"""toolweaver - ToolWeaver's SandboxEnvironment and its executor of tool-calling programs.

    from vial.toolweaver import SandboxEnvironment   # was: from orchestrator import ...
"""
from .environment import SandboxEnvironment, create_sandbox
from .executor import (
    ProgrammaticToolExecutor,
    SecurityError,
    ToolCatalog,
    ToolDefinition,
    ToolParameter,
    execute_programmatic_code,
)
from .models import ExecutionResult, ResourceLimits, SandboxError, SandboxSecurityError
from .validation import validate_code

__all__ = ["ExecutionResult", "ProgrammaticToolExecutor", "ResourceLimits", "SandboxEnvironment",
           "SandboxError", "SandboxSecurityError", "SecurityError", "ToolCatalog",
           "ToolDefinition", "ToolParameter", "create_sandbox", "execute_programmatic_code",
           "validate_code"]
