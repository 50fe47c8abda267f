"""_steps - sessions and their steps: what is asked and what is answered, without asking."""
from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _request
from ._callbacks import Callback, Failures, declared
from .errors import ServerFault, from_object
from .events import Call, Display, Event, Finished, Output, Started
from .results import parse_result
from .rich import Rich


class Unset:
    """The default of arguments for which None means something."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET = Unset()
Policy = Union[str, Mapping[str, Any], None]  # a profile, or one of one's own
Rewind = Union[bool, Mapping[str, int]]


@dataclass(frozen=True)
class Checkpoint:
    """What a session was, kept under a name."""

    name: str
    memory: int  # bytes that it alone has
    files: int   # bytes of files that it can put back

    @classmethod
    def parse_all(cls, data: Mapping[str, Any]) -> List[Checkpoint]:
        return [cls(name=str(item.get("name", "")), memory=item.get("memory") or 0,
                    files=item.get("files") or 0) for item in data.get("checkpoints") or []]


@dataclass(frozen=True)
class SessionInfo:
    """What the server says about a session."""

    id: str
    environment: str
    language: str
    state: str
    runs: int = 0
    episodes: int = 0
    idle_seconds: float = 0.0
    age_seconds: float = 0.0
    memory: Optional[int] = None
    parent: Optional[str] = None  # the session that it was forked from

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> SessionInfo:
        return cls(id=str(data.get("id", "")), environment=str(data.get("environment", "")),
                   language=str(data.get("language", "")), state=str(data.get("state", "")),
                   runs=data.get("runs") or 0, episodes=data.get("episodes") or 0,
                   idle_seconds=data.get("idle_seconds") or 0.0,
                   age_seconds=data.get("age_seconds") or 0.0, memory=data.get("memory"),
                   parent=data.get("parent"))


def session_body(*, language: Optional[str], environment: Optional[str],
                 files: Optional[_request.Files], env: Optional[Mapping[str, str]],
                 limits: Dict[str, Any], idle_timeout: Optional[float], lifetime: Optional[float],
                 max_episodes: Optional[int], policy: Union[Policy, Unset], rewind: Rewind,
                 allow_hosts: Optional[Sequence[str]]) -> Dict[str, Any]:
    body = _request.without_none({
        "language": None if environment else language, "environment": environment,
        "files": _request.file_list(files), "env": dict(env) if env else None,
        "limits": limits or None, "idle_timeout": idle_timeout, "lifetime": lifetime,
        "max_episodes": max_episodes, "rewind": rewind or None,
        "allow_hosts": _request.host_list(allow_hosts)})
    if not isinstance(policy, Unset):
        body["policy"] = policy
    return body


def _text(output: Mapping[str, Any]) -> str:
    """What was printed; bytes that are no text are shown as such."""
    coded = output.get("data_base64")
    if coded is None:
        return str(output.get("data", ""))
    return base64.b64decode(str(coded)).decode("utf-8", "replace")


def step_body(code: str, *, mode: Optional[str], name: Optional[str],
              globals: Optional[Mapping[str, Any]], callbacks: Optional[Dict[str, Callback]],
              calls_max: Optional[int], policy: Union[Policy, Unset], figures: Optional[bool],
              value_max: Optional[int], timeout: Optional[float]) -> Dict[str, Any]:
    body = _request.without_none({
        "code": code, "mode": mode, "name": name, "globals": dict(globals) if globals else None,
        "callbacks": declared(callbacks), "calls_max": calls_max, "figures": figures,
        "value_max": value_max, "timeout": timeout})
    if not isinstance(policy, Unset):
        body["policy"] = policy
    return body


class Reader:
    """Turns the lines of a stream into events."""

    def __init__(self, session: Optional[str] = None) -> None:
        self.id: Optional[str] = None
        self.session = session
        self.failures = Failures()

    def read(self, line: bytes) -> Optional[Event]:
        """None for an event that is new to us."""
        try:
            data = json.loads(line)
        except ValueError:
            raise ServerFault(200, "bug", "the stream is not JSON: %.80r" % line) from None
        kind = data.get("event")
        if kind == "start":
            self.id = str(data.get("id"))
            return Started(self.id)
        if kind == "output":
            return Output(str(data.get("stream")), _text(data))
        if kind == "display":
            return Display(Rich(data.get("data") or {}))
        if kind == "call":
            return Call(int(data["call"]), str(data["name"]), list(data.get("args") or ()),
                        dict(data.get("kwargs") or {}))
        if kind == "result":
            result = parse_result(data["result"], id=self.id, session=self.session)
            failure = self.failures.find(result.exception)
            if failure is not None:
                result = parse_result(data["result"], id=self.id, session=self.session,
                                      failure=failure)
            return Finished(result)
        if kind == "error":
            raise from_object(500, data.get("error"))
        return None

    def call_path(self, call: Call) -> str:
        return "/v1/runs/%s/calls/%d" % (self.id, call.call)
