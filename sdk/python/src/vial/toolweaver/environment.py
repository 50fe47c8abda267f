"""environment - SandboxEnvironment: code in, value out, and what it set stays."""
from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import replace
from functools import partial
from typing import Any, Dict, Generator, Iterator, List, Mapping, Optional

from .. import errors
from .._callbacks import Callback
from .._default import close_with, default_async, pick_environment, run_or_interrupt
from ..aio import AsyncSandbox, AsyncSession
from ..results import Result
from ..rich import Opaque
from . import literal
from .models import ExecutionResult, ResourceLimits, SandboxError, SandboxSecurityError
from .validation import validate_code

IDLE_S = 3600.0
LIFETIME_S = 86400.0
OURS_S = 60.0        # for what is done before the code, whose time it does not take
PROCESSES = 64       # threads count; the policy refuses processes
STEP = "<sandbox>"
VALUE_MAX = 15 << 20  # bytes of JSON: as many as a session can say

# What code finds without importing it.  An exit ends the code, and not the interpreter with all
# that is kept in it.
PRELUDE = """
import asyncio
from typing import Any, Dict, List, Optional, Set, Tuple

class SystemExit(BaseException):
    __module__ = "builtins"

    def __init__(self, *args):
        self.code = args[0] if len(args) == 1 else args or None

def exit(*code):
    raise SystemExit(*code)

__import__("sys").exit = quit = exit
"""


