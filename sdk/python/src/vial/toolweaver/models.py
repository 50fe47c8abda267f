"""models - limits, results and exceptions of a SandboxEnvironment."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional, Union

from ..errors import RemoteError


class SandboxSecurityError(Exception):
    """The code was refused; nothing of it ran."""


class SandboxError(RemoteError):
    """The code failed with an exception that this Python does not have.

    `type_name`, `message` and `traceback` are the code's.
    """


class _Default(float):
    """A number that nobody has given."""


_MAX_DURATION = _Default(300.0)


@dataclass
class ResourceLimits:
    """What an execution may use.

    `max_duration` is the older name of `timeout_seconds`, and wins where it is given.
    """

    max_memory_mb: int = 512
    max_cpu_percent: float = 50.0
    timeout_seconds: Union[int, float] = 30
    max_tool_calls: int = 100
    max_concurrent: int = 5
    max_total_cost_usd: float = 10.0
    max_duration: float = _MAX_DURATION
    allow_network: bool = True
    allow_file_io: bool = False

    @property
    def seconds(self) -> Union[int, float]:
        """The time that is in force."""
        is_given = not isinstance(self.max_duration, _Default)
        return self.max_duration if is_given else self.timeout_seconds

    def to_vial(self) -> Dict[str, Any]:
        return {"memory": "%dm" % self.max_memory_mb, "cpus": "%g%%" % self.max_cpu_percent,
                "timeout": self.seconds}


@dataclass
class ExecutionResult:
    """How an execution ended."""

    success: bool
    output: Any
    stdout: str
    stderr: str
    duration: float
    error: Optional[str] = None
    error_type: Optional[str] = None
