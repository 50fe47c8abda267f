"""_net - sockets of two kinds with one shape, so that all above them is written once.

All above them is `async`.  With a Blocking net no await ever has to wait, so a coroutine runs to
its end when it is started: `now` does that.  With an Evented net asyncio runs it.

Fork-safe: a child never uses a connection of its parent.  Thread-safe: a connection belongs to one
request at a time; each event loop has its own, for they cannot move between loops.
"""
from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import select
import socket
import ssl
import time
import weakref
from typing import Any, Callable, Coroutine, Iterator, List, Optional, Protocol, TypeVar

from ._address import Address
from ._tunnel import Tunnel
from .errors import RequestTimeout, ServerUnavailable

T = TypeVar("T")
READ = 1 << 16
NO_ANSWER = "no answer in time"


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns; it must not have to wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    coroutine.close()
    raise RuntimeError("a blocking client waited for an event loop")


class Deadline:
    """Time that is left."""

    def __init__(self, seconds: Optional[float]) -> None:
        self.end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> Optional[float]:
        if self.end is None:
            return None
        left = self.end - time.monotonic()
        if left <= 0:
            raise RequestTimeout(NO_ANSWER)
        return left


class Socket(Protocol):
    """A connection.  Its errors are OSError, and RequestTimeout after the deadline."""

    def start(self, deadline: Deadline) -> None:
        """A request begins, which must be over by then."""

    async def send(self, data: bytes) -> None: ...

    async def recv(self) -> bytes:
        """Empty: the other side has closed."""

    def rest(self) -> None:
        """The request is over."""

    def is_stale(self) -> bool:
        """The other side has closed it, or said something unasked."""

    def close(self) -> None: ...


class Net(Protocol):
    """Makes connections, and waits."""

    def idle(self) -> List[Socket]:
        """Connections to be used again."""

    async def connect(self, address: Address, deadline: Deadline) -> Socket: ...

    async def sleep(self, seconds: float) -> None: ...

    async def call(self, function: Callable[[], T]) -> T:
        """Something that takes its time."""


# ---- blocking ----

class BlockingSocket:
    """Waits in the system call."""

    def __init__(self, made: socket.socket, deadline: Deadline) -> None:
        self._sock = made
        self._deadline = deadline
        self._has_limit = True

    def start(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._limit()

    def rest(self) -> None:
        pass

    def _limit(self) -> None:
        left = self._deadline.left()
        if left is not None or self._has_limit:  # each is a system call
            self._sock.settimeout(left)
            self._has_limit = left is not None

    async def send(self, data: bytes) -> None:
        self._limit()
        try:
            self._sock.sendall(data)
        except socket.timeout:
            raise RequestTimeout("the request could not be sent in time") from None

    async def recv(self) -> bytes:
        self._limit()
        try:
            return self._sock.recv(READ)
        except socket.timeout:
            raise RequestTimeout(NO_ANSWER) from None

    def is_stale(self) -> bool:
        try:
            poll = select.poll()
            poll.register(self._sock, select.POLLIN)
            return bool(poll.poll(0))
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        self._sock.close()


class Blocking:
    """For ordinary programs."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._idle: List[Socket] = []
        self._context: Optional[ssl.SSLContext] = None

    def idle(self) -> List[Socket]:
        if self._pid != os.getpid():
            self._pid, self._idle = os.getpid(), []
        return self._idle

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251

    async def call(self, function: Callable[[], T]) -> T:
        return function()

    async def connect(self, address: Address, deadline: Deadline) -> Socket:
        try:
            return BlockingSocket(self._connect(address, deadline), deadline)
        except socket.timeout:
            raise RequestTimeout("no connection to %s in time" % address) from None
        except OSError as why:
            raise ServerUnavailable("no server at %s: %s" % (address, why)) from why

    def _connect(self, address: Address, deadline: Deadline) -> socket.socket:
        if address.path is not None:
            made = socket.socket(socket.AF_UNIX)
            with _or_closed(made):
                made.settimeout(deadline.left())
                made.connect(address.path)
            return made
        tunnel = Tunnel.find(address)
        made = socket.create_connection(tunnel.proxy if tunnel else address.place, deadline.left())
        with _or_closed(made):
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if tunnel is not None:
                _dig(made, tunnel)
            return made if address.is_plain else self._secure(made, address.host)

    def _secure(self, made: socket.socket, host: str) -> socket.socket:
        if self._context is None:
            self._context = ssl.create_default_context()
        return self._context.wrap_socket(made, server_hostname=host)


@contextlib.contextmanager
def _or_closed(made: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        made.close()
        raise


def _dig(made: socket.socket, tunnel: Tunnel) -> None:
    made.sendall(tunnel.request)
    while not tunnel.feed(made.recv(READ)):
        pass


# ---- asyncio ----

class EventedSocket:
    """Waits in an event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._timer: Optional[asyncio.TimerHandle] = None
        self._is_late = False

    def start(self, deadline: Deadline) -> None:
        left = deadline.left()
        if left is not None:
            self._timer = asyncio.get_running_loop().call_later(left, self._expire)

    def rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        self._is_late = True
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            if self._is_late:
                raise RequestTimeout("the request could not be sent in time") from None
            raise

    async def recv(self) -> bytes:
        try:
            data = await self._reader.read(READ)
        except OSError:
            if not self._is_late:
                raise
        if self._is_late:
            raise RequestTimeout(NO_ANSWER)
        return data

    def is_stale(self) -> bool:
        # What came unasked is in the reader's buffer, which only asyncio's own code may look at.
        return self._reader.at_eof() or self._writer.is_closing() \
            or bool(getattr(self._reader, "_buffer", b""))

    def close(self) -> None:
        self.rest()
        self._writer.close()


class Evented:
    """For asyncio."""

    def __init__(self) -> None:
        self._forget()
        self._context: Optional[ssl.SSLContext] = None

    def _forget(self) -> None:
        self._pid = os.getpid()
        self._idle: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, List[Socket]] = \
            weakref.WeakKeyDictionary()

    def idle(self) -> List[Socket]:
        if self._pid != os.getpid():
            self._forget()
        loop = asyncio.get_running_loop()
        found = self._idle.get(loop)
        if found is None:
            found = self._idle[loop] = []
        return found

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def call(self, function: Callable[[], T]) -> T:
        return await asyncio.to_thread(function)

    async def connect(self, address: Address, deadline: Deadline) -> Socket:
        try:
            return EventedSocket(*await asyncio.wait_for(self._connect(address), deadline.left()))
        except asyncio.TimeoutError:
            raise RequestTimeout("no connection to %s in time" % address) from None
        except OSError as why:
            raise ServerUnavailable("no server at %s: %s" % (address, why)) from why

    async def _connect(self, address: Address
                       ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if address.path is not None:
            return await asyncio.open_unix_connection(address.path, limit=READ)
        if address.is_plain:
            return await asyncio.open_connection(*address.place, limit=READ)
        if self._context is None:
            self._context = ssl.create_default_context()
        tunnel = Tunnel.find(address)
        if tunnel is None:
            return await asyncio.open_connection(*address.place, limit=READ, ssl=self._context)
        made = await self.call(functools.partial(socket.create_connection, tunnel.proxy, 30))
        with _or_closed(made):
            made.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(made, tunnel.request)
            while not tunnel.feed(await loop.sock_recv(made, READ)):
                pass
        return await asyncio.open_connection(sock=made, limit=READ, ssl=self._context,
                                             server_hostname=address.host)