class _Done:
    """For callers that await what need not be awaited."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class SandboxEnvironment:
    """An isolated interpreter: state stays between calls, until reset().

    Args:
        limits: what an execution may use.
        allowed_imports: only these modules, and what is in them. Default: all of the standard
            library but os, sys, subprocess, socket, shutil, tempfile, pickle and their like.
        filesystem_access: files of a private working directory can be used. Otherwise open()
            raises PermissionError.
        client: the vial.AsyncSandbox to use. Default: that of this process.
    """

    def __init__(self, limits: Optional[ResourceLimits] = None,
                 allowed_imports: Optional[List[str]] = None, filesystem_access: bool = False, *,
                 client: Optional[AsyncSandbox] = None) -> None:
        self.limits = limits or ResourceLimits()
        self.allowed_imports = None if allowed_imports is None else list(allowed_imports)
        self.filesystem_access = filesystem_access or self.limits.allow_file_io
        self._client = client or default_async()
        self._session: Optional[AsyncSession] = None
        self._opening: Dict[asyncio.AbstractEventLoop, asyncio.Lock] = {}
        self._is_stale = False
        self._is_primed = False
        self._prelude = PRELUDE
        self._callbacks: Dict[str, Callback] = {}
        self._inner: Dict[str, List[str]] = {}  # names of functions, by the data that they are in
        self._numbers = itertools.count(1)
        self._stdout: List[str] = []
        self._stderr: List[str] = []

    # ---- life ----

    async def __aenter__(self) -> SandboxEnvironment:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give the interpreter back.  The next execution has a fresh one."""
        session, self._session = self._session, None
        if session is not None:
            await session.aclose()

    def reset(self) -> _Done:
        """Forget all state and logs.  It may be awaited, and need not be."""
        self._is_stale = True
        self._callbacks, self._inner = {}, {}
        self._stdout.clear()
        self._stderr.clear()
        return _Done()

    def get_logs(self) -> Dict[str, str]:
        """What was printed since the beginning, or the last reset()."""
        return {"stdout": "".join(self._stdout), "stderr": "".join(self._stderr)}

    def prepare(self, code: str) -> None:
        """Have this run before any other code, with all imports allowed."""
        self._prelude += code
        self._is_primed = False

    def _policy(self) -> Dict[str, Any]:
        policy: Dict[str, Any] = {"profile": "default", "files": self.filesystem_access,
                                  "processes": False}
        if self.allowed_imports is not None:
            policy["allow"] = self.allowed_imports
        return policy

    async def _ready(self) -> AsyncSession:
        """The session, as fresh as it should be."""
        lock = self._opening.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with lock:
            if self._session is None:
                await self._open()
            assert self._session is not None
            if self._is_stale:
                try:
                    await self._session.reset()
                except errors.NotFound:
                    await self._open()
                self._is_stale, self._is_primed = False, False
            if not self._is_primed:
                # With the policy off: an allow-list need not have asyncio for it to be there.
                await self._session.run(self._prelude, mode="script", name="<prelude>", policy=None,
                                        timeout=OURS_S)
                self._is_primed = True
            return self._session

    async def _open(self) -> None:
        there = [item["name"] for item in await self._client.environments()]
        self._session = await self._client.session(
            environment=pick_environment(there, ["python-data", "python"]),
            limits={**self.limits.to_vial(), "processes": PROCESSES}, idle_timeout=IDLE_S,
            lifetime=LIFETIME_S)
        self._is_stale = self._is_primed = False
        close_with(self, await self._client.address(), self._session.id)

    # ---- executing ----

    async def execute_code(self, code: str, globals_dict: Optional[Mapping[str, Any]] = None
                           ) -> Any:
        """Run code as the body of an async function, and give its value back.

        That is what it returns; without a `return`, the value of a variable `result` that it set,
        or what its `async def __main__()` returns.

        Args:
            globals_dict: names for the code. Functions among the values run here when the code
                calls them; asynchronous ones are awaited there, too.

        Raises:
            TimeoutError, MemoryError: a limit ended it.
            ImportError, PermissionError: it wanted what it may not have.
            Exception: what it raised, of the same type where that is built in, else SandboxError.
        """
        result = await self._run(code, globals_dict)
        self._raise(result)
        if isinstance(result.value, Opaque) and result.raw.get("cut"):
            raise ValueError("The value is too large to be returned: more than %d bytes of JSON"
                             % VALUE_MAX)
        return _value(result)

    async def execute(self, code: str, context: Optional[Mapping[str, Any]] = None
                      ) -> ExecutionResult:
        """As execute_code(), but the code is looked at first, and nothing is raised."""
        start = time.monotonic()
        made, result = ExecutionResult(True, None, "", "", 0), None
        try:
            self.validate_code(code)
            result = await self._run(code, context)
            made.output, made.stdout, made.stderr = _value(result), result.stdout, result.stderr
            self._raise(result)
        except SandboxSecurityError as why:
            return ExecutionResult(False, None, "", "", 0, str(why), "SecurityError")
        except Exception as why:
            made.success, made.output, made.error = False, None, _message(why)
            made.error_type = why.type_name if isinstance(why, SandboxError) \
                else type(why).__name__
            if result is not None and result.exception is not None:
                made.stderr += "\n" + result.exception.traceback
        made.duration = time.monotonic() - start
        return made

    def validate_code(self, code: str) -> None:
        """Raise SandboxSecurityError if the code names what is forbidden."""
        validate_code(code, self.allowed_imports)

    async def _run(self, code: str, names: Optional[Mapping[str, Any]]) -> Result:
        if self.limits.seconds <= 0:  # no time at all
            return Result("timed_out", None, "", "", timed_out=True)
        given = _Given(names or {}, self._numbers)
        callbacks = self._take(given)
        for attempt in (1, 2):
            session = await self._ready()
            try:
                result = await self._run_given(session, code, given, callbacks)
                break
            except errors.NotFound:  # it was closed, having been idle for too long
                self._session = None
                if attempt == 2:
                    raise
        if _has_left(result):
            result = replace(result, exception=None, exit_code=0)
        if result.state == "lost":
            self._is_primed = False
        self._stdout.append(result.stdout)
        self._stderr.append(result.stderr)
        if result.exception is not None and result.exception.traceback not in result.stderr:
            self._stderr.append(result.exception.traceback)
        return result

    def _take(self, given: _Given) -> Dict[str, Callback]:
        """The functions that there are now: names stay, as all state does, until they are given
        anew.  Those of a call are its own."""
        callbacks = dict(self._callbacks)
        for name in given.names:
            for old in (name, *self._inner.pop(name, ())):
                callbacks.pop(old, None)
        callbacks.update(given.callbacks)
        self._inner.update(given.inner)
        self._callbacks = callbacks
        return callbacks

    async def _run_given(self, session: AsyncSession, code: str, given: _Given,
                         callbacks: Dict[str, Callback]) -> Result:
        if given.expressions:
            result = await session.run(given.program(), mode="script", name="<globals>",
                                       policy=None, callbacks=callbacks, timeout=OURS_S)
            if not result.ok:
                return result
        return await run_or_interrupt(
            session, code, mode="function", name=STEP, globals=given.data, callbacks=callbacks,
            calls_max=self.limits.max_tool_calls, policy=self._policy(), value_max=VALUE_MAX,
            timeout=self.limits.seconds)

    def _raise(self, result: Result) -> None:
        if result.failure is not None:  # whatever it is called, no limit did it
            raise result.failure
        if result.timed_out:
            raise TimeoutError("Execution timeout after %ss" % self.limits.seconds)
        if result.oom:
            raise MemoryError("Memory limit of %d MB exceeded" % self.limits.max_memory_mb)
        try:
            result.check()
        except errors.RemoteError as why:
            raise SandboxError(why.type_name, why.message, why.traceback) from None


