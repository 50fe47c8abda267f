"""interrupt - SIGINT becomes KeyboardInterrupt in the program's code, and never in our way.

A signal's handler is told which frame it interrupts.  When that is guarded, one of ours that has
a message, a lock or the step in hand, the signal is kept until the program's code goes on.  Every
way from guarded frames to the program, or to something that may take long, leads through a
function marked @interruptible: it looks for a kept signal, and may be interrupted from then on.
So none is lost.
"""
import os
from _signal import SIGINT, getsignal, signal
from _thread import get_ident

HERE = os.path.dirname(__file__) + os.sep
GUARDED = frozenset(HERE + name + ".py" for name in
                    ("callbacks", "channel", "interrupt", "serving", "step", "streams"))
LOOPS = (os.sep + "asyncio" + os.sep, os.sep + "selectors.py")

_interruptible = set()


def interruptible(function):
    _interruptible.add(function.__code__)
    return function


def is_ours(code):
    return code.co_filename.startswith(HERE)


def _is_loops(code):
    """Of an event loop: an exception thrown there loses what the loop had in hand."""
    return any(part in code.co_filename for part in LOOPS)


@interruptible
def enter(interrupts, function, args):
    interrupts.check()
    return function(*args)


class Interrupts:
    def __init__(self):
        self.in_step = False   # outside of one a signal came too late, and is dropped
        self.in_program = False
        self.kept = False
        self.happened = False  # in this step
        self.cancel = None     # ends what the event loop is at, while it runs
        self._main = get_ident()
        self._handler = self._handle

    def install(self):
        if getsignal(SIGINT) is not self._handler:
            signal(SIGINT, self._handler)

    def begin(self):
        self.kept = self.happened = False
        self.in_step = True

    def end(self):
        self.in_step = self.kept = False

    def _handle(self, _, frame):
        if not self.in_step:
            return
        self.kept = True
        if not self.in_program or frame is None:
            return
        code = frame.f_code
        is_guarded = code.co_filename in GUARDED and code not in _interruptible
        if self.cancel is not None and (is_guarded or _is_loops(code)):
            self.kept = is_guarded  # which may be about to block the loop
            self.happened = True
            self.cancel()
        elif not is_guarded:
            self._throw()

    def check(self):
        """To be called by interruptible functions, in any thread."""
        if self.kept and self.in_program and self.is_main():
            self._throw()

    def is_main(self):
        return get_ident() == self._main

    def _throw(self):
        self.kept = False
        self.happened = True
        raise KeyboardInterrupt

    def hold(self, function, *args):
        """Call what must not be cut off; a signal is kept until the program's code goes on."""
        in_program, self.in_program = self.in_program, False
        try:
            return function(*args)
        finally:
            self.in_program = in_program

    def attempt(self, function, *args):
        """Call what belongs to the program: its value and None, or None and what it raised."""
        self.in_program = True
        try:
            return enter(self, function, args), None
        except BaseException as why:
            return None, why
        finally:
            self.in_program = False
