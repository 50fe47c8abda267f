"""aio - the clients of client.py, for asyncio."""
from __future__ import annotations

from typing import (
    Any,
    Awaitable,
    Dict,
    Generator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from ._callbacks import Callback, Callbacks
from ._core import Core, OnDisplay, OnOutput, SessionCore, Step, tell
from ._defaults import Defaults
from ._exchange import Progress, Request
from ._net import Evented
from ._request import Files, Limits
from ._steps import UNSET, Checkpoint, Policy, Rewind, SessionInfo, Unset
from ._talk import Talk
from .batch import Batch, Case
from .files import AsyncSessionFiles
from .results import Result
from .streams import AsyncStream


class AsyncSandbox:
    """Runs code that you did not write.

    Without a server, it finds the local daemon, or starts a private one for this process::

        sandbox = vial.AsyncSandbox()
        print((await sandbox.run("print(6 * 7)")).stdout)

        async with sandbox.session() as session:
            await session.run("x = 6")
            assert (await session.run("x * 7")).value == 42

    Args:
        server: `http://...`, `https://...`, or the path of a Unix socket. Default: VIAL_URL, the
            local daemon's socket, a private daemon.
        token: for a server that asks for one. Default: VIAL_TOKEN, with VIAL_URL.
        language, environment, timeout, limits, env, allow_hosts: defaults of every run and session.
        retries: how often a request is sent again that has not been carried out.

    One object can be used by any number of tasks, and in several event loops.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 language: str = "python", environment: Optional[str] = None,
                 timeout: Optional[float] = None, limits: Optional[Limits] = None,
                 env: Optional[Mapping[str, str]] = None,
                 allow_hosts: Optional[Sequence[str]] = None, retries: int = 3) -> None:
        self._defaults = Defaults(server, token=token, language=language, environment=environment,
                                  timeout=timeout, limits=limits, env=env,
                                  allow_hosts=allow_hosts, retries=retries)
        self._core = Core(self._defaults, Evented)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections.  It can be used again."""
        self._core.talk.close()

    async def address(self) -> str:
        """Where its server is; a private one is started by asking."""
        return str(await self._core.talk.address())

    async def is_local(self) -> bool:
        """Whether its server is on this machine."""
        return (await self._core.talk.address()).is_local

    # ---- runs ----

    async def run(self, code: str, language: Optional[str] = None, *,
                  environment: Optional[str] = None, files: Optional[Files] = None,
                  args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
                  stdin: Union[str, bytes, None] = None, timeout: Optional[float] = None,
                  limits: Optional[Limits] = None, workdir: Optional[str] = None,
                  writable: Optional[bool] = None, exports: Sequence[str] = (),
                  name: Optional[str] = None, directory: Optional[str] = None,
                  mounts: Optional[Mapping[str, str]] = None, network: bool = False,
                  allow_hosts: Optional[Sequence[str]] = None, check: bool = False,
                  progress: Optional[Progress] = None) -> Result:
        """Run a program in a fresh sandbox, and wait for its end.

        Args:
            files: what the workspace holds, by name: text, bytes, or the path of a file here.
            limits: `memory`, `cpus`, `processes`...; see vial-run(1).
            exports: names or patterns of files to hand back in `Result.exports`.
            name: of the file that the code is in.
            workdir, writable: where the workspace is (/sandbox), and whether it can be written.
            directory: a directory of this machine as the workspace; only with a local server.
            mounts: others of this machine to be read, by where they appear; likewise.
            network: the host's network, where the operator permits it; only with a local server.
            allow_hosts: hosts that it may reach: "example.org", "*.example.com:8443"; the
                result's `network` says what became of it. Default: the server's, which is none.
            check: raise if the program fails; see `Result.check`.
            progress: is told (sent, total) bytes while the request is sent.
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name,
                                         directory, network, mounts, allow_hosts)
        return await self._core.run(options, progress, check)

    def stream(self, code: str, language: Optional[str] = None, *,
               environment: Optional[str] = None, files: Optional[Files] = None,
               args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
               stdin: Union[str, bytes, None] = None, timeout: Optional[float] = None,
               limits: Optional[Limits] = None, workdir: Optional[str] = None,
               writable: Optional[bool] = None, exports: Sequence[str] = (),
               name: Optional[str] = None,
               allow_hosts: Optional[Sequence[str]] = None) -> AsyncStream:
        """As run(), but tells what happens while it does::

            async for event in sandbox.stream("print(1)"):
                print(event)
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name,
                                         allow_hosts=allow_hosts)
        return AsyncStream(self._core.talk, self._defaults.run_request(options, streamed=True),
                           is_run=True)

    async def batch(self, code: Optional[str], runs: Sequence[Case],
                    language: Optional[str] = None, *,
                    environment: Optional[str] = None, files: Optional[Files] = None,
                    args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
                    timeout: Optional[float] = None, limits: Optional[Limits] = None,
                    exports: Sequence[str] = (), name: Optional[str] = None,
                    compare: Optional[str] = None, tolerance: Optional[float] = None,
                    parallel: Optional[int] = None, stop_on_failure: bool = False,
                    detail: Optional[str] = None) -> Batch:
        """Run a program many times, each in a fresh sandbox, and judge what it prints::

            (await sandbox.batch("print(int(input()) ** 2)", [("2", "4"), ("3", "9")])).verdict

        Args:
            code: the program that they share; None: each has its own.
            runs: (stdin, expected) each, or a mapping with any members of a run, and `expected`,
                `label`, `compare`, `tolerance`.
            compare: "trimmed" (the default: blanks at the ends of lines do not count), "exact",
                "tokens" or "floats", which may differ by `tolerance`.
            parallel: how many at once.
            stop_on_failure: the first that is not accepted is the last.
            detail: "full", "failures" or "verdicts": which have their `result`.
        """
        shared = self._defaults.options(code, language, environment, files, args, env, None,
                                        timeout, limits, None, None, exports, name)
        return await self._core.batch(shared, runs, compare=compare, tolerance=tolerance,
                                      parallel=parallel, stop_on_failure=stop_on_failure,
                                      detail=detail)

    async def runs(self) -> List[Dict[str, Any]]:
        """Those under way."""
        return await self._core.runs()

    async def kill(self, id: str) -> bool:
        """End a run.  False: it is not under way."""
        return await self._core.kill(id)

    # ---- the server ----

    async def environments(self) -> List[Dict[str, Any]]:
        """What code can run in."""
        return await self._core.environments()

    async def is_healthy(self) -> bool:
        """Whether the server answers."""
        return await self._core.is_healthy()

    # ---- sessions ----

    def session(self, language: Optional[str] = None, *, environment: Optional[str] = None,
                files: Optional[Files] = None, env: Optional[Mapping[str, str]] = None,
                timeout: Optional[float] = None, limits: Optional[Limits] = None,
                idle_timeout: Optional[float] = None, lifetime: Optional[float] = None,
                max_episodes: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
                allow_hosts: Optional[Sequence[str]] = None, rewind: Rewind = False,
                progress: Optional[Progress] = None) -> Opening:
        """An interpreter that lives on between steps: await it, or enter it with `async with`.

        Args:
            timeout: of each step.
            limits: of each step, and of the whole (`memory`, `processes`...).
            idle_timeout, lifetime: seconds until the server closes it by itself.
            policy: what the code may import and do; see docs/POLICY.md.
            allow_hosts: hosts that it may reach, as for run().
        """
        request = self._defaults.session_request(language, environment, files, env, timeout, limits,
                                                 idle_timeout, lifetime, max_episodes, policy,
                                                 allow_hosts, rewind, progress)
        return Opening(self._core, request)

    async def sessions(self) -> List[SessionInfo]:
        """Those that are alive."""
        return await self._core.sessions()

    async def close_session(self, id: str) -> None:
        """Close the session of this id, if it is there."""
        await self._core.close_session(id)

    async def attach(self, id: str) -> AsyncSession:
        """The session of this id, which somebody else may have made."""
        return AsyncSession(self._core.talk, await self._core.session_info(id))


