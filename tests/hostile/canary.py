"""canary - things on the host that no sandboxed program may ever see or reach.

A random word is planted in files that are readable by everybody, in the environment
of the vial process and in another user's workspace; two sockets wait for connections
that must never come.
"""
import os
import re
import socket
import time

VARIABLE = "HOSTILE_DAEMON_TOKEN"
PORT = 18999
ABSTRACT = "\0hostile-canary"
PATTERN = re.compile(rb"HOSTILE-CANARY-[0-9a-f]{16}")
FILES = ("/etc/hostile_canary", "/root/.hostile_canary", "/var/lib/hostile_canary",
         "/srv/hostile_canary", "/opt/hostile_canary", "/tmp/hostile_canary",
         "/var/tmp/hostile_canary", "/dev/shm/hostile_canary")


class Canary:
    def __init__(self):
        self.word = "HOSTILE-CANARY-" + os.urandom(8).hex()
        self.planted = []
        self.listeners = []

    def listen(self, patience_s=600, notice=lambda text: None):
        """Open the two sockets.  Holding them also keeps a second run of this suite waiting."""
        deadline = time.monotonic() + patience_s
        told = False
        while True:
            try:
                self.listeners = [_listen(socket.AF_UNIX, ABSTRACT),
                                  _listen(socket.AF_INET, ("127.0.0.1", PORT))]
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise
                if not told:
                    notice("waiting for the canary sockets (another run?): %s" % error)
                told = True
                time.sleep(2)

    def plant(self):
        """Write the files; one that an interrupted run left behind is replaced, others are not."""
        for path in FILES:
            try:
                _remove_ours(path)
                descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW)
            except OSError:
                continue
            with os.fdopen(descriptor, "w") as file:
                os.fchmod(descriptor, 0o644)
                file.write(self.word + "\n")
            self.planted.append(path)

    def missing(self):
        """Planted files that are gone or altered: a guest wrote outside its sandbox."""
        return [path for path in self.planted if _read(path) != self.word + "\n"]

    def accept(self, listener):
        """One line about a connection that must not have been possible."""
        connection, peer = listener.accept()
        connection.close()
        return "abstract socket" if listener.family == socket.AF_UNIX else "tcp from %s:%d" % peer

    def remove(self):
        for path in self.planted:
            try:
                _remove_ours(path)
            except OSError:
                pass
        for listener in self.listeners:
            listener.close()
        self.planted, self.listeners = [], []


def _listen(family, address):
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


def _read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(200)
    except OSError:
        return None


def _remove_ours(path):
    text = _read(path)
    if text is not None and PATTERN.search(text.encode("ascii", "replace")):
        os.unlink(path)
