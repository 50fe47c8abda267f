"""sandbox - CodeSandbox: eight languages, nothing kept between executions."""
from __future__ import annotations

import logging
import posixpath
import threading
import time
import uuid
from typing import Any, Dict, List, Mapping, Optional, Type, Union

from .. import errors
from .._default import default, pick_image
from ..client import Sandbox
from ..results import Result
from .languages import LANGUAGE_CONFIGS, USUAL_IMAGES
from .models import ExecutionResult, ResourceLimits

logger = logging.getLogger(__name__)

ENV = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
OUTPUTS = ["*", "*/*", "*/*/*", "*/*/*/*"]
TIMED_OUT, KILLED, UNKNOWN = 124, 137, -1
TIMEOUT_TEXT = "Execution timed out after %ss"

Files = Mapping[str, Union[str, bytes]]


class CodeSandbox:
    """Executes code in fresh sandboxes.  One object may be used by many threads.

    Args:
        default_limits: where execute() is given none.
        use_docker_api: accepted, and of no meaning: there is no Docker.
        client: the vial.Sandbox to use. Default: that of this process.

    Raises:
        RuntimeError: there is no server, and none can be started.
    """

    LANGUAGE_CONFIGS: Dict[str, Dict[str, str]] = LANGUAGE_CONFIGS

    def __init__(self, default_limits: Optional[ResourceLimits] = None,
                 use_docker_api: bool = True, *, client: Optional[Sandbox] = None) -> None:
        self.default_limits = default_limits or ResourceLimits()
        self.use_docker_api = use_docker_api
        self.execution_history: List[Dict[str, Any]] = []
        self._usage: Dict[str, Dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._environments: Dict[str, Optional[str]] = {}  # by image
        self.client = client or default()
        try:
            self.client.address  # noqa: B018 - finds the server, or starts one
        except errors.VialError as why:
            raise RuntimeError("No sandbox server: %s" % why) from why

    # ---- executing ----

    def execute(self, code: str, language: str, limits: Optional[ResourceLimits] = None,
                network_enabled: bool = False, env_vars: Optional[Mapping[str, str]] = None,
                files: Optional[Files] = None, read_only: bool = True) -> ExecutionResult:
        """Run code in a sandbox of its own.  What goes wrong is in the result, never raised.

        Args:
            network_enabled: the host's network, where vial's operator permits it; where not, the
                code runs without one, and a warning is logged.
            files: what lies beside the code in /sandbox, by name.
            read_only: only /tmp can be written. Otherwise /sandbox too, and what the code makes
                there is in the result's `output_files`.
        """
        return self._execute(code, language, limits, network_enabled, env_vars, files, read_only)

    def execute_with_input(self, code: str, language: str, stdin_input: str,
                           limits: Optional[ResourceLimits] = None) -> ExecutionResult:
        """Run code that reads `stdin_input` from its standard input."""
        return self._execute(code, language, limits, stdin=stdin_input)

    def execute_tests(self, code: str, test_code: str, language: str,
                      limits: Optional[ResourceLimits] = None) -> ExecutionResult:
        """Run code followed by its tests."""
        return self._execute("%s\n\n%s" % (code, test_code), language, limits)

    def _execute(self, code: str, language: str, limits: Optional[ResourceLimits],
                 network_enabled: bool = False, env_vars: Optional[Mapping[str, str]] = None,
                 files: Optional[Files] = None, read_only: bool = True,
                 stdin: Optional[str] = None) -> ExecutionResult:
        name = str(language).lower().strip()
        config = self.LANGUAGE_CONFIGS.get(name)
        if config is None:
            supported = ", ".join(sorted(self.LANGUAGE_CONFIGS))
            return _failed("Unsupported language: %s. Supported: %s" % (language, supported),
                           language)
        limits = limits or self.default_limits
        start = time.monotonic()
        program = "code" + config["extension"]
        try:
            files = _checked(code, program, files or {})
            _require(limits, ResourceLimits, "limits")
            if limits.timeout_seconds <= 0:
                result = _timed_out(limits)
            else:
                ran = self._run(network_enabled, code, files=files, **self._where(name, config),
                                stdin=stdin, env=_variables(env_vars or {}),
                                limits=limits.to_vial(), writable=not read_only,
                                exports=() if read_only else OUTPUTS, name=program)
                result = self._render(ran, limits)
        except _BadFile as why:
            return _failed("Error preparing files: %s" % why, name)
        except errors.APIError as why:
            what = "preparing files" if (why.field or "").startswith("files") \
                else "running container"
            result = _failed("Error %s: %s" % (what, why), name)
        except (errors.VialError, ValueError, TypeError, OSError) as why:
            result = _failed("Error running container: %s" % why, name)
        result.execution_time = round(time.monotonic() - start, 3)
        result.language = "%s (%s)" % (name, config["runtime_name"])
        self._remember(name, result)
        return result

    def _where(self, name: str, config: Mapping[str, str]) -> Dict[str, str]:
        """The language, or the environment that is made of its image."""
        image = config.get("image", "")
        with self._lock:
            if image not in self._environments:
                self._environments[image] = pick_image(
                    self.client.environments(), image, USUAL_IMAGES.get(name, ""), ())
            environment = self._environments[image]
        if environment is not None:
            return {"environment": environment}
        return {"language": config.get("language", name)}

    def _run(self, network_enabled: bool, *args: Any, **options: Any) -> Result:
        if network_enabled:
            try:
                return self.client.run(*args, network=True, **options)
            except (errors.VialError, ValueError) as why:
                if "network" not in str(why):
                    raise
                logger.warning("Running without a network: %s", why)
        return self.client.run(*args, **options)

    @staticmethod
    def _render(result: Result, limits: ResourceLimits) -> ExecutionResult:
        exit_code, message = _exit_code(result), None
        if result.timed_out:
            message = TIMEOUT_TEXT % limits.timeout_seconds
        made = ExecutionResult(
            success=exit_code == 0, exit_code=exit_code, stdout=result.stdout,
            stderr=result.stderr, execution_time=0.0, timeout=result.timed_out,
            error_message=message, container_id=result.id or _new_id())
        # A warm sandbox has used some before the clock starts.
        share = 100 * result.cpu_ms / result.wall_ms if result.wall_ms else 0.0
        if limits.cpu_quota > 0 and limits.cpu_period > 0:
            share = min(share, 100 * limits.cpu_quota / limits.cpu_period)
        made.cpu_percent = round(share, 1)
        made.resource_usage = {"memory_usage": result.peak_memory, "cpu_percent": made.cpu_percent,
                               "cpu_time": result.cpu_time, "wall_time": result.wall_time,
                               "processes": result.processes}
        if result.peak_memory is not None:
            made.memory_used = "%.1fMiB" % (result.peak_memory / (1 << 20))
        made.output_files = {item.path: item.content.decode("utf-8", "replace")
                             for item in result.exports if item.content is not None}
        return made

    # ---- looking back ----

    def _remember(self, language: str, result: ExecutionResult) -> None:
        entry = {"timestamp": result.timestamp.isoformat(), "language": language,
                 "success": result.success, "exit_code": result.exit_code,
                 "execution_time": result.execution_time, "container_id": result.container_id}
        with self._lock:
            self.execution_history.append(entry)
            if result.container_id is not None and result.resource_usage is not None:
                self._usage[result.container_id] = {
                    **result.resource_usage, "timestamp": result.timestamp.isoformat()}

    def get_execution_history(self, limit: Optional[int] = None) -> List[Dict[str, Any]]:
        """All executions, oldest first; with a limit, the last ones."""
        with self._lock:
            history = list(self.execution_history)
        return history[-limit:] if limit else history

    def get_resource_usage(self, container_id: str) -> Optional[Dict[str, Any]]:
        """What an execution has used, or None if it is not one of ours."""
        with self._lock:
            return self._usage.get(container_id)

    def list_supported_languages(self) -> List[Dict[str, str]]:
        """What execute() takes as a language."""
        return [{"language": name, "runtime": config["runtime_name"],
                 "extension": config["extension"], "image": config.get("image", ""),
                 "description": config.get("description", "")}
                for name, config in sorted(self.LANGUAGE_CONFIGS.items())]

    def cleanup_all_containers(self) -> None:
        """Nothing: every sandbox is gone when its execution is."""


class _BadFile(ValueError):
    """A file's name leads out of the sandbox, or it has no content."""


def _require(value: Any, kind: Type[Any], what: str) -> None:
    if not isinstance(value, kind):
        raise TypeError("%s must be %s, not %s" % (what, kind.__name__, type(value).__name__))


def _variables(given: Mapping[str, Any]) -> Dict[str, str]:
    """The usual ones, but for those that the caller sets."""
    _require(given, Mapping, "env_vars")
    return {**ENV, **{str(key): str(value) for key, value in given.items()}}


def _checked(code: str, program: str, files: Files) -> Dict[str, Union[str, bytes]]:
    """The files, by names without detours; `program` is that of the code."""
    if not isinstance(code, str):
        raise _BadFile("the code must be str, not %s" % type(code).__name__)
    if not isinstance(files, Mapping):
        raise _BadFile("the files must be a dict, not %s" % type(files).__name__)
    made = {}
    for name, content in files.items():
        if not isinstance(name, str):
            raise _BadFile("a file's name must be str, not %s" % type(name).__name__)
        parts = name.split("/")
        if not name or "\0" in name or posixpath.isabs(name) or ".." in parts:
            raise _BadFile("the name %r leads out of the sandbox" % name)
        if not isinstance(content, (str, bytes)):
            raise _BadFile("%s must be str or bytes, not %s" % (name, type(content).__name__))
        folders = [part for part in parts[:-1] if part not in ("", ".")]
        made["/".join([*folders, parts[-1]])] = content
    if program in made:
        raise _BadFile("%s is the code itself" % program)
    taken = {program, *made}
    for name in made:
        for place, char in enumerate(name):
            if char == "/" and name[:place] in taken:
                raise _BadFile("%s is a file, and cannot hold %s" % (name[:place], name))
    return made


def _failed(message: str, language: str) -> ExecutionResult:
    return ExecutionResult(success=False, exit_code=UNKNOWN, stdout="", stderr="",
                           execution_time=0.0, timeout=False, error_message=message,
                           language=language)


def _timed_out(limits: ResourceLimits) -> ExecutionResult:
    """Of what had no time at all."""
    return ExecutionResult(success=False, exit_code=TIMED_OUT, stdout="", stderr="",
                           execution_time=0.0, timeout=True, container_id=_new_id(),
                           error_message=TIMEOUT_TEXT % limits.timeout_seconds)


def _exit_code(result: Result) -> int:
    """As Docker would have said it."""
    if result.timed_out:
        return TIMED_OUT
    if result.oom:
        return KILLED
    if result.exit_code is not None:
        return result.exit_code
    return 128 + result.signal if result.signal is not None else UNKNOWN


def _new_id() -> str:
    """For runs that had no server to number them."""
    return uuid.uuid4().hex[:12]
