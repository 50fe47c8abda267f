"""_discover - which server to use.

What the caller says; else VIAL_URL (with VIAL_TOKEN); else the local daemon's socket: VIAL_SOCKET,
or where `vial serve` listens by default; else a private daemon of this process.
"""
from __future__ import annotations

import os
from typing import Optional

from . import _daemon
from ._address import Address

SYSTEM_SOCKET = "/run/vial/vial.sock"


def local_socket() -> Optional[str]:
    """That of a daemon which runs on this machine for all its users, or for this one."""
    named = os.environ.get("VIAL_SOCKET")
    if named:
        return named
    candidates = [SYSTEM_SOCKET]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        candidates.append(os.path.join(runtime, "vial", "vial.sock"))
    return next((path for path in candidates if _daemon.answers(path)), None)


class Server:
    """Where requests go.  A private daemon is started when the first one does."""

    def __init__(self, address: Optional[str] = None, token: Optional[str] = None) -> None:
        self._said = address
        self._token = token
        self._found: Optional[Address] = None
        self._is_private = False
        self._pid = -1

    def address(self) -> Address:
        if self._found is not None and self._pid == os.getpid() and not self._is_private:
            return self._found
        if self._found is not None and self._is_private:
            path = _daemon.private_socket()
            if path == self._found.path:
                return self._found
        self._found, self._pid = self._find(), os.getpid()
        return self._found

    def may_block(self) -> bool:
        """Whether address() may have to start something."""
        return self._found is None or self._pid != os.getpid() \
            or (self._is_private and not _daemon.is_running())

    def _find(self) -> Address:
        self._is_private = False
        if self._said:
            return Address.parse(self._said, self._token)
        url = os.environ.get("VIAL_URL")
        if url:
            return Address.parse(url, self._token or os.environ.get("VIAL_TOKEN") or None)
        path = local_socket()
        if path is None:
            path, self._is_private = _daemon.private_socket(), True
        return Address(path, token=self._token)
