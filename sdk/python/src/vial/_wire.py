"""_wire - requests to one server over connections that are kept for the next."""
from __future__ import annotations

from collections import deque
from typing import Deque, List, Optional

from ._address import Address
from ._exchange import PIECE, Answer, Request, Source
from ._http1 import Lines, ProtocolError, Response, encode_head, encode_headers
from ._net import Deadline, Net, Socket
from .errors import RequestTimeout, ServerUnavailable

IDLE_MAX = 64


class Incoming:
    """An answer that is being received.  Whoever has one must close it."""

    def __init__(self, address: Address, net: Net, connection: Socket, method: str) -> None:
        self._address = address
        self._net = net
        self._connection: Optional[Socket] = connection
        self._response = Response(method)
        self._pieces: List[bytes] = []
        self._lines: Deque[bytes] = deque()
        self._split = Lines()

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def length(self) -> Optional[int]:
        """Of its body, if that was said."""
        text = self._response.headers.get("content-length", "")
        return int(text) if text.isdigit() else None

    async def ask(self, head: bytes, request: Request, deadline: Deadline) -> None:
        """Send the request, and wait until the answer begins."""
        assert self._connection is not None
        self._connection.start(deadline)
        try:
            if request.source is not None:
                await self._send_source(self._connection, head, request, request.source)
            else:
                await self._send(self._connection, head, request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it had read all
        except RequestTimeout:
            raise
        except OSError as why:
            raise self._lost(why) from why
        while not self._response.status:
            self._pieces = await self._read()

    @staticmethod
    async def _send(connection: Socket, head: bytes, request: Request) -> None:
        body = request.body or b""
        if request.progress is None or not body:
            await connection.send(head + body)
            return
        await connection.send(head)
        for start in range(0, len(body), PIECE):
            await connection.send(body[start:start + PIECE])
            request.progress(min(start + PIECE, len(body)), len(body))

    async def _send_source(self, connection: Socket, head: bytes, request: Request,
                           source: Source) -> None:
        sent = 0
        await self._net.call(source.start)
        await connection.send(head)
        while True:
            piece = await self._net.call(lambda: source.read(PIECE))
            if source.total is None:
                await connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            elif piece:
                await connection.send(piece)
            if not piece:
                break
            sent += len(piece)
            if request.progress is not None:
                request.progress(sent, source.total or 0)
        if source.total is not None and sent != source.total:
            raise ValueError("%d bytes were announced, and %d were there" % (source.total, sent))

    async def _read(self) -> List[bytes]:
        assert self._connection is not None
        try:
            data = await self._connection.recv()
            if data:
                return self._response.feed(data)
            self._response.finish()
            return []
        except RequestTimeout:
            raise
        except (OSError, ProtocolError) as why:
            raise self._lost(why) from why

    def _lost(self, why: Exception) -> ServerUnavailable:
        return ServerUnavailable("the server at %s went away: %s" % (self._address, why),
                                 was_sent=True)

    async def answer(self) -> Answer:
        """All of it."""
        while not self._response.done:
            self._pieces += await self._read()
        return Answer(self._response.status, self._response.headers, b"".join(self._pieces))

    async def piece(self) -> bytes:
        """The next bytes of its body; empty after the last."""
        while not self._pieces:
            if self._response.done:
                return b""
            self._pieces = await self._read()
        return self._pieces.pop(0)

    async def line(self) -> Optional[bytes]:
        """The next line of its body; None after the last."""
        while not self._lines:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                self._lines.extend(self._split.feed(piece))
            if not self._lines:
                if self._response.done:
                    return None
                self._pieces = await self._read()
        return self._lines.popleft()

    def close(self) -> None:
        """The connection is kept if nothing more can come on it."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._response.done and self._response.keeps_alive:
            idle = self._net.idle()
            if len(idle) < IDLE_MAX:
                connection.rest()
                idle.append(connection)
                return
        connection.close()


class Transport:
    """Requests to one server."""

    def __init__(self, address: Address, net: Net) -> None:
        self.address = address
        self._net = net
        self._headers = encode_headers(address.headers())

    def close(self) -> None:
        idle = self._net.idle()
        while idle:
            idle.pop().close()

    async def _connection(self, deadline: Deadline) -> Socket:
        idle = self._net.idle()
        while idle:
            try:
                connection = idle.pop()
            except IndexError:  # another thread was faster
                break
            if not connection.is_stale():
                return connection
            connection.close()
        return await self._net.connect(self.address, deadline)

    def _head(self, request: Request) -> bytes:
        path = self.address.prefix + request.path
        source = request.source
        if source is None:
            return encode_head(request.method, path, self._headers, request.accept,
                               None if request.body is None else len(request.body),
                               key=request.key)
        return encode_head(request.method, path, self._headers, request.accept,
                           -1 if source.total is None else source.total,
                           "application/octet-stream")

    async def open(self, request: Request) -> Incoming:
        """Send a request; its answer has begun, and may be any."""
        deadline = Deadline(request.timeout)
        incoming = Incoming(self.address, self._net, await self._connection(deadline),
                            request.method)
        try:
            head = self._head(request)
            await incoming.ask(head, request, deadline)
        except BaseException:
            incoming.close()
            raise
        return incoming

    async def send(self, request: Request) -> Answer:
        incoming = await self.open(request)
        try:
            return await incoming.answer()
        finally:
            incoming.close()
