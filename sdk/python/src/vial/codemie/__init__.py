"""codemie - codemie's CodeExecutorTool, without Kubernetes.

    from vial.codemie import CodeExecutorTool, FileObject
    # was: codemie_tools.data_management.code_executor, codemie_tools.base.file_object
"""
from .config import CodeExecutorConfig, ExecutionMode
from .exceptions import ToolException
from .files import DirectoryFileRepository, FileObject, FileRepository
from .manager import SandboxSessionManager
from .policy import (
    RestrictedModule,
    SecurityIssueSeverity,
    SecurityPattern,
    SecurityPolicy,
    get_codemie_security_policy,
    get_restricted_module_names,
)
from .tool import CodeExecutorTool

__all__ = ["CodeExecutorConfig", "CodeExecutorTool", "DirectoryFileRepository", "ExecutionMode",
           "FileObject", "FileRepository", "RestrictedModule", "SandboxSessionManager",
           "SecurityIssueSeverity", "SecurityPattern", "SecurityPolicy", "ToolException",
           "get_codemie_security_policy", "get_restricted_module_names"]
