"""_daemon - a `vial serve` of this process's own, for when there is no other.

It has a socket that only this user can open, and ends with this process, however that ends: a
shell waits beside it for the end of a pipe that only we hold.
"""
from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from typing import List, Optional

from .errors import DaemonError

PATIENCE_S = 30.0
STOP_S = 10.0
SOCKET_PATH_MAX = 100  # Linux has 107
ARMED = "2"

# "$@" until it ends, or until our standard input does: then its directory, "$0", goes too.
KEEPER = """
exec 3<&0
"$@" </dev/null 3<&- & served=$!
{
	read -r _ <&3; true >"$0/over"; kill -TERM $served; tries=0
	while [ $tries -lt 60 ] && kill -0 $served; do sleep 1; tries=$((tries + 1)); done
	kill -KILL $served
} 2>/dev/null & watch=$!
exec 3<&-
wait $served; status=$?
kill $watch 2>/dev/null
[ ! -e "$0/over" ] || rm -rf -- "$0"
exit $status
"""


def find_binary() -> Optional[str]:
    """`vial`: $VIAL_BINARY, the one that came with this package, or the one in $PATH."""
    named = os.environ.get("VIAL_BINARY")
    if named:
        return named
    ours = os.path.join(os.path.dirname(__file__), "_bin", "vial")
    if os.access(ours, os.X_OK):
        return ours
    return shutil.which("vial")


def answers(path: str) -> bool:
    """Whether somebody listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(2)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True


class Daemon:
    """A private daemon: `path` is its socket."""

    def __init__(self, options: Optional[List[str]] = None) -> None:
        binary = find_binary()
        if binary is None:
            raise DaemonError("no server is running, and there is no vial command to start one: "
                              "install vial, or set VIAL_BINARY, VIAL_SOCKET or VIAL_URL")
        self.pid = os.getpid()
        self.dir = tempfile.mkdtemp(prefix="vial-")
        if len(self.dir) > SOCKET_PATH_MAX:
            os.rmdir(self.dir)
            self.dir = tempfile.mkdtemp(prefix="vial-", dir="/tmp")
        self.path = os.path.join(self.dir, "s")
        self._log = os.path.join(self.dir, "log")
        command = [binary, "serve", "--listen", "none", "--socket", self.path, "--armed", ARMED]
        try:
            with open(self._log, "wb") as log:
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c", KEEPER, self.dir, *command, *(options or [])],
                    stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                    env={"VIAL_LOG_LEVEL": "warn",
                         **{k: v for k, v in os.environ.items() if k != "VIAL_SOCKET"}})
        except OSError as why:
            self._remove()
            raise DaemonError("cannot start %s: %s" % (binary, why)) from why
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not answers(self.path):
            if self.process.poll() is not None or time.monotonic() > deadline:
                log = self.log()
                self.stop()
                raise DaemonError("the private daemon did not start: %s" % (log or "no output"))
            time.sleep(0.01)

    def log(self) -> str:
        """What it has said."""
        try:
            with open(self._log, encoding="utf-8", errors="replace") as log:
                return log.read()[-4000:].strip()
        except OSError:
            return ""

    def is_alive(self) -> bool:
        return self.pid == os.getpid() and self.process.poll() is None

    def stop(self) -> None:
        """End it.  Does nothing in a fork of the process that started it."""
        if self.pid != os.getpid():
            return
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._remove()

    def _remove(self) -> None:
        # Where somebody killed the shell itself, its watch may just be leaving its mark there.
        for _ in range(100):
            shutil.rmtree(self.dir, ignore_errors=True)
            if not os.path.lexists(self.dir):
                return
            time.sleep(0.01)

    def abandon(self) -> None:
        """In a fork: let go of the pipe, so that the daemon sees its owner's end."""
        if self.process.stdin:
            with contextlib.suppress(OSError):
                self.process.stdin.close()


_lock = threading.Lock()
_private: Optional[Daemon] = None


def private_socket() -> str:
    """The socket of this process's private daemon, which is started if there is none."""
    global _private
    with _lock:
        if _private is not None and not _private.is_alive():
            _private.stop()
            _private = None
        if _private is None:
            _private = Daemon()
        return _private.path


def is_running() -> bool:
    return _private is not None and _private.is_alive()


def stop_private() -> None:
    """End this process's private daemon, if there is one."""
    global _private
    with _lock:
        daemon, _private = _private, None
    if daemon is not None:
        daemon.stop()


def _after_fork() -> None:
    global _private, _lock
    _lock = threading.Lock()
    if _private is not None:
        _private.abandon()
        _private = None


atexit.register(stop_private)
os.register_at_fork(after_in_child=_after_fork)
