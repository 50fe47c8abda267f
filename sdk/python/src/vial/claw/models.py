"""models - limits and results of a CodeSandbox."""
from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Dict, Optional

logger = logging.getLogger(__name__)

TIMEOUT_MAX_S = 30
OUTPUT = "16m"  # whoever wants less cuts it


@dataclass
class ResourceLimits:
    """What an execution may use.  More than 30 seconds are 30."""

    memory_limit: str = "512m"
    memory_swap: Optional[str] = None
    cpu_quota: int = 100000
    cpu_period: int = 100000
    cpu_shares: int = 1024
    pids_limit: int = 100
    timeout_seconds: int = 30

    def __post_init__(self) -> None:
        if self.timeout_seconds > TIMEOUT_MAX_S:
            logger.warning("Timeout %ss exceeds max %ss, using %ss", self.timeout_seconds,
                           TIMEOUT_MAX_S, TIMEOUT_MAX_S)
            self.timeout_seconds = TIMEOUT_MAX_S
        if self.memory_swap is None:
            self.memory_swap = self.memory_limit

    def to_vial(self) -> Dict[str, Any]:
        """As vial's limits.  Swap is always off there; shares weigh nothing beside a quota."""
        limits: Dict[str, Any] = {"memory": self.memory_limit, "timeout": self.timeout_seconds,
                                  "output": OUTPUT}
        if self.pids_limit > 0:  # Docker: 0 and -1 are no limit; here, the usual one
            limits["processes"] = self.pids_limit
        if self.cpu_quota > 0 and self.cpu_period > 0:  # Docker: -1 is no quota
            limits["cpus"] = "%d/%d" % (self.cpu_quota, self.cpu_period)
        return limits


@dataclass
class ExecutionResult:
    """How an execution ended."""

    success: bool
    exit_code: int
    stdout: str
    stderr: str
    execution_time: float
    timeout: bool
    error_message: Optional[str] = None
    container_id: Optional[str] = None
    language: Optional[str] = None
    resource_usage: Optional[Dict[str, Any]] = None
    output_files: Dict[str, str] = field(default_factory=dict)
    memory_used: Optional[str] = None
    cpu_percent: Optional[float] = None
    timestamp: datetime = field(default_factory=datetime.now)