def _message(error: BaseException) -> str:
    return error.message if isinstance(error, SandboxError) else str(error)


def _value(result: Result) -> Any:
    """What the code returned, also where JSON has nothing like it."""
    told = result.value
    if isinstance(told, Opaque):
        try:
            return literal.read(told.text)
        except ValueError:
            return told
    raw = result.raw.get("value") or {}
    if "(" in raw.get("text", ""):
        try:
            return _with_tuples(told, literal.read(raw["text"]))
        except ValueError:
            pass  # there is something in it that only JSON makes a value of
    return tuple(told) if raw.get("type") == "tuple" and isinstance(told, list) else told


def _with_tuples(told: Any, read: Any) -> Any:
    """What JSON says, with tuples where the text of the same value has them."""
    if isinstance(told, list) and isinstance(read, (list, tuple)):
        items = [_with_tuples(*pair) for pair in zip(told, read)]
        return tuple(items) if isinstance(read, tuple) else items
    if isinstance(told, dict) and isinstance(read, dict):
        return {key: _with_tuples(item, read.get(key)) for key, item in told.items()}
    return told


def _has_left(result: Result) -> bool:
    """Whether it ended by an exit that says that all is well."""
    told = result.exception
    return told is not None and (told.type, told.module) == ("SystemExit", "builtins") \
        and told.message in ("", "None", "0")


class _Given:
    """Names for the code: what JSON has, what is written as an expression, what is to be called."""

    def __init__(self, names: Mapping[str, Any], numbers: Iterator[int]) -> None:
        self.names = list(names)
        self.data: Dict[str, Any] = {}
        self.expressions: Dict[str, str] = {}
        self.callbacks: Dict[str, Callback] = {}
        self.inner: Dict[str, List[str]] = {}  # functions that are inside of something
        self._numbers = numbers
        for name, value in names.items():
            if callable(value) and name.isidentifier():
                self.callbacks[name] = value
            elif literal.is_plain({name: value}):
                self.data[name] = value
            else:
                self.inner[name] = []
                self.expressions[name] = literal.write(value, partial(self._call, self.inner[name]))

    def _call(self, inside: List[str], function: Callback) -> str:
        """What stands for it in an expression.  Its name is never used again: the code may have
        kept an older one."""
        name = "__function_%d" % next(self._numbers)
        self.callbacks[name] = function
        inside.append(name)
        return "__names[%r]" % name

    def program(self) -> str:
        """Sets them, in a namespace of its own: in the code's any name may mean anything."""
        lines = ["__names[%r] = %s" % item for item in self.expressions.items()]
        return "import builtins as __given\n__given.exec(%r, {'__names': __given.globals()})\n" \
            "del __given" % (literal.IMPORTS + "\n".join(lines))


def create_sandbox(use_docker: bool = False, limits: Optional[ResourceLimits] = None
                   ) -> SandboxEnvironment:
    """A SandboxEnvironment.  What Docker was for is there in any case."""
    return SandboxEnvironment(limits=limits)
