"""_awire - the connections of _wire, for asyncio.

Each event loop has its own: a connection cannot move between them.
"""
from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from typing import AsyncIterator, Awaitable, List, Optional, Tuple, TypeVar

from ._address import Address
from ._exchange import PIECE, Answer, Request
from ._http1 import Lines, ProtocolError, Response, encode_head
from ._wire import IDLE_MAX, READ, Deadline
from .errors import RequestTimeout, ServerUnavailable, from_response

T = TypeVar("T")
Pair = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _within(awaitable: Awaitable[T], seconds: Optional[float]) -> T:
    if seconds is None:
        return await awaitable
    return await asyncio.wait_for(awaitable, seconds)


class AsyncTransport:
    """Requests to one server over plain HTTP."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._headers = address.headers()
        self._pid = os.getpid()
        self._idle: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, List[Pair]] = \
            weakref.WeakKeyDictionary()

    def _mine(self) -> List[Pair]:
        if self._pid != os.getpid():
            self._pid, self._idle = os.getpid(), weakref.WeakKeyDictionary()
        return self._idle.setdefault(asyncio.get_running_loop(), [])

    async def aclose(self) -> None:
        idle = self._mine()
        while idle:
            idle.pop()[1].close()

    async def _take(self, deadline: Deadline) -> Pair:
        idle = self._mine()
        while idle:
            reader, writer = idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        try:
            if self.address.path is not None:
                opening = asyncio.open_unix_connection(self.address.path, limit=READ)
            else:
                opening = asyncio.open_connection(self.address.host, self.address.port or 80,
                                                  limit=READ)
            return await _within(opening, deadline.left())
        except asyncio.TimeoutError as why:
            raise RequestTimeout("no connection to %s in time" % self.address) from why
        except OSError as why:
            raise ServerUnavailable("no server at %s: %s" % (self.address, why)) from why

    @contextlib.asynccontextmanager
    async def _exchange(self, request: Request) -> AsyncIterator[_Incoming]:
        deadline = Deadline(request.timeout)
        reader, writer = await self._take(deadline)
        incoming = _Incoming(self.address, reader, request, deadline)
        try:
            head = encode_head(request.method, self.address.prefix + request.path,
                               {**self._headers, "Accept": request.accept},
                               len(request.body) if request.body is not None else None)
            try:
                await _within(self._send(writer, head, request), deadline.left())
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have answered before it had read all
            except asyncio.TimeoutError as why:
                raise RequestTimeout("the request could not be sent in time") from why
            await incoming.read_head()
            yield incoming
        finally:
            idle = self._mine()
            if incoming.response.done and incoming.response.keeps_alive and len(idle) < IDLE_MAX:
                idle.append((reader, writer))
            else:
                writer.close()

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, head: bytes, request: Request) -> None:
        body = request.body or b""
        if request.progress is None or not body:
            writer.write(head + body)
            await writer.drain()
            return
        writer.write(head)
        for start in range(0, len(body), PIECE):
            writer.write(body[start:start + PIECE])
            await writer.drain()
            request.progress(min(start + PIECE, len(body)), len(body))

    async def send(self, request: Request) -> Answer:
        async with self._exchange(request) as incoming:
            body = b"".join([piece async for piece in incoming.pieces()])
            return Answer(incoming.response.status, incoming.response.headers, body)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of the answer.  Leaving early closes the connection."""
        async with self._exchange(request) as incoming:
            if incoming.response.status >= 300:
                body = b"".join([piece async for piece in incoming.pieces()])
                raise from_response(incoming.response.status, body,
                                    incoming.response.headers.get("retry-after"))
            yield incoming.lines()


class _Incoming:
    """An answer that is being received."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, request: Request,
                 deadline: Deadline) -> None:
        self.address = address
        self.reader = reader
        self.deadline = deadline
        self.response = Response(request.method)
        self._first: List[bytes] = []

    async def _read(self) -> List[bytes]:
        seconds = self.deadline.left()
        try:
            data = await _within(self.reader.read(READ), seconds)
            if data:
                return self.response.feed(data)
            self.response.finish()
            return []
        except asyncio.TimeoutError as why:
            raise RequestTimeout("no answer in time") from why
        except (OSError, ProtocolError) as why:
            raise ServerUnavailable("the server at %s went away: %s" % (self.address, why),
                                    was_sent=True) from why

    async def read_head(self) -> None:
        while not self.response.status:
            self._first = await self._read()

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in self._first:
            yield piece
        while not self.response.done:
            for piece in await self._read():
                yield piece

    async def lines(self) -> AsyncIterator[bytes]:
        lines = Lines()
        async for piece in self.pieces():
            for line in lines.feed(piece):
                yield line


