"""_wire - blocking connections to a server, kept for the next request.

Thread-safe: a connection belongs to one request at a time.  Fork-safe: a child never uses a
connection of its parent.
"""
from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
import time
import weakref
from typing import Iterator, List, Optional

from ._address import Address
from ._exchange import PIECE, Answer, Request
from ._http1 import Lines, ProtocolError, Response, encode_head
from .errors import RequestTimeout, ServerUnavailable, from_response

IDLE_MAX = 64
READ = 1 << 16


class Connection:
    """One socket."""

    def __init__(self, address: Address, timeout: Optional[float]) -> None:
        try:
            self.sock = self._connect(address, timeout)
        except OSError as why:
            raise ServerUnavailable("no server at %s: %s" % (address, why)) from why

    @staticmethod
    def _connect(address: Address, timeout: Optional[float]) -> socket.socket:
        if address.path is None:
            made = socket.create_connection((address.host, address.port or 80), timeout)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made
        made = socket.socket(socket.AF_UNIX)
        try:
            made.settimeout(timeout)
            made.connect(address.path)
        except BaseException:
            made.close()
            raise
        return made

    def is_stale(self) -> bool:
        """The other side has closed it, or said something unasked."""
        try:
            poll = select.poll()
            poll.register(self.sock, select.POLLIN)
            return bool(poll.poll(0))
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        self.sock.close()

    def send(self, head: bytes, request: Request) -> None:
        body = request.body or b""
        if request.progress is None or not body:
            self.sock.sendall(head + body)
            return
        self.sock.sendall(head)
        for start in range(0, len(body), PIECE):
            self.sock.sendall(body[start:start + PIECE])
            request.progress(min(start + PIECE, len(body)), len(body))


class Deadline:
    """Time that is left, for sockets."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> Optional[float]:
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            raise RequestTimeout("no answer in time")
        return left


_transports: weakref.WeakSet[Transport] = weakref.WeakSet()


class Transport:
    """Requests to one server over plain HTTP."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._headers = address.headers()
        self._forget()
        _transports.add(self)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._idle: List[Connection] = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _take(self, timeout: Optional[float]) -> Connection:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return Connection(self.address, timeout)
            if not connection.is_stale():
                return connection
            connection.close()

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if len(self._idle) < IDLE_MAX:
                self._idle.append(connection)
                return
        connection.close()

    @contextlib.contextmanager
    def _exchange(self, request: Request) -> Iterator[_Incoming]:
        deadline = Deadline(request.timeout)
        connection = self._take(deadline.left())
        incoming = _Incoming(self.address, connection, request, deadline)
        try:
            incoming.ask(encode_head(request.method, self.address.prefix + request.path,
                                     {**self._headers, "Accept": request.accept},
                                     len(request.body) if request.body is not None else None))
            yield incoming
        finally:
            if incoming.response.done and incoming.response.keeps_alive:
                self._give(connection)
            else:
                connection.close()

    def send(self, request: Request) -> Answer:
        with self._exchange(request) as incoming:
            body = b"".join(incoming.pieces())
            return Answer(incoming.response.status, incoming.response.headers, body)

    @contextlib.contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        """The lines of the answer.  Leaving early closes the connection."""
        with self._exchange(request) as incoming:
            if incoming.response.status >= 300:
                raise from_response(incoming.response.status, b"".join(incoming.pieces()),
                                    incoming.response.headers.get("retry-after"))
            yield incoming.lines()


class _Incoming:
    """An answer that is being received."""

    def __init__(self, address: Address, connection: Connection, request: Request,
                 deadline: Deadline) -> None:
        self.address = address
        self.connection = connection
        self.request = request
        self.deadline = deadline
        self.response = Response(request.method)
        self._first: List[bytes] = []

    def ask(self, head: bytes) -> None:
        """Send the request, and wait until the answer begins."""
        self.connection.sock.settimeout(self.deadline.left())
        try:
            self.connection.send(head, self.request)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it had read all
        except socket.timeout as why:
            raise RequestTimeout("the request could not be sent in time") from why
        while not self.response.status:
            self._first = self._read()

    def _read(self) -> List[bytes]:
        self.connection.sock.settimeout(self.deadline.left())
        try:
            data = self.connection.sock.recv(READ)
            if data:
                return self.response.feed(data)
            self.response.finish()
            return []
        except socket.timeout as why:
            raise RequestTimeout("no answer in time") from why
        except (OSError, ProtocolError) as why:
            raise ServerUnavailable("the server at %s went away: %s" % (self.address, why),
                                    was_sent=True) from why

    def pieces(self) -> Iterator[bytes]:
        yield from self._first
        while not self.response.done:
            yield from self._read()

    def lines(self) -> Iterator[bytes]:
        lines = Lines()
        for piece in self.pieces():
            yield from lines.feed(piece)


def _after_fork() -> None:
    for transport in list(_transports):
        transport._forget()


os.register_at_fork(after_in_child=_after_fork)
