"""results - how a run or a step ended, as objects (docs/RESULT.md, docs/API.md)."""
from __future__ import annotations

import ast
import base64
import builtins
import inspect
import re
import sys
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type

from .errors import RemoteError
from .rich import Opaque, Rich

_ERRNO = re.compile(r"\[Errno (\d{1,9})\] (.*?)(?:: ('[^'\\]*'|\"[^\"\\]*\"))?", re.DOTALL)
# The text of an ExceptionGroup; in its traceback, where it begins and where a member of it does.
_GROUP = re.compile(r"(.*) \((\d{1,9}) sub-exceptions?\)", re.DOTALL)
_GROUP_HEAD = "  + Exception Group Traceback"
_MEMBER_HEAD = re.compile(r"^(?:  \+-|    )\+-+ \d+ -+\n", re.MULTILINE)
SHOWN = 1000  # characters of a text in repr()
_OF_MORE = (UnicodeDecodeError, UnicodeEncodeError, UnicodeTranslateError)  # made of five things


@dataclass(frozen=True)
class Frame:
    """One line of a traceback."""

    file: str
    line: Optional[int]
    name: str
    source: str = ""


@dataclass(frozen=True)
class ExceptionInfo:
    """What a program failed with."""

    type: str
    message: str
    traceback: str = ""
    line: Optional[int] = None
    module: Optional[str] = None
    frames: List[Frame] = field(default_factory=list)
    cause: Optional[ExceptionInfo] = None

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> ExceptionInfo:
        cause = data.get("cause")
        return cls(type=str(data.get("type", "")), message=str(data.get("message") or ""),
                   traceback=str(data.get("traceback") or ""), line=data.get("line"),
                   module=data.get("module"),
                   frames=[Frame(str(f.get("file", "")), f.get("line"), str(f.get("name", "")),
                                 str(f.get("source", ""))) for f in data.get("frames") or ()],
                   cause=cls.parse(cause) if isinstance(cause, dict) else None)

    def to_exception(self) -> Exception:
        """An exception of the same type where Python has it, else a RemoteError.

        Those that would end this process, SystemExit and KeyboardInterrupt, are RemoteErrors too.
        """
        kind = getattr(builtins, self.type, None)
        if self.module in (None, "builtins") and inspect.isclass(kind) \
                and issubclass(kind, Exception):
            try:
                made = self._stand_in(kind) if issubclass(kind, _OF_MORE) \
                    else kind(*self._arguments(kind))
                made.__dict__["remote_traceback"] = self.traceback
                return made
            except (TypeError, RecursionError):  # it is not made of one text
                pass
        return RemoteError(self.type, self.message, self.traceback)

    def _arguments(self, kind: Type[Exception]) -> Tuple[Any, ...]:
        """What makes one with this text."""
        told = _ERRNO.fullmatch(self.message) if issubclass(kind, OSError) else None
        if kind is KeyError:
            return self._key()
        if kind.__name__ == "ExceptionGroup":
            return self._group()
        try:
            if told and told[3]:
                return int(told[1]), told[2], ast.literal_eval(told[3])
            if told:
                return int(told[1]), told[2]
        except (ValueError, SyntaxError):
            pass
        return (self.message,)

    def _key(self) -> Tuple[Any, ...]:
        """Of a KeyError, whose text is the repr() of what it was made of, or none."""
        if not self.message:
            return ()
        try:
            return (ast.literal_eval(self.message),)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return (Opaque(self.message, ""),)

    def _group(self) -> Tuple[Any, ...]:
        """Of an ExceptionGroup, whose members only its traceback names."""
        told = _GROUP.fullmatch(self.message)
        own = self.traceback.rpartition(_GROUP_HEAD)[2]
        members = [_member(text) for text in _MEMBER_HEAD.split(own)[1:]]
        if not told or len(members) != int(told[2]):
            members = [RemoteError(self.type, self.message, self.traceback)]
        return told[1] if told else self.message, members

    def _stand_in(self, kind: Type[Exception]) -> Exception:
        """One of that type with this text and nothing else."""
        message = self.message
        made: Type[Exception] = type(kind.__name__, (kind,), {"__str__": lambda _: message})
        return made.__new__(made)


