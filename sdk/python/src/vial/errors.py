"""errors - everything that this package raises on its own account.

What a program in a sandbox does is never one of these: it is part of its result.  They say that
there is no result, and why.  `RemoteError` is the exception: it is raised when the caller has
asked for a failed program to raise.
"""
from __future__ import annotations

import json
from typing import Any, Optional


class VialError(Exception):
    """The base of all."""


class ServerUnavailable(VialError, ConnectionError):
    """There is no server at the address, or it went away.

    `was_sent` says whether the request may have reached it: if not, it is safe to try again.
    """

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class DaemonError(VialError, RuntimeError):
    """A private daemon could not be started."""


class RequestTimeout(VialError, TimeoutError):
    """The server did not answer in time.  Programs over their time are results, not this."""


class APIError(VialError):
    """The server refused a request; what it said, in parts."""

    def __init__(self, status: int, code: str, message: str, field: Optional[str] = None,
                 hint: Optional[str] = None, retry_after: Optional[float] = None) -> None:
        text = "%s: %s" % (field, message) if field else message
        super().__init__("%s (%s)" % (text, hint) if hint else text)
        self.status = status
        self.code = code
        self.message = message
        self.field = field
        self.hint = hint
        self.retry_after = retry_after


class InvalidRequest(APIError, ValueError):
    """Something in the request is wrong; `field` says what."""


class Denied(APIError, PermissionError):
    """Not allowed."""


class NotFound(APIError, LookupError):
    """It is not, or no longer, there."""


class Busy(APIError):
    """More than the server takes at once.  Nothing was run."""


class TooLarge(APIError):
    """More bytes than the server takes."""


class ServerFault(APIError):
    """The server, or the host that it is on, failed."""


_KINDS = {"invalid": InvalidRequest, "denied": Denied, "unauthorized": Denied, "forbidden": Denied,
          "gone": NotFound, "busy": Busy, "limit": TooLarge}


def from_object(status: int, error: Any, retry_after: Optional[float] = None) -> APIError:
    """Of the server's `error` object."""
    if not isinstance(error, dict):
        error = {}
    code = str(error.get("code", "unknown"))
    message = str(error.get("message", "the server answered %d" % status))
    kind = _KINDS.get(code, ServerFault)
    return kind(status, code, message, error.get("field"), error.get("hint"), retry_after)


def from_response(status: int, body: bytes, retry_after: Optional[str] = None) -> APIError:
    """Of an answer that is not a success."""
    try:
        answer = json.loads(body)
        error = answer["error"]
    except (ValueError, KeyError, TypeError):
        text = body[:200].decode("utf-8", "replace").strip()
        codes = {404: "gone", 413: "limit", 429: "busy", 503: "busy"}
        error = {"code": codes.get(status, "unknown"),
                 "message": text or "the server answered %d" % status}
    try:
        wait = float(retry_after) if retry_after is not None else None
    except ValueError:
        wait = None
    return from_object(status, error, wait)


class RemoteError(VialError):
    """A program in a sandbox failed with an exception that this Python does not have.

    `type_name`, `message` and `traceback` are the program's.
    """

    def __init__(self, type_name: str, message: str, traceback: str = "") -> None:
        super().__init__("%s: %s" % (type_name, message) if message else type_name)
        self.type_name = type_name
        self.message = message
        self.traceback = traceback
