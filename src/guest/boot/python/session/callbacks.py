"""callbacks - functions of the program that are carried out at the server's other side.

Where a coroutine could wait, a call is one: called while an event loop runs in its thread, a
function returns a coroutine, to be awaited, gathered, made a task of; called anywhere else, it
blocks and returns the value.  A callback declared as "sync" or "async" is that everywhere.

There is no thread of ours that receives.  Of the threads that wait, one leads: it receives,
gives every other its answer, and hands the lead on when it has its own.  Event loops watch the
channel themselves, as long as one of their tasks waits.
"""
import builtins
import os
import sys
from _thread import allocate_lock

from .channel import Lost, move_high
from .interrupt import interruptible
from .values import Inexact, clean, to_json

EXCEPTIONS = {name: kind for name, kind in vars(builtins).items()
              if isinstance(kind, type) and issubclass(kind, Exception)}

BASES = {name: kind for name, kind in EXCEPTIONS.items() if kind is not Exception}  # which all have


class CallbackError(Exception):
    """A callback failed with an exception that Python does not have."""


CallbackError.__module__ = "builtins"  # where programs find it


class Call:
    """One that is under way.  `answer` is None until there is one."""

    def __init__(self, name, future=None):
        self.name = name
        self.answer = None
        self.future = future
        self.woken = allocate_lock()
        self.woken.acquire()

    def settle(self, answer):
        """Call it without locks: an event loop's code runs."""
        self.answer = answer
        if self.future is None:
            wake(self)
        else:
            try:
                self.future.get_loop().call_soon_threadsafe(settle_future, self.future, answer)
            except RuntimeError:  # the loop is closed: nobody waits
                pass

    @interruptible
    def sleep(self, interrupts):
        interrupts.check()
        self.woken.acquire()

    def result(self):
        if self.answer["op"] == "return":
            return self.answer.get("value")
        raise to_exception(self.answer)


def wake(call):
    try:
        call.woken.release()
    except RuntimeError:  # it was woken already, and has not yet noticed
        pass


def settle_future(future, answer):
    if not future.done():
        future.set_result(answer)


def to_exception(answer):
    name, message = str(answer.get("type")), str(answer.get("message"))
    try:
        if name in EXCEPTIONS:
            return EXCEPTIONS[name](message)
        # A class of the caller's own: its name, on top of what Python has of it.
        return type(name, (BASES[answer.get("base")],), {"__module__": "builtins"})(message)
    except (KeyError, TypeError, ValueError):  # not Python's, or not made of one text; or no name
        return CallbackError("%s: %s" % (name, message))


def failed(kind, message):
    return {"op": "raise", "type": kind.__name__, "message": message}


