"""config - the tool's settings, from CODE_EXECUTOR_* variables.

Some of them are about Kubernetes; they are read, checked and kept, and mean nothing here.
"""
from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any, Callable, Dict, Optional

from .policy import SecurityIssueSeverity, parse_threshold

PREFIX = "CODE_EXECUTOR_"
TRUE = ("true", "1", "yes")
POSITIVE = ("execution_timeout", "session_timeout", "default_timeout", "max_pod_pool_size",
            "run_as_user", "run_as_group", "fs_group")

DOCKER_IMAGE = "epamairun/codemie-python:2.2.9"


class ExecutionMode(str, Enum):
    """Accepted for the sake of old settings: everything runs in a sandbox."""

    SANDBOX = "sandbox"
    LOCAL = "local"


@dataclass
class CodeExecutorConfig:
    """Settings; wrong ones raise ValueError."""

    workdir_base: str = "/home/codemie"
    namespace: str = "codemie-runtime"
    docker_image: str = DOCKER_IMAGE
    execution_timeout: float = 30.0
    session_timeout: float = 300.0
    default_timeout: float = 30.0
    memory_limit: str = "128Mi"
    memory_request: str = "128Mi"
    cpu_limit: str = "1"
    cpu_request: str = "500m"
    max_pod_pool_size: int = 5
    pod_name_prefix: str = "codemie-executor-"
    run_as_user: int = 1001
    run_as_group: int = 1001
    fs_group: int = 1001
    verbose: bool = True
    skip_environment_setup: bool = False
    security_threshold: Optional[SecurityIssueSeverity] = SecurityIssueSeverity.LOW
    yaml_policy_path: str = ""
    execution_mode: ExecutionMode = ExecutionMode.SANDBOX
    sandbox_mode: str = "sandbox-shared"
    runtime_class_name: str = "gvisor"
    ephemeral_storage_limit: str = "1Gi"
    ephemeral_storage_request: str = "1Gi"
    keep_template: bool = True
    kubeconfig_path: str = ""

    def __post_init__(self) -> None:
        for item in fields(self):  # as they would be read from the environment
            if str(item.type) in ("float", "int"):
                setattr(self, item.name, _READERS[str(item.type)](getattr(self, item.name)))
        self.security_threshold = parse_threshold(self.security_threshold)
        self.execution_mode = _parse_mode(self.execution_mode)
        if self.sandbox_mode not in ("sandbox-shared", "sandbox-jobs"):
            raise ValueError("Invalid sandbox_mode: %s. Must be 'sandbox-shared' or 'sandbox-jobs'"
                             % self.sandbox_mode)
        for name in POSITIVE:
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError("%s must be a number greater than 0, not %s"
                                 % (name, getattr(self, name)))

    @classmethod
    def from_env(cls) -> CodeExecutorConfig:
        """What the environment says, else the defaults."""
        values: Dict[str, Any] = {}
        for item in fields(cls):
            text = os.environ.get(PREFIX + item.name.upper())
            if text is not None:
                values[item.name] = _READERS.get(str(item.type), str)(text)
        return cls(**values)


def _parse_bool(text: str) -> bool:
    return text.lower() in TRUE


_READERS: Dict[str, Callable[[str], Any]] = {"float": float, "int": int, "bool": _parse_bool}


def _parse_mode(mode: Any) -> ExecutionMode:
    if isinstance(mode, ExecutionMode):
        return mode
    try:
        return ExecutionMode(str(mode).lower() or "sandbox")
    except ValueError:
        raise ValueError("Invalid execution_mode: %s. Must be 'sandbox' or 'local'"
                         % mode) from None
