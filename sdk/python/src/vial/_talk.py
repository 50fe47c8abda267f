"""_talk - requests with their retries, for blocking clients and for asyncio."""
from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, AsyncIterator, Iterator, Optional, Union

from . import _awire, _wire
from ._address import Address
from ._discover import Server
from ._exchange import Answer, Backoff, Request
from .errors import APIError, ServerUnavailable

if TYPE_CHECKING:
    from ._secure import AsyncSecureTransport, SecureTransport

Blocking = Union[_wire.Transport, "SecureTransport"]
Asynchronous = Union[_awire.AsyncTransport, "AsyncSecureTransport"]


def connect(address: Address) -> Blocking:
    if address.is_plain:
        return _wire.Transport(address)
    from ._secure import SecureTransport  # httpx takes its time
    return SecureTransport(address)


def connect_async(address: Address) -> Asynchronous:
    if address.is_plain:
        return _awire.AsyncTransport(address)
    from ._secure import AsyncSecureTransport
    return AsyncSecureTransport(address)


class Talk:
    """Blocking."""

    def __init__(self, server: Server, retries: int) -> None:
        self.server = server
        self.retries = retries
        self._made: Optional[Blocking] = None

    def address(self) -> Address:
        return self.server.address()

    def transport(self) -> Blocking:
        address = self.server.address()
        made = self._made
        if made is not None and made.address is address:
            return made
        made = connect(address)
        self._made = made
        return made

    def close(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            made.close()

    def send(self, request: Request) -> Answer:
        """The answer, if it is a success."""
        backoff = Backoff(self.retries)
        while True:
            try:
                return self.transport().send(request).check()
            except (APIError, ServerUnavailable) as why:
                wait = backoff.after(request, why)
                if wait is None:
                    raise
            time.sleep(wait)

    @contextlib.contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        backoff = Backoff(self.retries)
        with contextlib.ExitStack() as stack:
            while True:
                try:
                    lines = stack.enter_context(self.transport().stream(request))
                    break
                except (APIError, ServerUnavailable) as why:
                    wait = backoff.after(request, why)
                    if wait is None:
                        raise
                time.sleep(wait)
            yield lines


class AsyncTalk:
    """For asyncio."""

    def __init__(self, server: Server, retries: int) -> None:
        self.server = server
        self.retries = retries
        self._made: Optional[Asynchronous] = None
        self._is_found = False

    async def address(self) -> Address:
        if self._is_found and not self.server.may_block():
            return self.server.address()
        address = await asyncio.to_thread(self.server.address)  # it may start a daemon
        self._is_found = True
        return address

    async def transport(self) -> Asynchronous:
        address = await self.address()
        made = self._made
        if made is not None and made.address is address:
            return made
        made = connect_async(address)
        self._made = made
        return made

    async def aclose(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made.aclose()

    async def send(self, request: Request) -> Answer:
        """The answer, if it is a success."""
        backoff = Backoff(self.retries)
        while True:
            try:
                return (await (await self.transport()).send(request)).check()
            except (APIError, ServerUnavailable) as why:
                wait = backoff.after(request, why)
                if wait is None:
                    raise
            await asyncio.sleep(wait)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        backoff = Backoff(self.retries)
        async with contextlib.AsyncExitStack() as stack:
            while True:
                try:
                    transport = await self.transport()
                    lines = await stack.enter_async_context(transport.stream(request))
                    break
                except (APIError, ServerUnavailable) as why:
                    wait = backoff.after(request, why)
                    if wait is None:
                        raise
                await asyncio.sleep(wait)
            yield lines