def _member(text: str) -> Exception:
    """Of an ExceptionGroup, by its part of the traceback."""
    text = re.sub("^  ", "", text, flags=re.MULTILINE)  # as it would be outside of the group
    lines = [line[4:] for line in _MEMBER_HEAD.split(text)[0].split("\n") if line[:4] == "  | "]
    frames = [place for place, line in enumerate(lines) if line.startswith(("  ", "Traceback "))]
    kind, _, message = "\n".join(lines[frames[-1] + 1 if frames else 0:]).partition(": ")
    return ExceptionInfo(kind, message, text).to_exception()


@dataclass(frozen=True)
class ChangedFile:
    """A file in the workspace that the run created or changed."""

    path: str
    size: int


@dataclass(frozen=True)
class ExportedFile:
    """A file that was asked for; `error` says why it has no content."""

    path: str
    size: int
    content: Optional[bytes] = field(default=None, repr=False)
    error: Optional[str] = None


@dataclass(frozen=True)
class Refusal:
    """A connection that was refused, or that failed; `message` says what to do about it."""

    host: Optional[str]
    port: Optional[int]
    address: Optional[str]
    reason: str
    message: str


@dataclass(frozen=True)
class Network:
    """What became of connections, where hosts were allowed; the first that were not made."""

    allowed: int
    refused: int
    failed: int
    refusals: List[Refusal] = field(default_factory=list)

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> Network:
        refusals = [Refusal(r.get("host"), r.get("port"), r.get("address"),
                            str(r.get("reason", "")), str(r.get("message", "")))
                    for r in data.get("refusals") or ()]
        return cls(int(data.get("allowed") or 0), int(data.get("refused") or 0),
                   int(data.get("failed") or 0), refusals)


@dataclass(frozen=True, repr=False)
class Result:
    """All that is known about how a run, or a step of a session, ended.

    Times are milliseconds (`wall_time` and `cpu_time`: seconds), sizes bytes.
    """

    outcome: str
    exit_code: Optional[int]
    stdout: str
    stderr: str
    id: Optional[str] = None
    session: Optional[str] = None
    stage: str = "run"
    signal: Optional[int] = None
    timed_out: bool = False
    oom: bool = False
    limit: Optional[str] = None
    stdout_dropped: int = 0
    stderr_dropped: int = 0
    exception: Optional[ExceptionInfo] = None
    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    compile_ms: float = 0.0
    peak_memory: Optional[int] = None
    processes: Optional[int] = None
    files_changed: List[ChangedFile] = field(default_factory=list)
    files_changed_cut: bool = False
    exports: List[ExportedFile] = field(default_factory=list)
    state: Optional[str] = None
    value: Any = None
    rich: Optional[Rich] = None
    displays: List[Rich] = field(default_factory=list)
    interrupted: bool = False
    network: Optional[Network] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    failure: Optional[BaseException] = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        """What is worth saying: no more of a text than a line or two, nothing that is as usual."""
        said = ["ok=%r" % self.ok]
        for item in fields(self):
            value = getattr(self, item.name)
            usual = item.default if item.default_factory is MISSING else item.default_factory()
            if item.repr and value not in (usual, ""):
                said.append("%s=%s" % (item.name, _short(value)))
        return "Result(%s)" % ", ".join(said)

    @property
    def ok(self) -> bool:
        """It ran to its end, with nothing wrong."""
        return self.outcome == "exited" and not self.exit_code and self.exception is None \
            and not self.interrupted

    @property
    def truncated(self) -> bool:
        return bool(self.stdout_dropped or self.stderr_dropped)

    @property
    def wall_time(self) -> float:
        return self.wall_ms / 1000

    @property
    def cpu_time(self) -> float:
        return self.cpu_ms / 1000

    def file(self, path: str) -> bytes:
        """The content of an export."""
        for item in self.exports:
            if item.path == path and item.content is not None:
                return item.content
            if item.path == path:
                raise FileNotFoundError("%s: %s" % (path, item.error))
        raise FileNotFoundError(path)

    def check(self) -> Result:
        """Itself; or raises what the program did.

        TimeoutError and MemoryError for the limits, an exception of the program's own type where
        this Python has it, else RemoteError.  An exception that came from a callback is that
        very object.
        """
        if self.ok:
            return self
        if self.failure is not None:
            raise self.failure
        if self.timed_out:
            raise TimeoutError("the program ran out of time (%s)" % (self.limit or "timeout"))
        if self.oom:
            raise MemoryError("the program ran out of memory")
        if self.exception is not None:
            raise self.exception.to_exception()
        raise RemoteError(*self._ending(), self.stderr)

    def _ending(self) -> tuple[str, str]:
        if self.interrupted:
            return "KeyboardInterrupt", "the step was interrupted"
        if self.signal is not None:
            return "Signaled", "signal %d ended the program" % self.signal
        if self.outcome == "exited":
            return "SystemExit", str(self.exit_code)
        return "Ended", self.outcome

    # ---- notebooks ----

    def _ipython_display_(self) -> None:
        """As a notebook shows its own code: what was printed, shown, returned and raised."""
        from IPython.display import display

        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr + self._trouble())
        shown: List[Any] = list(self.displays)
        if self.rich is not None and (len(self.rich) or isinstance(self.value, Opaque)):
            shown.append(self.rich)
        elif self.value is not None:
            shown.append(self.value)
        for item in shown:
            display(item)
        if not shown and not self.stdout and not self.stderr and self.ok:
            display({"text/plain": repr(self)}, raw=True)

    def _trouble(self) -> str:
        """What went wrong, so far as the program has not said it."""
        told = self.exception.traceback.rstrip() + "\n" if self.exception is not None else ""
        if told.strip() in self.stderr:
            told = ""
        if not self.ok and (self.timed_out or self.oom or not (told or self.stderr)):
            try:
                self.check()
            except Exception as why:
                told += "%s: %s\n" % (type(why).__name__, why)
        return told

    def _shown(self) -> Optional[Rich]:
        if self.rich is not None and len(self.rich):
            return self.rich
        return self.displays[-1] if self.displays else None

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        shown = self._shown()
        return shown._repr_mimebundle_() if shown else {"text/plain": repr(self)}

    def _repr_png_(self) -> Optional[bytes]:
        shown = self._shown()
        return shown.png if shown else None

    def _repr_html_(self) -> Optional[str]:
        shown = self._shown()
        return shown.html if shown else None


