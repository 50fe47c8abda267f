"""channel - messages to and from the server: JSON texts, one per line.

Any thread may send.  Between steps only the main thread receives; within one, any thread that
waits for an answer does (callbacks.py).  A fork of the program's has no channel any more: it
must never answer for its parent.
"""
import errno
import fcntl
import json
import os
from _socket import AF_UNIX, MSG_DONTWAIT, SOCK_STREAM, socket
from _thread import allocate_lock
from select import POLLIN, poll

from .interrupt import interruptible

MESSAGE_MAX = 16 << 20
CHUNK = 1 << 16
HIGH_FD = 960  # out of the way of programs that count, or close, descriptors
GONE = frozenset({errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN, errno.EBADF, errno.ENOTSOCK})
LOST = 1       # the exit status of a driver that nobody listens to

encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_scan = json.JSONDecoder().scan_once  # in C: what was received cannot be lost to an interrupt


def to_bytes(message):
    """Lone surrogates are no text: they are escaped, once more than JSON would."""
    return encode(message).encode("utf-8", "replace")


def _from_bytes(line):
    try:
        return _scan(line.decode(), 0)[0]
    except StopIteration:
        raise ValueError("this is no JSON") from None


def move_high(fd):
    try:
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, HIGH_FD)
    except OSError:  # there may not be so many
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    return high


class Lost(Exception):
    """The other end of the channel is gone."""


class Channel:
    def __init__(self, fd):
        self.socket = socket(AF_UNIX, SOCK_STREAM, 0, move_high(fd))
        self.socket.setblocking(True)  # whatever the default of new sockets is
        os.close(fd)
        self.fd = self.socket.fileno()
        self.lost = False
        self._pid = os.getpid()
        self.early = []    # messages that were not expected yet
        self._unread = []  # the beginnings of a line
        self._sending = allocate_lock()
        self._readable = poll()
        self._readable.register(self.fd, POLLIN)
        os.register_at_fork(after_in_child=self._leave)

    def adopt(self):
        """This is another process now, which has the channel."""
        self._pid = os.getpid()

    def _leave(self):
        self.lost = True
        self.socket.close()

    def is_forks(self):
        """Also of a fork() that Python does not know about."""
        return os.getpid() != self._pid

    def send_bytes(self, data):
        if self.lost or self.is_forks():
            raise Lost
        view = memoryview(data + b"\n")
        with self._sending:
            try:
                while view:
                    view = view[self.socket.send(view):]
            except OSError:
                self.lost = True
                raise Lost from None

    def send(self, message):
        self.send_bytes(to_bytes(message))

    def receive(self):
        """The next messages, one or more, however long it takes."""
        messages, self.early = self.early, []
        while not messages:
            self._readable.poll()  # a recv() that waits is woken when the server reads, too
            messages = self._receive(0)
        return messages

    def receive_now(self):
        """The messages that are there, if any."""
        try:
            return self._receive(MSG_DONTWAIT)
        except BlockingIOError:
            return ()

    def _receive(self, flags):
        try:
            data = self.socket.recv(CHUNK, flags)
        except OSError as why:
            if why.errno not in GONE:  # nothing is there yet, or a signal handler's own
                raise
            data = b""
        if not data:
            self.lost = True
            raise Lost
        if b"\n" not in data:
            self._unread.append(data)
            return ()
        if self._unread:
            data = b"".join(self._unread) + data
        *lines, rest = data.split(b"\n")
        self._unread = [rest] if rest else []
        return [_from_bytes(line) for line in lines]

    @interruptible
    def wait_readable(self, interrupts, other=None):
        """Until the channel is, or the other descriptor.  Says whether the other is."""
        interrupts.check()
        waiting = poll()
        waiting.register(self.fd, POLLIN)
        if other is not None:
            waiting.register(other, POLLIN)
        return any(fd == other for fd, _ in waiting.poll())
