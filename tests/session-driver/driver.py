"""driver - the server's end of a channel, for tests: a real interpreter with its real driver.

What it prints is read all the time, so that it never waits for us; nothing here waits longer
than SECONDS.  See docs/SESSION-PROTOCOL.md.
"""
import collections
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

SECONDS = 20  # a hang, not a measure of speed
AGAIN_S = 1
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BOOT = os.path.join(ROOT, "src/guest/boot")

Step = collections.namedtuple("Step", "result displays calls stdout stderr")


class Hang(Exception):
    """The driver was to say something, and said nothing."""


class Driver:
    """One interpreter.  In `argv`, `{fd}` stands for the descriptor of its channel."""

    def __init__(self, argv, env=None, cwd=None, stdin=subprocess.DEVNULL, ready=True):
        ours, theirs = socket.socketpair()
        argv = [word.replace("{fd}", str(theirs.fileno())) for word in argv]
        self.process = subprocess.Popen(
            argv, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
            env=dict(os.environ, **env or {}), pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        self.channel = ours
        self.pid = self.process.pid
        self.printed = {self.process.stdout.fileno(): b"", self.process.stderr.fileno(): b""}
        self.open = set(self.printed) | {ours.fileno()}
        self.unread = b""
        self.last_id = 0
        for fd in self.open:
            os.set_blocking(fd, False)
        if ready:
            message = self.receive()
            assert message == {"op": "ready"}, (message, self.take_printed())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- messages ----

    def send_bytes(self, data):
        deadline = time.monotonic() + SECONDS
        while data:
            try:
                data = data[self.channel.send(data):]
            except BlockingIOError:
                self._pump(deadline, writing=True)

    def send(self, message):
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def receive(self, seconds=SECONDS):
        """The next message; None when the channel has been closed."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.unread:
            if self.channel.fileno() not in self.open:
                return None
            self._pump(deadline)
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def _pump(self, deadline, writing=False):
        left = deadline - time.monotonic()
        waiting = [self.channel] if writing else []
        readable, writable, _ = select.select(self.open, waiting, [], max(left, 0))
        if not readable and not writable and left <= 0:
            raise Hang(self.take_printed())
        for fd in readable:
            self._read(fd)

    def _read(self, fd):
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.open.discard(fd)
        elif fd in self.printed:
            self.printed[fd] += data
        else:
            self.unread += data
        return bool(data)

    def take_printed(self):
        """What was printed since the last time: (stdout, stderr)."""
        for fd in self.printed:
            while fd in self.open and self._read(fd):
                pass
        texts = [data.decode("utf-8", "backslashreplace") for data in self.printed.values()]
        self.printed = dict.fromkeys(self.printed, b"")
        return tuple(texts)

    def wait_printed(self, text):
        """Until its standard output has this; it is kept."""
        deadline = time.monotonic() + SECONDS
        while text.encode() not in self.printed[self.process.stdout.fileno()]:
            self._pump(deadline)

    # ---- steps ----

    def start(self, code, **members):
        """Send a step and do not wait for it.  Returns its id."""
        self.last_id += 1
        self.send(dict({"op": "run", "id": self.last_id, "code": code}, **members))
        return self.last_id

    def start_words(self, code):
        """The same for a driver that reads no JSON."""
        self.last_id += 1
        self.send_bytes(b"%d\0%s\0" % (self.last_id, code.encode()))
        return self.last_id

    def finish(self, handlers=None, seconds=SECONDS):
        """Wait for the step's end.  `handlers` are the callbacks: name to function; what one
        raises goes back as `raise`.  A result of None is an interpreter that has gone."""
        displays, calls = [], []
        while True:
            message = self.receive(seconds)
            if message is not None:
                assert message["id"] == self.last_id, message
            if message is None or message["op"] == "result":
                return Step(message, displays, calls, *self.take_printed())
            if message["op"] == "display":
                displays.append(message["data"])
            else:
                calls.append(message)
                self.send(answer(message, handlers[message["name"]]))

    def run(self, code, handlers=None, **members):
        if handlers is not None:
            members.setdefault("callbacks", list(handlers))
        self.start(code, **members)
        return self.finish(handlers)

    def run_words(self, code):
        self.start_words(code)
        return self.finish()

    # ---- its end ----

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def finish_interrupted(self, interrupt=None):
        """Interrupt the step and wait for its end.  What comes before it has begun is dropped, and
        between steps it does nothing: so it is sent again until something is said."""
        deadline = time.monotonic() + SECONDS
        while not self._has_message() and time.monotonic() < deadline:
            (interrupt or self.interrupt)()
            again = time.monotonic() + AGAIN_S
            while not self._has_message() and time.monotonic() < again:
                self._pump_now(max(again - time.monotonic(), 0))
        return self.finish()

    def _has_message(self):
        return b"\n" in self.unread or self.channel.fileno() not in self.open

    def wait(self):
        """Its exit status, as subprocess has it; what it prints until then is kept."""
        deadline = time.monotonic() + SECONDS
        while self.open:
            if self.process.poll() is not None and not self._pump_now():
                break
            if time.monotonic() > deadline:
                raise Hang(self.take_printed())
            self._pump_now(0.01)
        return self.process.wait(max(deadline - time.monotonic(), 0.1))

    def _pump_now(self, seconds=0):
        readable, _, _ = select.select(self.open, [], [], seconds)
        return any([self._read(fd) for fd in readable])

    def hang_up(self):
        """Close the channel, as a server that goes away does.  Returns the exit status."""
        self.open.discard(self.channel.fileno())
        self.channel.close()
        return self.wait()

    def close(self):
        try:  # it leads its own process group: what it left behind goes with it
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.channel.close()
        self.process.stdout.close()
        self.process.stderr.close()


def answer(call, handler):
    try:
        value = handler(*call["args"], **call["kwargs"])
        return {"op": "return", "call": call["call"], "value": value}
    except Exception as why:
        base = next(kind for kind in type(why).__mro__ if kind.__module__ == "builtins")
        return {"op": "raise", "call": call["call"], "type": type(why).__name__,
                "message": str(why), "base": base.__name__}


class Case(unittest.TestCase):
    """A driver in an empty directory; `argv` starts it, with {fd} for the channel."""

    argv = ()

    def setUp(self):
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="vial-session-"))
        self.addCleanup(shutil.rmtree, self.dir)
        self.driver = Driver(self.argv, cwd=self.dir)
        self.addCleanup(self.driver.close)

    def put(self, name, text):
        path = os.path.join(self.dir, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def run_step(self, code, *args, **members):
        return self.driver.run(code, *args, **members)

    def value(self, code, *args, **members):
        """The value as JSON; everything else is a failure."""
        step = self.run_step(code, *args, **members)
        self.assertEqual((set(step.result) - {"op", "id"}, step.stderr), ({"value"}, ""),
                         step.result)
        return step.result["value"]["json"]

    def text(self, code, **members):
        value = self.run_step(code, **members).result["value"]
        return value["text"], value["type"]

    def quiet(self, code, *args, **members):
        """A step that neither has a value nor fails; returns what it printed."""
        step = self.run_step(code, *args, **members)
        self.assertEqual((set(step.result), step.stderr), ({"op", "id"}, ""), step.result)
        return step.stdout

    def exception(self, code, *args, **members):
        return self.run_step(code, *args, **members).result["exception"]

    def interrupted(self, code, after=0.3, **members):
        """Interrupt this when it has had time to begin."""
        self.driver.start(code, **members)
        time.sleep(after)
        return self.driver.finish_interrupted()
