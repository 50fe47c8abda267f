"""_exchange - one request and its answer, as the transports see them."""
from __future__ import annotations

import json
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Protocol

from . import errors

Progress = Callable[[int, int], None]
PIECE = 1 << 18  # of a body, between two calls of its progress function
WAITS_MAX = 600  # for an answer that was lost: about as long as a server keeps it


class Source(Protocol):
    """A body that is read as it is sent."""

    total: Optional[int]  # bytes; None: not known before its end
    can_repeat: bool      # it can be sent from its beginning again

    def start(self) -> None:
        """It is sent, from its beginning."""

    def read(self, size: int) -> bytes:
        """So much at most; empty: that was all."""


class Request(NamedTuple):
    """What is sent.  `timeout` is for all of it, in seconds.

    The server carries out once what has a `key`, however often it is sent, and goes on with it
    when its client goes.
    """

    method: str
    path: str
    body: Optional[bytes] = None
    timeout: Optional[float] = None
    accept: str = "application/json"
    progress: Optional[Progress] = None
    source: Optional[Source] = None  # instead of a body
    key: Optional[str] = None

    @property
    def is_repeatable(self) -> bool:
        """Twice is as good as once."""
        return self.method in ("GET", "DELETE", "HEAD") or self.key is not None

    @property
    def can_be_sent_again(self) -> bool:
        return self.source is None or self.source.can_repeat


class Answer(NamedTuple):
    """What came."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def error(self) -> errors.APIError:
        """Of an answer that is no success."""
        return errors.from_response(self.status, self.body, self.headers.get("retry-after"))

    def check(self) -> Answer:
        if self.status >= 300:
            raise self.error()
        return self

    def json(self) -> Dict[str, Any]:
        try:
            answer = json.loads(self.body.decode("utf-8")) if self.body else {}
        except ValueError as why:
            raise errors.ServerFault(self.status, "unknown", "not JSON: %s" % why) from None
        if not isinstance(answer, dict):
            raise errors.ServerFault(self.status, "unknown", "not a JSON object")
        return answer


_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def encode(body: Any) -> bytes:
    """Compact JSON.  What JSON cannot say is a TypeError or a ValueError here, not later."""
    return _encoder.encode(body).encode()


class Backoff:
    """How long to wait before the next try, and whether there is one.

    Tried again is only what cannot have been carried out: a request that did not reach the server,
    or that it refused as too many; and what is the same done twice.  One whose answer was lost and
    that is still under way is waited for.
    """

    def __init__(self, retries: int) -> None:
        self.left = retries
        self._waits = WAITS_MAX
        self._next = 0.05

    def after(self, request: Request, why: Exception) -> Optional[float]:
        """Seconds, or None: give up."""
        if request.key and isinstance(why, errors.Busy) and why.status == 409 and self._waits > 0:
            self._waits -= 1
            return min(1.0 if why.retry_after is None else max(why.retry_after, 0.05), 10.0)
        if self.left <= 0 or not self._is_safe(request, why):
            return None
        self.left -= 1
        wait = self._next
        self._next = min(self._next * 2, 2.0)
        if isinstance(why, errors.Busy) and why.retry_after is not None:
            wait = min(max(wait, why.retry_after), 10.0)
        return wait

    @staticmethod
    def _is_safe(request: Request, why: Exception) -> bool:
        if not request.can_be_sent_again:
            return False
        if isinstance(why, errors.Busy):
            return True
        return isinstance(why, errors.ServerUnavailable) \
            and (request.is_repeatable or not why.was_sent)
