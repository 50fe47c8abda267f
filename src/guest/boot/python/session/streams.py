"""streams - every step begins with the stdout and stderr that the session began with.

A program may close them, put others in their place, or point their descriptors elsewhere; that
lasts until its step ends.
"""
import io
import os
import sys

from .channel import move_high

NAMES = {1: "stdout", 2: "stderr"}


class Streams:
    def __init__(self, interrupts):
        self.interrupts = interrupts
        self._saved = {fd: move_high(fd) for fd in NAMES}
        self._identities = {fd: self._identity(fd) for fd in NAMES}
        self._files = {fd: getattr(sys, name) for fd, name in NAMES.items()}
        self._forms = {fd: (file.encoding, file.errors) for fd, file in self._files.items()}

    @staticmethod
    def _identity(fd):
        try:
            status = os.fstat(fd)
            return status.st_dev, status.st_ino
        except OSError:
            return None

    def settle(self):
        """Flush what the program has printed, and put things right."""
        for fd, name in NAMES.items():
            current = getattr(sys, name, None)
            if current is not self._files[fd]:
                self.interrupts.attempt(self._flush, current)
            is_flushed = self._try_flush(fd)
            if self._identity(fd) != self._identities[fd]:
                os.dup2(self._saved[fd], fd)
                is_flushed = is_flushed or self._try_flush(fd)
            if not is_flushed:
                self._files[fd] = self._reopen(fd)
            if current is not self._files[fd]:
                setattr(sys, name, self._files[fd])
                setattr(sys, "__%s__" % name, self._files[fd])

    @staticmethod
    def _flush(file):
        flush = getattr(file, "flush", None)
        if flush is not None:
            flush()

    def _try_flush(self, fd):
        try:
            self._files[fd].flush()
            return True
        except (ValueError, OSError):  # closed, in one way or another
            return False

    def _reopen(self, fd):
        encoding, errors = self._forms[fd]
        raw = open(fd, "wb", closefd=False, buffering=0)
        return io.TextIOWrapper(raw, encoding, errors, write_through=True)