class Opening(Awaitable["AsyncSession"]):
    """A session that is about to be made."""

    def __init__(self, core: Core, request: Request) -> None:
        self._core = core
        self._request = request
        self._session: Optional[AsyncSession] = None

    async def _open(self) -> AsyncSession:
        return AsyncSession(self._core.talk, await self._core.open_session(self._request))

    def __await__(self) -> Generator[Any, None, AsyncSession]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncSession:
        self._session = await self._open()
        return self._session

    async def __aexit__(self, *exc: Any) -> None:
        if self._session is not None:
            await self._session.aclose()


class AsyncSession:
    """A live interpreter: variables, functions, imports and files stay from step to step.

    Steps run in the order in which they were asked for.
    """

    def __init__(self, talk: Talk, info: SessionInfo,
                 callbacks: Optional[Dict[str, Callback]] = None) -> None:
        self._core = SessionCore(talk, info, callbacks)
        self.id = info.id
        self.language = info.language
        self.environment = info.environment
        self.files = AsyncSessionFiles(self._core.files)

    def __repr__(self) -> str:
        return "<Session %s, %s>" % (self.id, self.environment or self.language)

    async def __aenter__(self) -> AsyncSession:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    async def run(self, code: str, *, mode: Optional[str] = None, name: Optional[str] = None,
            globals: Optional[Mapping[str, Any]] = None, callbacks: Optional[Callbacks] = None,
            calls_max: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
            figures: Optional[bool] = None, value_max: Optional[int] = None,
            timeout: Optional[float] = None, on_output: Optional[OnOutput] = None,
            on_display: Optional[OnDisplay] = None, check: bool = False) -> Result:
        """Run a step, and wait for its end.

        Args:
            mode: "cell" (the default: the value of a last expression, top-level await), "script",
                or "function" (the body of an async function: `return` gives the value).
            globals: names to set before, to what JSON can say.
            callbacks: functions of this process that the code may call, by name. Asynchronous
                ones, which the code may await, are tasks of the running loop; plain ones run in
                threads. Exceptions travel with their type. Absent: those of the step before.
            calls_max: how many calls the step may make.
            on_output, on_display: are told (stream, text), and what is shown, as it happens.
            check: raise if the step fails; see `Result.check`.
        """
        step = Step(self._core, code, callbacks, mode=mode, name=name, globals=globals,
                    calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                    timeout=timeout)
        if step.callbacks or on_output or on_display:
            async with AsyncStream(self._core.talk, step.request(streamed=True), step.callbacks,
                                   self.id) as stream:
                async for event in stream:
                    tell(event, on_output, on_display)
                result = await stream.result()
        else:
            result = await self._core.run(step)
        return result.check() if check else result

    def stream(self, code: str, *, mode: Optional[str] = None, name: Optional[str] = None,
               globals: Optional[Mapping[str, Any]] = None, callbacks: Optional[Callbacks] = None,
               calls_max: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
               figures: Optional[bool] = None, value_max: Optional[int] = None,
               timeout: Optional[float] = None) -> AsyncStream:
        """As run(), but tells what happens while it does.  Calls are answered on the way."""
        step = Step(self._core, code, callbacks, mode=mode, name=name, globals=globals,
                    calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                    timeout=timeout)
        return AsyncStream(self._core.talk, step.request(streamed=True), step.callbacks, self.id)

    async def interrupt(self) -> bool:
        """As Ctrl-C would.  False: no step was under way."""
        return await self._core.interrupt()

    def fork(self, count: int = 1, *, deterministic: bool = False) -> AsyncFork:
        """More sessions that are as this one is now: see Session.fork().

            async with session.fork(8) as branches:   # closed at the end
                await asyncio.gather(*(branch.run("...") for branch in branches))

        `await session.fork(8)` is a list of them, which are the caller's to close.
        """
        return AsyncFork(self._core, count, deterministic)

    async def undo(self, steps: int = 1) -> Result:
        """Take back the last steps, with their files: see Session.undo()."""
        return await self._core.undo(steps)

    async def checkpoint(self, name: str) -> Checkpoint:
        """Keep what the session is now, with its files, under a name.  It needs `rewind`."""
        return await self._core.checkpoint(name)

    async def restore(self, name: str) -> Result:
        """Be again what it was at a checkpoint: see Session.restore()."""
        return await self._core.restore(name)

    async def checkpoints(self) -> List[Checkpoint]:
        """Those there are."""
        return await self._core.checkpoints()

    async def forget(self, name: str) -> None:
        """Forget a checkpoint, and give its memory back."""
        await self._core.forget(name)

    async def reset(self) -> None:
        """A fresh interpreter and workspace, under the same id."""
        await self._core.reset()

    async def extend(self, lifetime: float) -> None:
        """Let it live for so many seconds from now."""
        await self._core.post("/extend", {"lifetime": lifetime})

    async def info(self) -> SessionInfo:
        """What the server says about it."""
        return await self._core.info()

    async def aclose(self) -> None:
        """End it.  Once is enough; again does nothing."""
        await self._core.close()


class AsyncFork:
    """A fork that is asked for when it is awaited, or entered."""

    def __init__(self, core: SessionCore, count: int, deterministic: bool) -> None:
        self._core, self._count, self._deterministic = core, count, deterministic
        self._branches: List[AsyncSession] = []

    async def _fork(self) -> List[AsyncSession]:
        infos = await self._core.fork(self._count, self._deterministic)
        return [AsyncSession(self._core.talk, info, self._core.callbacks) for info in infos]

    def __await__(self) -> Generator[Any, None, List[AsyncSession]]:
        return self._fork().__await__()

    async def __aenter__(self) -> List[AsyncSession]:
        self._branches = await self._fork()
        return self._branches

    async def __aexit__(self, *exc: Any) -> None:
        for branch in self._branches:
            await branch.aclose()
