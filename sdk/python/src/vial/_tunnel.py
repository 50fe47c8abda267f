"""_tunnel - through a proxy to a server behind TLS, where HTTPS_PROXY and NO_PROXY ask for it."""
from __future__ import annotations

import base64
from typing import Optional, Tuple
from urllib.parse import unquote, urlsplit

from ._address import Address
from ._http1 import ProtocolError, Response


class Tunnel:
    """What is said to the proxy.  `proxy` is where it is."""

    def __init__(self, address: Address, proxy: str) -> None:
        parts = urlsplit(proxy if "://" in proxy else "http://" + proxy)
        if parts.scheme != "http" or not parts.hostname:
            raise OSError("cannot use the proxy %s" % (parts.hostname or proxy))
        self.proxy: Tuple[str, int] = (parts.hostname, parts.port or 80)
        target = "%s:%d" % (address.host_in_url, address.place[1])
        lines = ["CONNECT %s HTTP/1.1" % target, "Host: " + target]
        if parts.username:
            said = "%s:%s" % (unquote(parts.username), unquote(parts.password or ""))
            lines.append("Proxy-Authorization: Basic "
                         + base64.b64encode(said.encode()).decode("ascii"))
        self.request = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
        self._response = Response("CONNECT")

    @classmethod
    def find(cls, address: Address) -> Optional[Tunnel]:
        """None: there is no need for one."""
        if address.is_plain:
            return None
        import urllib.request  # takes its time
        proxy = urllib.request.getproxies().get("https")
        if not proxy or urllib.request.proxy_bypass(address.host):
            return None
        return cls(address, proxy)

    def feed(self, data: bytes) -> bool:
        """Whether it is through."""
        if not data:
            raise OSError("the proxy closed the connection")
        try:
            self._response.feed(data)
        except ProtocolError as why:
            raise OSError("the proxy: %s" % why) from why
        if self._response.status not in (0, 200):
            raise OSError("the proxy answered %d" % self._response.status)
        return self._response.status == 200
