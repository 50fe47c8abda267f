"""rewind - a step that ends badly is as if it had never been (src/guest/rewind).

All of it is done by an object in C, which copies the process.  To the copy that goes on as the
session it looks as if begin() or order() had returned late.
"""
import os
import sys
from _thread import _count as count_threads

OBJECT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "rewind.so")
ORDERS = frozenset({"undo", "checkpoint", "checkpoints", "restore", "forget"})


def _load():
    names = set(sys.modules)
    import ctypes
    lib = ctypes.PyDLL(OBJECT)
    lib.vial_rewind_done.restype = ctypes.c_char_p
    lib.vial_rewind_start.argtypes = (ctypes.c_int, ctypes.c_uint, ctypes.c_ulonglong)
    lib.vial_rewind_begin.argtypes = (ctypes.c_ulonglong, ctypes.c_char_p)
    lib.vial_rewind_order.argtypes = (ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_char_p,
                                      ctypes.c_uint, ctypes.c_char_p)
    for name in set(sys.modules) - names:  # what we needed is no business of the program's
        del sys.modules[name]
    return lib


def _obstacle():
    """What a copy would lack."""
    return b"threads are running" if count_threads() > 0 else None


class Rewind:
    def __init__(self, channel, message):
        self.channel = channel
        self.lib = _load()
        self.lib.vial_rewind_start(channel.fd, message.get("undo", 1), message["files"])
        channel.adopt()

    def restart(self):
        """In a branch: nothing can be gone back to yet."""
        self.lib.vial_rewind_restart()
        self.channel.adopt()

    def begin(self, step):
        """Before a step.  False: it has been, and is no more."""
        if self.lib.vial_rewind_begin(step, _obstacle()):
            self.channel.adopt()
            return False
        return True

    def is_covered(self):
        return self.lib.vial_rewind_is_covered()

    def done(self):
        """After a step: why it cannot be taken back, or None."""
        why = self.lib.vial_rewind_done()
        return why and why.decode("ascii", "replace")

    def trim(self):
        """What is too old to go back to."""
        self.lib.vial_rewind_trim()

    def order(self, message):
        name = message.get("name")
        if self.lib.vial_rewind_order(message["op"].encode(), message["id"], name and name.encode(),
                                      message.get("steps", 1), _obstacle()):
            self.channel.adopt()
