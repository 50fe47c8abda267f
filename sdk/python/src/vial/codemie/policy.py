"""policy - what code may not import and use, by severity."""
from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Dict, List, Optional, Tuple, Union

from . import yaml_subset

logger = logging.getLogger(__name__)

VERSION = "1.0"


class SecurityIssueSeverity(IntEnum):
    SAFE = 0
    LOW = 1
    MEDIUM = 2
    HIGH = 3


def parse_threshold(value: Any) -> Optional[SecurityIssueSeverity]:
    """A severity, its name in any case, or its number; None and "" are no policy."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and value.upper() in SecurityIssueSeverity.__members__:
        return SecurityIssueSeverity[value.upper()]
    try:
        if not isinstance(value, bool):
            return SecurityIssueSeverity(int(value))
    except (ValueError, TypeError):
        pass
    raise ValueError("Invalid security_threshold: %s. Must be one of: SAFE, LOW, MEDIUM, HIGH or "
                     "empty for no restrictions" % value)


@dataclass(frozen=True)
class RestrictedModule:
    name: str
    description: str
    severity: SecurityIssueSeverity


@dataclass(frozen=True)
class SecurityPattern:
    """A regular expression, searched for in code without its strings and comments."""

    pattern: str
    description: str
    severity: SecurityIssueSeverity


@dataclass
class SecurityPolicy:
    """What is restricted, and from which severity on that refuses code.

    `uses` are builtins and functions of modules by their full names.
    """

    severity_threshold: SecurityIssueSeverity = SecurityIssueSeverity.SAFE
    restricted_modules: List[RestrictedModule] = field(default_factory=list)
    patterns: List[SecurityPattern] = field(default_factory=list)
    uses: Dict[str, Tuple[SecurityIssueSeverity, str]] = field(default_factory=dict)

    def blocks(self, severity: SecurityIssueSeverity) -> bool:
        return self.severity_threshold > SecurityIssueSeverity.SAFE \
            and severity >= self.severity_threshold

    def add_pattern(self, pattern: SecurityPattern) -> None:
        self.patterns.append(pattern)


_LOW, _MEDIUM, _HIGH = (SecurityIssueSeverity.LOW, SecurityIssueSeverity.MEDIUM,
                        SecurityIssueSeverity.HIGH)

_MODULES = {
    _HIGH: {"sys": "System-specific parameters and functions", "shutil": "File operations",
            "socket": "Network sockets", "urllib": "Network requests", "httpx": "Network requests",
            "eval": "Evaluation of code", "exec": "Execution of code",
            "compile": "Compilation of code", "threading": "Threads",
            "multiprocessing": "Processes", "pip": "Package installation"},
    _MEDIUM: {"pathlib": "File system paths", "glob": "File system search",
              "tempfile": "Temporary files", "inspect": "Introspection",
              "importlib": "Dynamic imports"},
    _LOW: {"os": "Operating system interface", "subprocess": "Process execution",
           "requests": "Network requests"},
}

_USES = {
    "os.system": (_HIGH, "System command execution"),
    "os.remove": (_HIGH, "File system modification"),
    "os.rmdir": (_HIGH, "File system modification"),
    "os.unlink": (_HIGH, "File system modification"),
    "os.mkdir": (_HIGH, "File system modification"),
    "os.makedirs": (_HIGH, "File system modification"),
    "os.environ[]": (_HIGH, "Environment access"),
    "socket.socket": (_HIGH, "Network sockets"),
    "eval": (_HIGH, "eval() not allowed"),
    "exec": (_HIGH, "exec() not allowed"),
    "compile": (_HIGH, "compile() not allowed"),
    "__import__": (_HIGH, "Dynamic import not allowed"),
    "__builtins__": (_HIGH, "Access to __builtins__ not allowed"),
    "subprocess.run": (_LOW, "Process execution"),
    "subprocess.call": (_LOW, "Process execution"),
    "subprocess.Popen": (_LOW, "Process execution"),
    "subprocess.check_output": (_LOW, "Process execution"),
    "requests.get": (_LOW, "Network requests"),
    "requests.post": (_LOW, "Network requests"),
    "requests.put": (_LOW, "Network requests"),
    "requests.delete": (_LOW, "Network requests"),
}


def _default_policy() -> SecurityPolicy:
    modules = [RestrictedModule(name, text, severity) for severity, rows in _MODULES.items()
               for name, text in rows.items()]
    return SecurityPolicy(restricted_modules=modules, uses=dict(_USES))


# ---- policies in files ----

def load_policy(path: Union[str, os.PathLike[str]]) -> SecurityPolicy:
    """A YAML file: `version`, `restricted_modules` and `patterns`.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is no such file.
    """
    if not os.path.exists(path):
        raise FileNotFoundError("Security policy file not found: %s" % os.fspath(path))
    with open(path, encoding="utf-8") as file:
        config = yaml_subset.load(file.read())
    if not isinstance(config, dict):
        raise ValueError("Failed to parse YAML file: no mapping")
    if str(config.get("version", VERSION)) != VERSION:
        logger.warning("Unsupported policy version: %s, expected %s", config["version"], VERSION)
    if "severity_threshold" in config:
        logger.warning("severity_threshold in YAML is ignored. Use the "
                       "CODE_EXECUTOR_SECURITY_THRESHOLD environment variable instead.")
    policy = SecurityPolicy()
    for row in config.get("restricted_modules") or ():
        policy.restricted_modules.append(RestrictedModule(*_row(row, "name", "Module")))
    for row in config.get("patterns") or ():
        pattern = SecurityPattern(*_row(row, "pattern", "Pattern"))
        try:
            re.compile(pattern.pattern)
        except re.error as why:
            raise ValueError("Invalid pattern %r: %s" % (pattern.pattern, why)) from None
        policy.add_pattern(pattern)
    # A list of modules of one's own names builtins too, as the original's does.
    for module in policy.restricted_modules:
        if module.name in ("eval", "exec", "compile", "__import__"):
            policy.uses[module.name] = (module.severity, module.description)
    return policy


def _row(row: Any, key: str, what: str) -> Tuple[str, str, SecurityIssueSeverity]:
    if not isinstance(row, dict) or not row.get(key):
        raise ValueError("%s configuration missing '%s' field" % (what, key))
    severity = row.get("severity", "SAFE")
    try:
        parsed = parse_threshold(severity)
    except ValueError:
        parsed = None
    if parsed is None:
        raise ValueError("Invalid severity level: %s. Must be one of: SAFE, LOW, MEDIUM, HIGH"
                         % severity)
    return str(row[key]), str(row.get("description", "")), parsed


def get_codemie_security_policy(
        severity_threshold: Optional[SecurityIssueSeverity] = None,
        yaml_config_path: Optional[Union[str, os.PathLike[str]]] = None
        ) -> Optional[SecurityPolicy]:
    """The policy: that of the file, or the usual one; without a threshold, none."""
    if severity_threshold is None:
        return None
    policy = load_policy(yaml_config_path) if yaml_config_path else _default_policy()
    policy.severity_threshold = severity_threshold
    return policy


def get_restricted_module_names(
        severity_threshold: Optional[SecurityIssueSeverity] = None,
        yaml_config_path: Optional[Union[str, os.PathLike[str]]] = None) -> List[str]:
    """What that policy blocks, in the order of the alphabet."""
    policy = get_codemie_security_policy(severity_threshold, yaml_config_path)
    if policy is None:
        return []
    return sorted(m.name for m in policy.restricted_modules if policy.blocks(m.severity))