class Callbacks:
    def __init__(self, channel, interrupts, namespace):
        self.channel = channel
        self.interrupts = interrupts
        self.namespace = namespace
        self.functions = {}
        self.step = None  # its id, while there is one
        self._lock = allocate_lock()
        self._open = {}
        self._watched = {}  # event loops: how many of their tasks wait
        self._is_led = False
        self._kick = None   # a pipe, to get a leader away from the channel
        self._last = 0
        self._left = self._max = self._size_max = 0

    # ---- the session's part ----

    def declare(self, wanted):
        """`wanted` is the list of names, or of objects with `name` and `kind`."""
        for name, function in self.functions.items():
            if self.namespace.get(name) is function:
                del self.namespace[name]
        self.functions = {}
        for item in wanted:
            name, kind = (item, None) if isinstance(item, str) else (item["name"], item.get("kind"))
            self.functions[name] = make_function(self, name, kind)
        self.namespace.update(self.functions)

    def begin(self, step, calls_max, size_max):
        self._left = self._max = calls_max
        self._size_max = size_max
        self.step = step

    def end(self):
        """What still waits, in threads and tasks that the step has left behind, waits in vain."""
        with self._lock:  # from here on, what is received is not for them
            self.step = None
        if self._open:
            self._fail_all(RuntimeError, "the step that made this call is over")
        if self._is_led and self._kick is not None:
            try:
                os.write(self._kick[1], b"k")
            except OSError:  # it is full, or the program has closed it
                pass

    def _fail_all(self, kind, message):
        with self._lock:
            calls = list(self._open.values())
            self._open.clear()
        for call in calls:
            call.settle(failed(kind, message))

    # ---- calls ----

    def _start(self, name, args, kwargs, future):
        """Send it.  Returns its number and what there is to wait for."""
        if self.channel.lost:  # in a fork, too, where the lock may be locked for ever
            raise ConnectionError("nobody is there to carry out %s()" % name)
        texts = [self._to_json(name, what) for what in (args, kwargs)]
        if len(texts[0]) + len(texts[1]) > self._size_max:
            raise ValueError("the arguments of %s are more than %d bytes of JSON"
                             % (name, self._size_max))
        call = Call(name, future)
        with self._lock:
            step = self.step
            if step is None:
                raise RuntimeError("%s() was called while no step runs" % name)
            if self._left <= 0:
                raise RuntimeError("Exceeded max tool calls (%d)" % self._max)
            self._left -= 1
            self._last += 1
            number = self._last
            self._open[number] = call
        message = '{"op":"call","id":%d,"call":%d,"name":%s,"args":%s,"kwargs":%s}' \
            % (step, number, to_json(name, 1 << 20), *texts)
        try:
            self.channel.send_bytes(message.encode())
        except Lost:
            self._open.pop(number, None)
            raise ConnectionError("nobody is there to carry out %s()" % name) from None
        return number, call

    def _to_json(self, name, what):
        try:
            return to_json(what, self._size_max)
        except Inexact as why:
            kind = ValueError if why.is_large else TypeError
            raise kind("the arguments of %s: %s" % (name, clean(str(why)))) from None

    def call(self, name, args, kwargs):
        number, call = self._start(name, args, kwargs, None)
        try:
            while call.answer is None:
                self._wait(number, call)
        finally:
            self._open.pop(number, None)
            self._hand_on()
        return call.result()

    def _wait(self, number, call):
        with self._lock:
            # One that is not open any more has been answered, and is about to be woken.
            leads = not self._is_led and number in self._open
            self._is_led = self._is_led or leads
        if not leads:
            call.sleep(self.interrupts)
            return
        try:
            if self.channel.wait_readable(self.interrupts, self._kick_fd()):
                os.read(self._kick[0], 1)
            self._receive()
        finally:
            with self._lock:
                self._is_led = False

    def _kick_fd(self):
        """None in the main thread, which never waits when a step ends."""
        if self.interrupts.is_main():
            return None
        if self._kick is None:
            pair = os.pipe()
            self._kick = [move_high(fd) for fd in pair]
            for fd in pair:
                os.close(fd)
            os.set_blocking(self._kick[1], False)
        return self._kick[0]

    def _hand_on(self):
        """Have another thread lead, if one waits and none does."""
        if self._is_led:
            return
        for call in list(self._open.values()):
            if call.future is None:
                wake(call)
                break

    def _receive(self):
        with self._lock:  # or messages would change places
            if self.step is None:
                return
            try:
                messages = self.channel.receive_now()
            except (Lost, ValueError):
                messages = None
            if messages:
                self.channel.early += [message for message in messages if message["op"] == "run"]
                settled = [(self._open.pop(message.get("call"), None), message)
                           for message in messages]
        if messages is None:
            self._fail_all(ConnectionError, "the caller has gone away")
        elif messages:
            for call, message in settled:
                if call is not None:  # or it has given up
                    call.settle(message)

    # ---- calls from event loops ----

    async def call_async(self, name, args, kwargs):
        loop = sys.modules["asyncio"].get_running_loop()
        number, call = self._start(name, args, kwargs, loop.create_future())
        self._watch(loop, 1)
        try:
            call.answer = await call.future
        finally:
            self._open.pop(number, None)
            self._watch(loop, -1)
        return call.result()

    def _watch(self, loop, count):
        self._watched[loop] = self._watched.get(loop, 0) + count
        if self._watched[loop] == 0:
            del self._watched[loop]
            loop.remove_reader(self.channel.fd)
        elif self._watched[loop] == count:
            loop.add_reader(self.channel.fd, self._receive_for, loop)

    def _receive_for(self, loop):
        if self.step is None:
            loop.remove_reader(self.channel.fd)
        else:
            self._receive()


def in_event_loop():
    asyncio = sys.modules.get("asyncio")
    return asyncio is not None and asyncio._get_running_loop() is not None


def make_function(callbacks, name, kind):
    @interruptible
    def function(*args, **kwargs):
        if kind == "async" or (kind != "sync" and in_event_loop()):
            coroutine = callbacks.call_async(name, args, kwargs)
            coroutine.__name__ = coroutine.__qualname__ = name
            return coroutine
        try:
            return callbacks.call(name, args, kwargs)
        finally:
            callbacks.interrupts.check()

    function.__name__ = function.__qualname__ = name
    function.__module__ = "__main__"
    function.__doc__ = "A callback: it is carried out by whoever runs this session."
    return function
