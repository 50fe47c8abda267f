"""serving - the session's life: a step is received, run, and told of.

Nothing of the program ends it but the end of the process.  What the program does to its own
process (other signal handlers, trace functions, streams) is undone after each step as far as it
would be in the next step's way.
"""
import atexit
import builtins
import os
import sys
from os import _exit as exit_now  # a program may put something else in its place

from . import failure, rich
from .callbacks import CallbackError, Callbacks
from .channel import LOST, Channel, Lost, to_bytes
from .interrupt import Interrupts, interruptible
from .policy import Guard, PolicyError
from .rewind import ORDERS, Rewind
from .step import Runner, Sources, compile_step, make_main
from .streams import Streams

CALLS_MAX = 1000
VALUE_MAX = 1 << 20
VALUE_LIMIT = 15 << 20  # a message has more in it than the value
VALUE_LEAST = 1024  # what says that there was more takes room, too
RECURSION_MIN = 200     # what we need ourselves
BROKEN = 70             # the exit status of a driver that cannot even say so


class Session:
    def __init__(self, fd):
        self.channel = Channel(fd)
        self.interrupts = Interrupts()
        self.main = make_main()
        self.namespace = vars(self.main)
        self.streams = Streams(self.interrupts)
        self.callbacks = Callbacks(self.channel, self.interrupts, self.namespace)
        self.runner = Runner(self.namespace, self.interrupts)
        self.sources = Sources()
        self.guard = Guard(self.namespace)
        self.figures = rich.Figures(self.display)
        self.value_max = VALUE_MAX
        self.was_cut = False
        self.exit_code = None
        self.rewind = None  # None: a step that ends badly ends the session

    def prepare(self):
        """Make the process look like a fresh interpreter, with some names more."""
        for name in [name for name in sys.modules if name.split(".")[0] == __package__]:
            del sys.modules[name]  # a program may have its own module of this name
        builtins.display = self._make_display()
        builtins.CallbackError = CallbackError
        builtins.PolicyError = PolicyError
        os.environ.setdefault("MPLBACKEND", "Agg")
        rich.Patches(builtins.display, self.figures).install()
        sys.argv[:] = [""]
        if "" not in sys.path:
            sys.path.insert(0, "")
        self.interrupts.install()

    def serve(self):
        try:
            self.prepare()
            self.channel.send({"op": "ready"})
            while True:
                for message in self._receive():
                    self.run(message)
        finally:  # whatever it was, a driver that says nothing must not look like one that works
            exit_now(LOST)

    def _receive(self):
        while True:
            try:
                return self.channel.receive()
            except (Lost, ValueError):
                exit_now(LOST)
            except BaseException:  # of a signal handler that the program has left behind
                continue

    # ---- a step ----

    def run(self, message):
        op = message.get("op")
        if op == "rewind":
            self.rewind = self.rewind or Rewind(self.channel, message)
        elif op in ORDERS and self.rewind is not None:
            self.rewind.order(message)
        elif op == "fork":
            self.runner.settle()
            self.channel.send({"op": "result", "id": message["id"]})
        elif op == "forked":
            self.channel.adopt()
            if self.rewind is not None:
                self.rewind.restart()
            if message["reseed"]:
                reseed()
        elif op == "run":  # else the answer to a call that has given up
            self._run_step(message)

    def _run_step(self, message):
        step = message["id"]
        if self.rewind is not None and not self.rewind.begin(step):
            return
        self.interrupts.begin()
        self.exit_code = None
        try:
            result = self._run(message, step, message.get("name") or "<step %d>" % step)
        except BaseException as why:
            result = explain(step, why)
        self.callbacks.end()
        self.interrupts.end()
        if self.rewind is not None:
            if self.exit_code is not None and self.rewind.is_covered():
                exit_now(self.exit_code)  # whoever takes over tells of it
            why = self.rewind.done()
            if why:
                result = b'%s,"rewind":%s}' % (result[:-1], to_bytes(why))
        try:
            self.channel.send_bytes(result)
        except Lost:
            exit_now(LOST)
        except BaseException:
            exit_now(BROKEN)
        if self.exit_code is not None:
            exit_now(self.exit_code)
        if self.rewind is not None:
            self.rewind.trim()

    def _run(self, message, step, name):
        """The result, as bytes."""
        self.was_cut = False
        self.value_max = max(VALUE_LEAST, min(message.get("value_max", VALUE_MAX), VALUE_LIMIT))
        self.callbacks.begin(step, message.get("calls_max", CALLS_MAX), self.value_max)
        self.sources.add(name, message["code"])
        self.namespace.pop("__warningregistry__", None)  # another step may warn of the same
        attempt = self.interrupts.attempt
        value = told = compiled = None
        why = self._declare(message)
        if why is None:
            compiled, why = attempt(self._compile, message, name)
        if why is None and not message.get("check_only"):
            value, why = attempt(self.runner.run, compiled)
            self._undo()
        if self.channel.is_forks():
            self._end_fork(why)
        if value is not None:
            told, why = attempt(self._describe, value)
        if message.get("figures", True) and "matplotlib.pyplot" in sys.modules:
            shown = value if rich.is_figure(value) else None
            _, failed = attempt(self.figures.capture, shown)
            why = failed if why is None else why
        members = {"op": "result", "id": step}
        if isinstance(why, SystemExit):
            members["exit_code"] = self.exit_code = self._exit(why)
        elif why is not None:
            members.update(self._tell(why, name))
        self.streams.settle()
        self.sources.settle(name, compiled)
        if self.was_cut:
            members["cut"] = True
        data = to_bytes(members)
        return b'%s,"value":%s}' % (data[:-1], told.encode()) if told else data

    def _declare(self, message):
        """What holds from this step on, so that no interrupt may come in between.  Returns what it
        failed with."""
        try:
            if "policy" in message:
                self.guard.set(message["policy"])
            if "globals" in message:
                self.namespace.update(message["globals"])
            if message.get("callbacks") is not None:
                self.callbacks.declare(message["callbacks"])
        except Exception as why:
            return why
        return None

    def _compile(self, message, name):
        self.guard.check(message["code"], name)
        return compile_step(message["code"], name, message.get("mode", "cell"))

    def _describe(self, value):
        text, was_cut = rich.describe(value, self.value_max)
        self.was_cut = self.was_cut or was_cut
        return text

    def _tell(self, why, name):
        """An exception's members."""
        is_interrupt = isinstance(why, KeyboardInterrupt) and self.interrupts.happened
        told, failed = self.interrupts.attempt(failure.describe, why, name)
        if failed is not None:  # as it does when it takes too long: its str() is the program's
            told = failure.brief(why)
            is_interrupt = is_interrupt or isinstance(failed, KeyboardInterrupt)
        return {"exception": told, "interrupted": True} if is_interrupt else {"exception": told}

    def _undo(self):
        """What would be in our way, or in the next step's."""
        if sys.gettrace() is not None:
            sys.settrace(None)
        if sys.getprofile() is not None:
            sys.setprofile(None)
        if sys.getrecursionlimit() < RECURSION_MIN:
            sys.setrecursionlimit(RECURSION_MIN)
        self.interrupts.install()

    # ---- ends ----

    def _exit(self, why):
        """As Python does at its end.  Returns the exit status."""
        code = why.code
        if code is not None and not isinstance(code, int):
            self.interrupts.attempt(self._complain, code)
        self.interrupts.attempt(atexit._run_exitfuncs)
        if code is None or isinstance(code, int):
            return int(code or 0) & 0xff
        return 1

    @staticmethod
    def _complain(code):
        sys.stderr.write("%s\n" % (code,))

    def _end_fork(self, why):
        """The program has forked, and this is its child's end: it is no concern of the server's."""
        code = 0
        if isinstance(why, SystemExit):
            code = self._exit(why)
        elif why is not None:
            code = 1
            failure.strip(why)
            self.interrupts.attempt(failure.show, why)
        self.interrupts.attempt(self.streams.settle)
        exit_now(code)

    # ---- display() ----

    def display(self, value):
        step = self.callbacks.step
        if step is None:
            raise RuntimeError("display() was called while no step runs")
        text, was_cut = rich.describe_display(value, self.value_max)
        self.was_cut = self.was_cut or was_cut
        try:
            self.channel.send_bytes(('{"op":"display","id":%d,"data":%s}' % (step, text)).encode())
        except Lost:
            raise ConnectionError("nobody is there to look at it") from None

    def _make_display(self):
        @interruptible
        def display(*values, raw=False, **_):
            """Show values to whoever runs this session.  raw: they are dicts of MIME types."""
            try:
                for value in values:
                    self.display(rich.Forms(value) if raw else value)
            finally:
                self.interrupts.check()

        display.__module__, display.__qualname__ = "builtins", "display"
        return display


def reseed():
    """What was drawn before a fork is every branch's.  Generators of the program's own go on."""
    modules = sys.modules
    for name, renew in (("random", lambda module: module.seed()),
                        ("numpy.random", lambda module: module.seed()),
                        ("tempfile", lambda module: setattr(module, "_name_sequence", None)),
                        ("uuid", lambda module: setattr(module, "_last_timestamp", None)),
                        ("_ssl", lambda module: module.RAND_add(os.urandom(32), 32.0))):
        if name in modules:
            try:
                renew(modules[name])
            except Exception:  # something else of that name
                pass


def explain(step, why):
    """The result of a step that we have failed at."""
    try:
        return to_bytes({"op": "result", "id": step, "exception": failure.brief(why)})
    except BaseException:  # no memory, or nothing left of what we need
        return NO_RESULT % step


NO_RESULT = b'{"op":"result","id":%d,"exception":{"type":"MemoryError","module":"builtins",' \
    b'"message":"","traceback":"MemoryError\\n","line":null,"frames":[]}}'
