"""_secure - servers behind TLS, by httpx: it knows about certificates, proxies and the rest."""
from __future__ import annotations

import contextlib
import os
from typing import AsyncIterator, Iterator, Optional

import httpx

from ._address import Address
from ._exchange import Answer, Request
from .errors import RequestTimeout, ServerUnavailable, VialError, from_response


def _translate(address: Address, why: Exception) -> VialError:
    if isinstance(why, httpx.TimeoutException):
        return RequestTimeout("no answer in time")
    was_sent = not isinstance(why, (httpx.ConnectError, httpx.UnsupportedProtocol))
    return ServerUnavailable("the server at %s: %s" % (address, why), was_sent=was_sent)


def _headers(address: Address, request: Request) -> dict[str, str]:
    made = {**address.headers(), "Accept": request.accept}
    if request.body is not None:
        made["Content-Type"] = "application/json"
    return made


class SecureTransport:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._pid = -1
        self._made: Optional[httpx.Client] = None

    def _client(self) -> httpx.Client:
        if self._made is None or self._pid != os.getpid():
            self._pid, self._made = os.getpid(), httpx.Client(base_url=self.address.url)
        return self._made

    def close(self) -> None:
        if self._made is not None and self._pid == os.getpid():
            self._made.close()
        self._made = None

    def send(self, request: Request) -> Answer:
        try:
            got = self._client().request(request.method, request.path, content=request.body,
                                         headers=_headers(self.address, request),
                                         timeout=request.timeout)
        except httpx.HTTPError as why:
            raise _translate(self.address, why) from why
        if request.progress and request.body:
            request.progress(len(request.body), len(request.body))
        return Answer(got.status_code, {k.lower(): v for k, v in got.headers.items()}, got.content)

    @contextlib.contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        try:
            with self._client().stream(request.method, request.path, content=request.body,
                                       headers=_headers(self.address, request),
                                       timeout=request.timeout) as got:
                if got.status_code >= 300:
                    raise from_response(got.status_code, got.read(),
                                        got.headers.get("retry-after"))
                yield (line.encode() for line in got.iter_lines() if line)
        except httpx.HTTPError as why:
            raise _translate(self.address, why) from why


class AsyncSecureTransport:
    def __init__(self, address: Address) -> None:
        self.address = address
        self._pid = -1
        self._made: Optional[httpx.AsyncClient] = None

    def _client(self) -> httpx.AsyncClient:
        if self._made is None or self._pid != os.getpid():
            self._pid, self._made = os.getpid(), httpx.AsyncClient(base_url=self.address.url)
        return self._made

    async def aclose(self) -> None:
        if self._made is not None and self._pid == os.getpid():
            await self._made.aclose()
        self._made = None

    async def send(self, request: Request) -> Answer:
        try:
            got = await self._client().request(request.method, request.path, content=request.body,
                                               headers=_headers(self.address, request),
                                               timeout=request.timeout)
        except httpx.HTTPError as why:
            raise _translate(self.address, why) from why
        if request.progress and request.body:
            request.progress(len(request.body), len(request.body))
        return Answer(got.status_code, {k.lower(): v for k, v in got.headers.items()}, got.content)

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        try:
            async with self._client().stream(request.method, request.path, content=request.body,
                                             headers=_headers(self.address, request),
                                             timeout=request.timeout) as got:
                if got.status_code >= 300:
                    raise from_response(got.status_code, await got.aread(),
                                        got.headers.get("retry-after"))
                yield _lines(got)
        except httpx.HTTPError as why:
            raise _translate(self.address, why) from why


async def _lines(got: httpx.Response) -> AsyncIterator[bytes]:
    async for line in got.aiter_lines():
        if line:
            yield line.encode()
