"""_http1 - HTTP/1.1 as bytes, without any input or output.

A step of a session takes less time than most HTTP clients spend on a request, so a local server is
spoken to with as little as is needed: both kinds of clients, blocking and asyncio, share this.
"""
from __future__ import annotations

from typing import Dict, List, Mapping, Optional

HEAD_MAX = 1 << 16


class ProtocolError(Exception):
    """What came is not HTTP."""


def encode_headers(headers: Mapping[str, str]) -> bytes:
    """Those that are the same in all requests."""
    return "".join("%s: %s\r\n" % item for item in headers.items()).encode("latin-1")


def encode_head(method: str, path: str, headers: bytes, accept: str, length: Optional[int],
                kind: str = "application/json", key: Optional[str] = None) -> bytes:
    """A request up to its body; a `length` of -1 is one that nobody knows yet."""
    body = "" if length is None else "Content-Type: %s\r\n%s\r\n" % (
        kind, "Transfer-Encoding: chunked" if length < 0 else "Content-Length: %d" % length)
    if key is not None:
        body += "Idempotency-Key: %s\r\n" % key
    return b"%s %s HTTP/1.1\r\n%sAccept: %s\r\n%s\r\n" % (
        method.encode("latin-1"), path.encode("latin-1"), headers, accept.encode("latin-1"),
        body.encode("latin-1"))


class Response:
    """Takes an answer apart as it comes: `feed` gives back the pieces of the body.

    `status` is 0 until the head is complete; `done` says that there is no more to come.
    """

    def __init__(self, method: str = "GET") -> None:
        self.status = 0
        self.headers: Dict[str, str] = {}
        self.done = False
        self.keeps_alive = False
        self._method = method
        self._buffer = b""
        self._left: Optional[int] = 0   # of the body or the chunk; None: until the end
        self._is_chunked = False
        self._in_chunk = False

    def feed(self, data: bytes) -> List[bytes]:
        self._buffer += data
        if not self.status and not self._take_head():
            return []
        return self._take_chunks() if self._is_chunked else self._take_body()

    def finish(self) -> None:
        """The other side has closed.  Raises if that was too early."""
        if self.status and self._left is None and not self._is_chunked:
            self.done = True
        if not self.done:
            raise ProtocolError("the answer broke off")

    def _take_head(self) -> bool:
        while True:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                if len(self._buffer) > HEAD_MAX:
                    raise ProtocolError("the head of the answer does not end")
                return False
            self._buffer = rest
            self._parse_head(head.decode("latin-1").split("\r\n"))
            if self.status >= 200:
                return True
            self.status = 0  # 1xx: the answer proper follows

    def _parse_head(self, lines: List[str]) -> None:
        parts = lines[0].split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not parts[1].isdigit():
            raise ProtocolError("not an answer: %.80r" % lines[0])
        self.status = int(parts[1])
        self.headers = {}
        for line in lines[1:]:
            name, colon, value = line.partition(":")
            if not colon:
                raise ProtocolError("not a header: %.80r" % line)
            self.headers[name.lower()] = value.strip()
        wants = self.headers.get("connection", "").lower()
        self.keeps_alive = wants != "close" and (parts[0] == "HTTP/1.1" or wants == "keep-alive")
        self._is_chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length")
        if self.status in (204, 304) or self._method == "HEAD":
            self._left, self._is_chunked = 0, False
        elif length is not None and length.isdigit():
            self._left = int(length)
        else:
            self._left = None
            self.keeps_alive = self.keeps_alive and self._is_chunked

    def _take_body(self) -> List[bytes]:
        piece = self._buffer
        if self._left is None:
            self._buffer = b""
            return [piece] if piece else []
        piece, self._buffer = piece[:self._left], piece[self._left:]
        self._left -= len(piece)
        self.done = self._left == 0
        return [piece] if piece else []

    def _take_chunks(self) -> List[bytes]:
        pieces: List[bytes] = []
        while not self.done:
            if not self._in_chunk:
                line, mark, rest = self._buffer.partition(b"\r\n")
                if not mark:
                    break
                try:
                    self._left = int(line.split(b";")[0], 16)
                except ValueError:
                    raise ProtocolError("not a chunk: %.40r" % line) from None
                if self._left == 0:
                    if rest[:2] != b"\r\n":  # trailers are nothing that a server of ours sends
                        break
                    self._buffer, self.done = rest[2:], True
                    break
                self._buffer, self._in_chunk = rest, True
            assert self._left is not None
            if len(self._buffer) < self._left + 2:
                if self._left and self._buffer:
                    piece = self._buffer[:self._left]
                    self._buffer = self._buffer[len(piece):]
                    self._left -= len(piece)
                    pieces.append(piece)
                break
            if self._left:
                pieces.append(self._buffer[:self._left])
            self._buffer, self._in_chunk = self._buffer[self._left + 2:], False
        return pieces


class Lines:
    """Puts lines together from pieces."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> List[bytes]:
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        return [line for line in lines if line]
