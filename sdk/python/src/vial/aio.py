"""aio - the clients of client.py, for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
from typing import (
    Any,
    Awaitable,
    Callable,
    Dict,
    Generator,
    List,
    Mapping,
    Optional,
    Sequence,
    Union,
)

from . import _command
from ._callbacks import Callbacks, by_name
from ._defaults import Defaults, Options
from ._exchange import Progress, Request, encode
from ._request import Files, Limits, post
from ._steps import UNSET, Policy, SessionInfo, Unset, step_body
from ._talk import AsyncTalk
from .errors import InvalidRequest, NotFound
from .events import Display, Output
from .results import Result, parse_result
from .rich import Rich
from .streams import AsyncStream

OnOutput = Callable[[str, str], Any]
OnDisplay = Callable[[Rich], Any]


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
        language, environment, timeout, limits, env: defaults of every run and session.
        retries: how often a request is sent again that has not been carried out.

    One object can be used by any number of tasks, and in several event loops.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 language: str = "python", environment: Optional[str] = None,
                 timeout: Optional[float] = None, limits: Optional[Limits] = None,
                 env: Optional[Mapping[str, str]] = None, retries: int = 3) -> None:
        self._defaults = Defaults(server, token=token, language=language, environment=environment,
                                  timeout=timeout, limits=limits, env=env, retries=retries)
        self._talk = AsyncTalk(self._defaults.server, retries)

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close its connections.  It can be used again."""
        await self._talk.aclose()

    async def address(self) -> str:
        """Where its server is; a private one is started by asking."""
        return str(await self._talk.address())

    # ---- runs ----

    async def run(self, code: str, language: Optional[str] = None, *,
                  environment: Optional[str] = None, files: Optional[Files] = None,
                  args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
                  stdin: Union[str, bytes, None] = None, timeout: Optional[float] = None,
                  limits: Optional[Limits] = None, workdir: Optional[str] = None,
                  writable: Optional[bool] = None, exports: Sequence[str] = (),
                  name: Optional[str] = None, directory: Optional[str] = None,
                  mounts: Optional[Mapping[str, str]] = None, network: bool = False,
                  check: bool = False,
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
            check: raise if the program fails; see `Result.check`.
            progress: is told (sent, total) bytes while the request is sent.
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name,
                                         directory, network, mounts)
        result = await self._run(options, progress)
        return result.check() if check else result

    async def _run(self, options: Options, progress: Optional[Progress]) -> Result:
        is_local = (await self._talk.address()).is_local
        if is_local and self._defaults.needs_command(options):
            return await asyncio.to_thread(_command.run, **options)
        if options.command_only:
            raise ValueError("directory, mounts and network need a server on this machine")
        try:
            request = self._defaults.run_request(options, progress=progress)
            answer = (await self._talk.send(request)).json()
        except InvalidRequest as why:
            if not is_local or not self._defaults.refuses(options, why):
                raise
            return await asyncio.to_thread(_command.run, **options)
        return parse_result(answer.get("result") or {}, id=str(answer.get("id")))

    def stream(self, code: str, language: Optional[str] = None, *,
               environment: Optional[str] = None, files: Optional[Files] = None,
               args: Sequence[str] = (), env: Optional[Mapping[str, str]] = None,
               stdin: Union[str, bytes, None] = None, timeout: Optional[float] = None,
               limits: Optional[Limits] = None, workdir: Optional[str] = None,
               writable: Optional[bool] = None, exports: Sequence[str] = (),
               name: Optional[str] = None) -> AsyncStream:
        """As run(), but tells what happens while it does::

            async for event in sandbox.stream("print(1)"):
                print(event)
        """
        options = self._defaults.options(code, language, environment, files, args, env, stdin,
                                         timeout, limits, workdir, writable, exports, name)
        request = self._defaults.run_request(options, streamed=True)
        return AsyncStream(self._talk, request, is_run=True)

    async def runs(self) -> List[Dict[str, Any]]:
        """Those under way."""
        return list((await self._get("/v1/runs")).get("runs") or ())

    async def kill(self, id: str) -> bool:
        """End a run.  False: it is not under way."""
        try:
            await self._talk.send(Request("DELETE", "/v1/runs/%s" % id, timeout=30))
        except NotFound:
            return False
        return True

    # ---- the server ----

    async def _get(self, path: str) -> Dict[str, Any]:
        return (await self._talk.send(Request("GET", path, timeout=30))).json()

    async def environments(self) -> List[Dict[str, Any]]:
        """What code can run in."""
        return list((await self._get("/v1/environments")).get("environments") or ())

    async def is_healthy(self) -> bool:
        """Whether the server answers."""
        try:
            await self._get("/healthz")
        except (ConnectionError, TimeoutError):
            return False
        return True

    # ---- sessions ----

    def session(self, language: Optional[str] = None, *, environment: Optional[str] = None,
                files: Optional[Files] = None, env: Optional[Mapping[str, str]] = None,
                timeout: Optional[float] = None, limits: Optional[Limits] = None,
                idle_timeout: Optional[float] = None, lifetime: Optional[float] = None,
                max_episodes: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
                progress: Optional[Progress] = None) -> Opening:
        """An interpreter that lives on between steps: await it, or enter it with `async with`.

        Args:
            timeout: of each step.
            limits: of each step, and of the whole (`memory`, `processes`...).
            idle_timeout, lifetime: seconds until the server closes it by itself.
            policy: what the code may import and do; see docs/POLICY.md.
        """
        request = self._defaults.session_request(language, environment, files, env, timeout, limits,
                                                 idle_timeout, lifetime, max_episodes, policy,
                                                 progress)
        return Opening(self._talk, request)

    async def sessions(self) -> List[SessionInfo]:
        """Those that are alive."""
        listed = (await self._get("/v1/sessions")).get("sessions") or ()
        return [SessionInfo.parse(item) for item in listed]

    async def close_session(self, id: str) -> None:
        """Close the session of this id, if it is there."""
        with contextlib.suppress(NotFound):
            await self._talk.send(Request("DELETE", "/v1/sessions/%s" % id, timeout=60))

    async def attach(self, id: str) -> AsyncSession:
        """The session of this id, which somebody else may have made."""
        return AsyncSession(self._talk, SessionInfo.parse(await self._get("/v1/sessions/%s" % id)))


