"""streams - a program's events while it runs, and answers to its calls."""
from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from typing import (
    Any,
    AsyncIterator,
    Awaitable,
    Dict,
    Iterator,
    Optional,
    Set,
)

from . import _callbacks
from ._callbacks import Callback
from ._exchange import Request
from ._steps import Reader
from ._talk import AsyncTalk, Talk
from .errors import NotFound, ServerUnavailable, VialError
from .events import Call, Event, Finished
from .results import Result


def _missing() -> ServerUnavailable:
    return ServerUnavailable("the stream ended without a result", was_sent=True)


class Stream:
    """Iterate over it for the events; afterwards it has the `result`.

    Leaving a `with` block early ends the program of a run; a session's step goes on.

    Plain callbacks run in the thread that iterates, one at a time; asynchronous ones side by side
    in an event loop of the stream's own.
    """

    def __init__(self, talk: Talk, request: Request,
                 callbacks: Optional[Dict[str, Callback]] = None, session: Optional[str] = None,
                 is_run: bool = False) -> None:
        self._talk = talk
        self._request = request
        self._callbacks = callbacks or {}
        self._reader = Reader(session)
        self._is_run = is_run
        self._events = self._iterate()
        self._loop: Optional[_Loop] = None
        self._result: Optional[Result] = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Event]:
        return self._events

    def __next__(self) -> Event:
        return next(self._events)

    @property
    def id(self) -> Optional[str]:
        return self._reader.id

    @property
    def result(self) -> Result:
        """How it ended.  Reads what is left of the events."""
        for _ in self._events:
            pass
        if self._result is None:
            raise _missing()
        return self._result

    def close(self) -> None:
        self._events.close()  # type: ignore[attr-defined]
        if self._is_run and self._result is None and self.id is not None:
            with contextlib.suppress(VialError):
                self._talk.send(Request("DELETE", "/v1/runs/%s" % self.id, timeout=10))

    def _iterate(self) -> Iterator[Event]:
        try:
            with self._talk.stream(self._request) as lines:
                for line in lines:
                    event = self._reader.read(line)
                    if isinstance(event, Call):
                        self._answer(event)
                    elif isinstance(event, Finished):
                        self._result = event.result
                    if event is not None:
                        yield event
            if self._result is None:
                raise _missing()
        finally:
            if self._loop is not None:
                self._loop.stop()

    def _answer(self, call: Call) -> None:
        function = self._callbacks.get(call.name)
        if function is None:
            self._post(call, _callbacks.unknown(call))
            return
        try:
            value = function(*call.args, **call.kwargs)
            if inspect.isawaitable(value):
                if self._loop is None:
                    self._loop = _Loop()
                self._loop.start(self._answer_later(call, value))
                return
            body = _callbacks.returned(call.name, value)
        except Exception as error:
            body = self._reader.failures.raised(error)
        self._post(call, body)

    async def _answer_later(self, call: Call, value: Awaitable[Any]) -> None:
        try:
            body = _callbacks.returned(call.name, await value)
        except Exception as error:
            body = self._reader.failures.raised(error)
        await asyncio.to_thread(self._post, call, body)

    def _post(self, call: Call, body: bytes) -> None:
        with contextlib.suppress(NotFound):  # the program no longer waits
            self._talk.send(Request("POST", self._reader.call_path(call), body, timeout=60))


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True,
                                        name="vial-callbacks")
        self._thread.start()

    def start(self, coroutine: Any) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class AsyncStream:
    """As Stream, for `async for`.

    Asynchronous callbacks are tasks of the running event loop; plain ones run in threads.
    """

    def __init__(self, talk: AsyncTalk, request: Request,
                 callbacks: Optional[Dict[str, Callback]] = None, session: Optional[str] = None,
                 is_run: bool = False) -> None:
        self._talk = talk
        self._request = request
        self._callbacks = callbacks or {}
        self._reader = Reader(session)
        self._is_run = is_run
        self._events = self._iterate()
        self._tasks: Set[asyncio.Task[None]] = set()
        self._result: Optional[Result] = None

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def __anext__(self) -> Event:
        return await self._events.__anext__()

    @property
    def id(self) -> Optional[str]:
        return self._reader.id

    async def result(self) -> Result:
        """How it ended.  Reads what is left of the events."""
        async for _ in self._events:
            pass
        if self._result is None:
            raise _missing()
        return self._result

    async def aclose(self) -> None:
        await self._events.aclose()  # type: ignore[attr-defined]
        if self._is_run and self._result is None and self.id is not None:
            with contextlib.suppress(VialError):
                await self._talk.send(Request("DELETE", "/v1/runs/%s" % self.id, timeout=10))

    async def _iterate(self) -> AsyncIterator[Event]:
        try:
            async with self._talk.stream(self._request) as lines:
                async for line in lines:
                    event = self._reader.read(line)
                    if isinstance(event, Call):
                        task = asyncio.create_task(self._answer(event))
                        self._tasks.add(task)
                        task.add_done_callback(self._tasks.discard)
                    elif isinstance(event, Finished):
                        self._result = event.result
                    if event is not None:
                        yield event
            if self._result is None:
                raise _missing()
        finally:
            for task in list(self._tasks):
                task.cancel()

    async def _answer(self, call: Call) -> None:
        function = self._callbacks.get(call.name)
        if function is None:
            body = _callbacks.unknown(call)
        else:
            try:
                if _callbacks.is_async(function):
                    value = function(*call.args, **call.kwargs)
                else:
                    value = await asyncio.to_thread(function, *call.args, **call.kwargs)
                value = await value if inspect.isawaitable(value) else value
                body = _callbacks.returned(call.name, value)
            except Exception as error:
                body = self._reader.failures.raised(error)
        with contextlib.suppress(NotFound):  # the program no longer waits
            await self._talk.send(Request("POST", self._reader.call_path(call), body, timeout=60))
