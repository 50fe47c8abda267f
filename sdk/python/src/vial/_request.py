"""_request - what is asked, as JSON bodies (docs/API.md)."""
from __future__ import annotations

import base64
import os
import secrets
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._exchange import Progress, Request, encode

Content = Union[str, bytes, "os.PathLike[str]"]
Files = Mapping[str, Content]
Limits = Mapping[str, Union[str, int, float]]

PATIENCE_S = 60.0       # beyond the program's own time: waiting for a place, compiling, answering
DEFAULT_TIMEOUT_S = 30.0
STREAM = "application/x-ndjson"


def read_content(content: Content) -> Union[str, bytes]:
    """Text and bytes are themselves; a path is what lies there."""
    if isinstance(content, (str, bytes)):
        return content
    if isinstance(content, (bytearray, memoryview)):
        return bytes(content)
    if not isinstance(content, os.PathLike):  # open() would take a number for a descriptor
        raise TypeError("a file's content is str, bytes or a path, not %s" % type(content).__name__)
    with open(content, "rb") as file:
        return file.read()


def file_list(files: Optional[Files]) -> Optional[List[Dict[str, str]]]:
    if not files:
        return None
    if not isinstance(files, Mapping):
        raise TypeError("files are a dict of names and contents, not %s" % type(files).__name__)
    made = []
    for path, content in files.items():
        data = read_content(content)
        if isinstance(data, str):
            made.append({"path": path, "content": data})
        else:
            made.append({"path": path, "content_base64": base64.b64encode(data).decode("ascii")})
    return made


def merge_limits(*all_limits: Optional[Limits], timeout: Optional[float] = None) -> Dict[str, Any]:
    """Later ones win.  Names may be written with underscores."""
    made: Dict[str, Any] = {}
    for limits in all_limits:
        for name, value in (limits or {}).items():
            made[name.replace("_", "-")] = value
    if timeout is not None:
        made["timeout"] = timeout
    return made


def wait_of(limits: Mapping[str, Any]) -> Optional[float]:
    """How long an answer may take, as far as the time limit is a number."""
    timeout = limits.get("timeout", DEFAULT_TIMEOUT_S)
    if isinstance(timeout, str):
        try:
            timeout = float(timeout)
        except ValueError:
            return None  # written with a unit: the server knows
    return float(timeout) + PATIENCE_S


def without_none(body: Dict[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


def host_list(hosts: Optional[Sequence[str]]) -> Optional[List[str]]:
    """None: what is usual there.  A single string would be a list of its letters."""
    if isinstance(hosts, str):
        raise TypeError("allow_hosts is a list of hosts")
    return None if hosts is None else list(hosts)


def run_body(code: Optional[str], *, language: Optional[str], environment: Optional[str],
             files: Optional[Files], args: Sequence[str], env: Optional[Mapping[str, str]],
             stdin: Union[str, bytes, None], limits: Dict[str, Any], workdir: Optional[str],
             writable: Optional[bool], exports: Sequence[str], name: Optional[str],
             allow_hosts: Optional[Sequence[str]]) -> Dict[str, Any]:
    body = without_none({
        "language": None if environment else language, "environment": environment, "code": code,
        "name": name, "files": file_list(files), "args": list(args) or None,
        "env": dict(env) if env else None, "limits": limits or None, "workdir": workdir,
        "writable": writable, "exports": list(exports) or None,
        "allow_hosts": host_list(allow_hosts)})
    if isinstance(stdin, bytes):
        body["stdin_base64"] = base64.b64encode(stdin).decode("ascii")
    elif stdin is not None:
        body["stdin"] = stdin
    return body


def post(path: str, body: Any, timeout: Optional[float], *, streamed: bool = False,
         progress: Optional[Progress] = None, once: bool = False) -> Request:
    """`once`: it may be sent again when its answer is lost."""
    return Request("POST", path, encode(body), timeout, STREAM if streamed else "application/json",
                   progress, key=secrets.token_hex(16) if once else None)
