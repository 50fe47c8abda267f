"""streams - a program's events while it runs, and answers to its calls."""
from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import threading
from typing import Any, Awaitable, Dict, Optional, Set

from . import _callbacks
from ._callbacks import Callback
from ._exchange import Request
from ._net import now
from ._steps import Reader
from ._talk import Talk
from ._wire import Incoming
from .errors import APIError, NotFound, ServerUnavailable, VialError
from .events import Call, Event, Finished
from .results import Result


class _Stream:
    """What both kinds have in common: all but how a call is answered."""

    def __init__(self, talk: Talk, request: Request,
                 callbacks: Optional[Dict[str, Callback]] = None, session: Optional[str] = None,
                 is_run: bool = False) -> None:
        self._talk = talk
        self._request = request
        self._callbacks = callbacks or {}
        self._reader = Reader(session)
        self._is_run = is_run
        self._is_over = False
        self._incoming: Optional[Incoming] = None
        self._result: Optional[Result] = None

    @property
    def id(self) -> Optional[str]:
        """Of the run; None until it has started."""
        return self._reader.id

    async def _next(self) -> Optional[Event]:
        """None after the last."""
        if self._is_over:
            return None
        try:
            if self._incoming is None:
                self._incoming = await self._talk.open(self._request)
            while True:
                line = await self._incoming.line()
                if line is None:
                    break
                event = self._reader.read(line)
                if isinstance(event, Call):
                    await self._answer(event)
                elif isinstance(event, Finished):
                    self._result = event.result
                if event is not None:
                    return event
        except BaseException:
            await self._leave()
            raise
        await self._leave()
        if self._result is None:
            raise ServerUnavailable("the stream ended without a result", was_sent=True)
        return None

    async def _leave(self) -> None:
        self._is_over = True
        incoming, self._incoming = self._incoming, None
        if incoming is not None:
            incoming.close()

    async def _finish(self) -> Result:
        while await self._next() is not None:
            pass
        if self._result is None:
            raise ServerUnavailable("the stream was closed before its result", was_sent=True)
        return self._result

    async def _end(self) -> None:
        await self._leave()
        if self._is_run and self._result is None and self.id is not None:
            with contextlib.suppress(VialError):
                await self._talk.send(Request("DELETE", "/v1/runs/%s" % self.id, timeout=10))

    async def _answer(self, call: Call) -> None:
        raise NotImplementedError

    async def _outcome(self, call: Call, value: Awaitable[Any]) -> bytes:
        """What is said to the program when the function has come to its end."""
        try:
            return _callbacks.returned(call.name, await value)
        except Exception as error:
            return self._reader.failures.raised(error)
        except asyncio.CancelledError as error:
            if self._is_over:
                raise
            return self._reader.failures.raised(error)  # the function's own

    async def _post(self, call: Call, body: bytes) -> None:
        try:
            await self._send(call, body)
        except APIError as refused:  # too large, say: the program waits, and has to hear of it
            await self._send(call, self._reader.failures.raised(refused))

    async def _send(self, call: Call, body: bytes) -> None:
        with contextlib.suppress(NotFound):  # the program no longer waits
            await self._talk.send(Request("POST", self._reader.call_path(call), body, timeout=60))


class Stream(_Stream):
    """Iterate over it for the events; afterwards it has the `result`.

    Leaving a `with` block early ends the program of a run; a session's step goes on.

    Plain callbacks run in the thread that iterates, one at a time; asynchronous ones side by side
    in an event loop of the stream's own.
    """

    _loop: Optional[_Loop] = None

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.close()

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Event:
        event = now(self._next())
        if event is None:
            raise StopIteration
        return event

    @property
    def result(self) -> Result:
        """How it ended.  Reads what is left of the events."""
        return now(self._finish())

    def close(self) -> None:
        """Read no more of it."""
        now(self._end())

    async def _leave(self) -> None:
        await super()._leave()
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.stop()

    async def _answer(self, call: Call) -> None:
        function = self._callbacks.get(call.name)
        if function is None:
            await self._post(call, _callbacks.unknown(call))
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
        await self._post(call, body)

    async def _answer_later(self, call: Call, value: Awaitable[Any]) -> None:
        body = await self._outcome(call, value)
        await asyncio.to_thread(lambda: now(self._post(call, body)))


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
        """A callback that does not let itself be cancelled is left behind, in its thread."""
        with contextlib.suppress(concurrent.futures.TimeoutError):
            asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        if not self._thread.is_alive():
            self._loop.close()

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class AsyncStream(_Stream):
    """As Stream, for `async for`.

    Asynchronous callbacks are tasks of the running event loop; plain ones run in threads.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._tasks: Set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> AsyncStream:
        return self

    async def __aexit__(self, *exc: Any) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncStream:
        return self

    async def __anext__(self) -> Event:
        event = await self._next()
        if event is None:
            raise StopAsyncIteration
        return event

    async def result(self) -> Result:
        """How it ended.  Reads what is left of the events."""
        return await self._finish()

    async def aclose(self) -> None:
        """Read no more of it."""
        await self._end()

    async def _leave(self) -> None:
        await super()._leave()
        for task in list(self._tasks):
            task.cancel()

    async def _answer(self, call: Call) -> None:
        task = asyncio.create_task(self._answer_later(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_later(self, call: Call) -> None:
        function = self._callbacks.get(call.name)
        if function is None:
            body = _callbacks.unknown(call)
        else:
            body = await self._outcome(call, self._call(function, call))
        await self._post(call, body)

    @staticmethod
    async def _call(function: Callback, call: Call) -> Any:
        if _callbacks.is_async(function):
            value = function(*call.args, **call.kwargs)
        else:
            value, error = await asyncio.to_thread(_callbacks.call_in_thread, function, call)
            if error is not None:
                raise error
        return await value if inspect.isawaitable(value) else value