class Opening(Awaitable["AsyncSession"]):
    """A session that is about to be made."""

    def __init__(self, talk: AsyncTalk, request: Request) -> None:
        self._talk = talk
        self._request = request
        self._session: Optional[AsyncSession] = None

    async def _open(self) -> AsyncSession:
        answer = await self._talk.send(self._request)
        return AsyncSession(self._talk, SessionInfo.parse(answer.json()))

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

    def __init__(self, talk: AsyncTalk, info: SessionInfo) -> None:
        self._talk = talk
        self._path = "/v1/sessions/%s" % info.id
        self.id = info.id
        self.language = info.language
        self.environment = info.environment

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
                ones are tasks of the running loop, plain ones run in threads; exceptions travel
                with their type. Absent: those of the step before.
            calls_max: how many calls the step may make.
            on_output, on_display: are told (stream, text), and what is shown, as it happens.
            check: raise if the step fails; see `Result.check`.
        """
        functions = by_name(callbacks)
        body = step_body(code, mode=mode, name=name, globals=globals, callbacks=functions,
                         calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                         timeout=timeout)
        if functions or on_output or on_display:
            stream = AsyncStream(self._talk, post(self._path + "/runs", body, None, streamed=True),
                                 functions, self.id)
            result = await _follow(stream, on_output, on_display)
        else:
            answer = (await self._talk.send(post(self._path + "/runs", body, None))).json()
            result = parse_result(answer.get("result") or {}, id=str(answer.get("id")),
                                  session=self.id)
        return result.check() if check else result

    def stream(self, code: str, *, mode: Optional[str] = None, name: Optional[str] = None,
               globals: Optional[Mapping[str, Any]] = None, callbacks: Optional[Callbacks] = None,
               calls_max: Optional[int] = None, policy: Union[Policy, Unset] = UNSET,
               figures: Optional[bool] = None, value_max: Optional[int] = None,
               timeout: Optional[float] = None) -> AsyncStream:
        """As run(), but tells what happens while it does.  Calls are answered on the way."""
        functions = by_name(callbacks)
        body = step_body(code, mode=mode, name=name, globals=globals, callbacks=functions,
                         calls_max=calls_max, policy=policy, figures=figures, value_max=value_max,
                         timeout=timeout)
        return AsyncStream(self._talk, post(self._path + "/runs", body, None, streamed=True),
                           functions, self.id)

    async def _post(self, what: str, body: Any = None) -> Dict[str, Any]:
        request = Request("POST", self._path + what, None if body is None else encode(body),
                          timeout=120)
        return (await self._talk.send(request)).json()

    async def interrupt(self) -> bool:
        """As Ctrl-C would.  False: no step was under way."""
        return bool((await self._post("/interrupt")).get("interrupted"))

    async def reset(self) -> None:
        """A fresh interpreter and workspace, under the same id."""
        await self._post("/reset")

    async def extend(self, lifetime: float) -> None:
        """Let it live for so many seconds from now."""
        await self._post("/extend", {"lifetime": lifetime})

    async def info(self) -> SessionInfo:
        answer = await self._talk.send(Request("GET", self._path, timeout=30))
        return SessionInfo.parse(answer.json())

    async def aclose(self) -> None:
        """End it.  Once is enough; again does nothing."""
        with contextlib.suppress(NotFound):
            await self._talk.send(Request("DELETE", self._path, timeout=60))


async def _follow(stream: AsyncStream, on_output: Optional[OnOutput],
                  on_display: Optional[OnDisplay]) -> Result:
    async with stream:
        async for event in stream:
            if on_output and isinstance(event, Output):
                on_output(event.stream, event.data)
            elif on_display and isinstance(event, Display):
                on_display(event.data)
        return await stream.result()
