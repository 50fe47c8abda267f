"""_core - what the clients do, written once.

Sandbox and Session run these coroutines at once (`_net.now`), AsyncSandbox and AsyncSession in
their event loop; the classes themselves have the arguments, their defaults and the words.
"""
from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Optional, Sequence
from urllib.parse import quote

from . import _command
from ._callbacks import Callback, Callbacks, by_name
from ._defaults import Defaults, Options
from ._exchange import Progress, Request, encode
from ._files import FilesCore
from ._net import Net
from ._request import post, run_body
from ._steps import Checkpoint, SessionInfo, step_body
from ._talk import Talk
from .batch import Batch, Case, batch_body, parse_batch
from .errors import InvalidRequest, NotFound
from .events import Display, Event, Output
from .results import Result, parse_result
from .rich import Rich

OnOutput = Callable[[str, str], Any]
OnDisplay = Callable[[Rich], Any]


class Core:
    """Of a sandbox."""

    def __init__(self, defaults: Defaults, net: Callable[[], Net]) -> None:
        self.defaults = defaults
        self.talk = Talk(defaults.server, defaults.retries, net)

    async def get(self, path: str) -> Dict[str, Any]:
        return await self.talk.json(Request("GET", path, timeout=30))

    async def get_list(self, path: str, member: str) -> List[Dict[str, Any]]:
        return list((await self.get(path)).get(member) or ())

    async def _delete(self, path: str, timeout: float) -> bool:
        """False: it was not there."""
        try:
            await self.talk.send(Request("DELETE", path, timeout=timeout))
        except NotFound:
            return False
        return True

    async def run(self, options: Options, progress: Optional[Progress], check: bool) -> Result:
        result = await self._run(options, progress)
        return result.check() if check else result

    async def _run(self, options: Options, progress: Optional[Progress]) -> Result:
        is_local = (await self.talk.address()).is_local
        if is_local and self.defaults.needs_command(options):
            return await self.talk.net.call(lambda: _command.run(**options))
        if options.command_only:
            raise ValueError("directory, mounts and network need a server on this machine")
        try:
            answer = await self.talk.json(self.defaults.run_request(options, progress=progress))
        except InvalidRequest as why:
            if not is_local or not self.defaults.refuses(options, why):
                raise
            return await self.talk.net.call(lambda: _command.run(**options))
        return parse_result(answer.get("result") or {}, id=str(answer.get("id")))

    async def batch(self, shared: Options, runs: Sequence[Case], **options: Any) -> Batch:
        body = batch_body(run_body(**shared), runs, **options)
        return parse_batch(await self.talk.json(post("/v1/batch", body, None, once=True)))

    async def runs(self) -> List[Dict[str, Any]]:
        return await self.get_list("/v1/runs", "runs")

    async def kill(self, id: str) -> bool:
        return await self._delete("/v1/runs/%s" % id, 30)

    async def environments(self) -> List[Dict[str, Any]]:
        return await self.get_list("/v1/environments", "environments")

    async def is_healthy(self) -> bool:
        try:
            await self.get("/healthz")
        except (ConnectionError, TimeoutError):
            return False
        return True

    async def open_session(self, request: Request) -> SessionInfo:
        return SessionInfo.parse(await self.talk.json(request))

    async def sessions(self) -> List[SessionInfo]:
        return [SessionInfo.parse(item) for item in await self.get_list("/v1/sessions", "sessions")]

    async def session_info(self, id: str) -> SessionInfo:
        return SessionInfo.parse(await self.get("/v1/sessions/%s" % id))

    async def close_session(self, id: str) -> None:
        await self._delete("/v1/sessions/%s" % id, 60)


class Step:
    """One step of a session, put together."""

    def __init__(self, session: SessionCore, code: str, callbacks: Optional[Callbacks],
                 **members: Any) -> None:
        self.session = session.id
        given = by_name(callbacks)
        if given:  # the older ones stay: this step may be refused, or taken back
            session.callbacks = {**session.callbacks, **given}
        self.callbacks = session.callbacks
        self._path = session.path + "/runs"
        self._body = step_body(code, callbacks=given, **members)

    def request(self, *, streamed: bool) -> Request:
        return post(self._path, self._body, None, streamed=streamed)


class SessionCore:
    """Of a session."""

    def __init__(self, talk: Talk, info: SessionInfo,
                 callbacks: Optional[Dict[str, Callback]] = None) -> None:
        self.talk = talk
        self.id = info.id
        self.path = "/v1/sessions/%s" % info.id
        self.files = FilesCore(talk, self.path)
        self.callbacks = callbacks or {}  # those that the interpreter may know

    async def run(self, step: Step) -> Result:
        answer = await self.talk.json(step.request(streamed=False))
        return parse_result(answer.get("result") or {}, id=str(answer.get("id")), session=self.id)

    async def post(self, what: str, body: Any = None) -> Dict[str, Any]:
        return await self.talk.json(Request("POST", self.path + what,
                                            None if body is None else encode(body), timeout=120))

    async def undo(self, steps: int) -> Result:
        return self._back(await self.post("/undo?steps=%d" % steps))

    async def restore(self, name: str) -> Result:
        return self._back(await self.post("/checkpoints/%s/restore" % quote(name, safe="")))

    def _back(self, answer: Dict[str, Any]) -> Result:
        return parse_result(answer.get("result") or {}, id=str(answer.get("id")), session=self.id)

    async def checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint.parse_all(await self.post("/checkpoints", {"name": name}))[0]

    async def checkpoints(self) -> List[Checkpoint]:
        return Checkpoint.parse_all(
            await self.talk.json(Request("GET", self.path + "/checkpoints", timeout=120)))

    async def forget(self, name: str) -> None:
        path = "%s/checkpoints/%s" % (self.path, quote(name, safe=""))
        await self.talk.json(Request("DELETE", path, timeout=120))

    async def fork(self, count: int, deterministic: bool) -> List[SessionInfo]:
        answer = await self.post("/fork", {"count": count, "deterministic": deterministic})
        return [SessionInfo.parse(branch) for branch in answer.get("branches") or []]

    async def reset(self) -> None:
        await self.post("/reset")
        self.callbacks = {}

    async def interrupt(self) -> bool:
        return bool((await self.post("/interrupt")).get("interrupted"))

    async def info(self) -> SessionInfo:
        return SessionInfo.parse(await self.talk.json(Request("GET", self.path, timeout=30)))

    async def close(self) -> None:
        with contextlib.suppress(NotFound):
            await self.talk.send(Request("DELETE", self.path, timeout=60))


def tell(event: Event, on_output: Optional[OnOutput], on_display: Optional[OnDisplay]) -> None:
    """An event to whom it may concern."""
    if on_output and isinstance(event, Output):
        on_output(event.stream, event.data)
    elif on_display and isinstance(event, Display):
        on_display(event.data)
