"""_talk - requests to whichever server it is, with their retries."""
from __future__ import annotations

import contextlib
from typing import Any, Awaitable, Callable, Dict, Optional, TypeVar

from ._address import Address
from ._discover import Server
from ._exchange import Answer, Backoff, Request
from ._net import Net
from ._wire import Incoming, Transport
from .errors import APIError, ServerUnavailable, VialError

T = TypeVar("T")


class Talk:
    """Of one client, of either kind: `net` says which."""

    def __init__(self, server: Server, retries: int, net: Callable[[], Net]) -> None:
        self.server = server
        self.retries = retries
        self.net = net()
        self._make_net = net
        self._made: Optional[Transport] = None

    async def address(self) -> Address:
        if self.server.may_block():  # it may have to start a daemon
            return await self.net.call(self.server.address)
        return self.server.address()

    async def _transport(self) -> Transport:
        address = await self.address()
        made = self._made
        if made is not None and made.address is address:
            return made
        made = self._made = Transport(address, self._make_net())
        return made

    def close(self) -> None:
        """Its connections.  It can be used again."""
        made, self._made = self._made, None
        if made is not None:
            made.close()

    async def _try(self, request: Request, what: Callable[[Transport], Awaitable[T]]) -> T:
        backoff = Backoff(self.retries)
        try:
            while True:
                try:
                    return await what(await self._transport())
                except (APIError, ServerUnavailable) as why:
                    wait = backoff.after(request, why)
                    if wait is None:
                        raise
                await self.net.sleep(wait)
        except APIError:
            raise
        except BaseException as why:
            if request.key and getattr(why, "was_sent", True):
                await self._abandon(request.key)
            raise

    async def _abandon(self, key: str) -> None:
        """Nobody waits for it any more, and the server would not notice."""
        with contextlib.suppress(VialError, OSError):
            await (await self._transport()).send(Request("DELETE", "/v1/runs/" + key, timeout=2))

    async def send_once(self, request: Request) -> Answer:
        """The answer, whatever it is."""
        return await (await self._transport()).send(request)

    async def send(self, request: Request) -> Answer:
        """The answer, if it is a success."""
        async def once(transport: Transport) -> Answer:
            return (await transport.send(request)).check()
        return await self._try(request, once)

    async def json(self, request: Request) -> Dict[str, Any]:
        """What the answer says."""
        return (await self.send(request)).json()

    async def open(self, request: Request) -> Incoming:
        """An answer that has begun, and is a success."""
        async def once(transport: Transport) -> Incoming:
            incoming = await transport.open(request)
            if incoming.status < 300:
                return incoming
            try:
                raise (await incoming.answer()).error()
            finally:
                incoming.close()
        return await self._try(request, once)
