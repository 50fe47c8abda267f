"""_address - where a server is, and what is sent to it with every request."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple
from urllib.parse import unquote, urlsplit

USER_AGENT = "vial-python"


@dataclass(frozen=True)
class Address:
    """A Unix socket, or a URL."""

    path: Optional[str] = None
    scheme: str = "http"
    host: str = "vial"
    port: Optional[int] = None
    prefix: str = ""
    token: Optional[str] = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str, token: Optional[str] = None) -> Address:
        """`http://...`, `https://...`, `unix:/path` or the path of a socket."""
        if text.startswith(("http://", "https://")):
            parts = urlsplit(text)
            if not parts.hostname:
                raise ValueError("no host in %r" % text)
            return cls(None, parts.scheme, parts.hostname, parts.port,
                       parts.path.rstrip("/"), token)
        if text.startswith("unix:"):
            text = unquote(text[len("unix:"):])
            text = text[2:] if text.startswith("//") else text
        if "://" in text:
            raise ValueError("not the address of a server: %r" % text)
        return cls(os.path.abspath(text), token=token)

    @property
    def is_local(self) -> bool:
        """On this machine, and so can use its files."""
        return self.path is not None

    @property
    def is_plain(self) -> bool:
        """Spoken to without TLS, so by ourselves."""
        return self.path is not None or self.scheme == "http"

    @property
    def place(self) -> Tuple[str, int]:
        """Of a URL: host and port."""
        return self.host, self.port or (80 if self.is_plain else 443)

    @property
    def host_in_url(self) -> str:
        return "[%s]" % self.host if ":" in self.host else self.host

    @property
    def url(self) -> str:
        return "%s://%s%s%s" % (self.scheme, self.host_in_url,
                                ":%d" % self.port if self.port else "", self.prefix)

    def __str__(self) -> str:
        return self.path or self.url

    def headers(self) -> Dict[str, str]:
        host = self.host_in_url
        made = {"Host": "%s:%d" % (host, self.port) if self.port else host,
                "User-Agent": USER_AGENT}
        if self.token:
            if any(c in self.token for c in "\r\n"):
                raise ValueError("a line break in the token")
            made["Authorization"] = "Bearer " + self.token
        return made