def _short(value: Any) -> str:
    if isinstance(value, str) and len(value) > SHOWN:
        return "%r... (%d characters)" % (value[:SHOWN], len(value))
    return repr(value)


def _parse_export(data: Mapping[str, Any]) -> ExportedFile:
    coded = data.get("content_base64")
    content = base64.b64decode(coded) if isinstance(coded, str) else None
    return ExportedFile(str(data["path"]), int(data.get("size") or 0), content, data.get("error"))


def parse_result(data: Dict[str, Any], *, id: Optional[str] = None, session: Optional[str] = None,
                 failure: Optional[BaseException] = None) -> Result:
    """Of the server's JSON.  Members that are new to us stay in `raw`."""
    exception = data.get("exception")
    value: Any = None
    rich: Optional[Rich] = None
    told = data.get("value")
    if isinstance(told, dict):
        forms = told.get("data") or {}
        if "json" in told:
            value, rich = told["json"], Rich(forms)
        else:
            value = rich = Opaque(str(told.get("text", "")), str(told.get("type", "")), forms)
    return Result(
        outcome=str(data.get("outcome", "exited")), exit_code=data.get("exit_code"),
        stdout=data.get("stdout") or "", stderr=data.get("stderr") or "", id=id, session=session,
        stage=data.get("stage") or "run", signal=data.get("signal"),
        timed_out=bool(data.get("timed_out")), oom=bool(data.get("oom")), limit=data.get("limit"),
        stdout_dropped=data.get("stdout_dropped") or 0,
        stderr_dropped=data.get("stderr_dropped") or 0,
        exception=ExceptionInfo.parse(exception) if isinstance(exception, dict) else None,
        wall_ms=data.get("wall_ms") or 0.0, cpu_ms=data.get("cpu_ms") or 0.0,
        compile_ms=data.get("compile_ms") or 0.0, peak_memory=data.get("peak_memory"),
        processes=data.get("processes"),
        files_changed=[ChangedFile(str(f["path"]), int(f.get("size") or 0))
                       for f in data.get("files_changed") or ()],
        files_changed_cut=bool(data.get("files_changed_cut")),
        exports=[_parse_export(f) for f in data.get("exports") or ()],
        state=data.get("state"), value=value, rich=rich,
        displays=[Rich(d) for d in data.get("displays") or ()],
        interrupted=bool(data.get("interrupted")),
        network=Network.parse(data["network"]) if isinstance(data.get("network"), dict) else None,
        raw=data, failure=failure)
