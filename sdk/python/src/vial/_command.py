"""_command - a run by the `vial run` command, on this machine.

For what a server does not do for its clients: a host directory as the workspace, another place for
it, the host's network.
"""
from __future__ import annotations

import base64
import contextlib
import json
import os
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from . import _daemon
from ._request import Files, host_list, read_content, wait_of
from .errors import DaemonError, InvalidRequest, RequestTimeout, ServerFault, VialError
from .results import Result, parse_result

EXIT_USAGE = 2  # the arguments are wrong; what the program did is in the JSON
EXTENSIONS = {"python": ".py", "python3": ".py", "py": ".py", "javascript": ".js", "js": ".js",
              "node": ".js", "bash": ".sh", "sh": ".sh", "ruby": ".rb", "go": ".go", "c": ".c",
              "cpp": ".cpp"}


class Command:
    """One `vial run`, put together."""

    def __init__(self, scratch: str) -> None:
        binary = _daemon.find_binary()
        if binary is None:
            raise DaemonError("there is no vial command: install vial, or set VIAL_BINARY")
        self.scratch = scratch
        self.argv = [binary, "run", "--json"]
        self._count = 0

    def add(self, *words: str) -> None:
        self.argv += words

    def keep(self, content: Union[str, bytes], name: Optional[str] = None) -> str:
        """A file for the command to read."""
        self._count += 1
        folder = os.path.join(self.scratch, str(self._count))
        os.mkdir(folder)
        path = os.path.join(folder, name or "content")
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    def run(self, timeout: Optional[float]) -> Dict[str, Any]:
        with subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.terminate()  # it ends its sandbox first
                raise RequestTimeout("vial run did not end in time") from None
            except BaseException:
                process.terminate()
                raise
        try:
            answer = json.loads(out)
        except ValueError:
            raise failure(process.returncode, err.decode("utf-8", "replace").strip()) from None
        if not isinstance(answer, dict):
            raise ServerFault(500, "bug", "vial run printed no object")
        return answer


def failure(status: int, text: str) -> VialError:
    """What the command said, without its name and its advice."""
    text = text[len("vial: "):] if text.startswith("vial: ") else text
    text = text.split("\nTry 'vial", 1)[0] or "vial run ended with %d" % status
    if status == EXIT_USAGE:
        return InvalidRequest(400, "invalid", text)
    return ServerFault(500, "host", text)


def run(code: str, *, language: Optional[str] = None, environment: Optional[str] = None,
        files: Optional[Files] = None, args: Sequence[str] = (),
        env: Optional[Mapping[str, str]] = None, stdin: Union[str, bytes, None] = None,
        limits: Optional[Mapping[str, Any]] = None, workdir: Optional[str] = None,
        writable: Optional[bool] = None, exports: Sequence[str] = (), name: Optional[str] = None,
        directory: Optional[str] = None, network: bool = False,
        mounts: Optional[Mapping[str, str]] = None,
        allow_hosts: Optional[Sequence[str]] = None) -> Result:
    """As Sandbox.run(); `directory` is a host directory that is the workspace.

    `mounts` are others, by where they appear; they can be read.
    """
    with tempfile.TemporaryDirectory(prefix="vial-run-") as scratch:
        command = Command(scratch)
        if environment:
            command.add("--environment", environment)
        else:
            command.add("--language", language or "python")
        for option, value in (limits or {}).items():
            command.add("--" + option, str(value))
        for variable, value in (env or {}).items():
            command.add("--env", "%s=%s" % (variable, value))
        if stdin is not None:
            command.add("--stdin", command.keep(stdin))
        if network:
            command.add("--network", "host")
        for host in host_list(allow_hosts) or ():
            command.add("--allow-host", host)
        _add_places(command, directory, writable is not False, workdir, mounts or {})
        if files and directory is not None:
            raise ValueError("files, and a directory as the workspace: give one of them")
        for path, content in (files or {}).items():
            command.add("--file", "%s=%s" % (path, command.keep(read_content(content))))
        saved = os.path.join(scratch, "exports")
        os.mkdir(saved)
        for pattern in exports:
            command.add("--export", pattern, "--export-to", saved)
        main = name or "main" + EXTENSIONS.get(language or "python", ".py")
        command.add(command.keep(code, os.path.basename(main)), *args)
        answer = command.run(wait_of(limits or {}))
        answer["exports"] = list(_with_contents(answer.get("exports") or [], saved))
        return parse_result(answer)


def _add_places(command: Command, directory: Optional[str], writable: bool,
                workdir: Optional[str], mounts: Mapping[str, str]) -> None:
    """What lies where, and what of it can be written."""
    if directory is not None:
        command.add("--dir", "%s:%s" % (directory, "rw" if writable else "ro"))
    elif not writable:
        command.add("--read-only")
    for inside, host in mounts.items():
        command.add("--dir", "%s:%s:ro" % (host, inside))
    if workdir is not None:
        command.add("--workdir", workdir)


def _with_contents(exports: List[Dict[str, Any]], folder: str) -> Iterator[Dict[str, Any]]:
    """What the command saved, as a server would have said it."""
    for item in exports:
        made = dict(item)
        where = made.pop("saved", None)
        if where and os.path.realpath(where).startswith(os.path.realpath(folder) + os.sep):
            with contextlib.suppress(OSError), open(where, "rb") as file:
                made["content_base64"] = base64.b64encode(file.read()).decode("ascii")
        yield made
