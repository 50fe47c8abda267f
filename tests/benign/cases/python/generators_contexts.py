# Generators, context managers, decorators, closures, context variables, weak references.
import contextlib
import contextvars
import functools
import gc
import weakref


def average():
    total = count = 0
    value = None
    while True:
        value = yield value and total / count
        total, count = total + value, count + 1


def traced(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        print(f"-> {function.__name__}{args}{kwargs}")
        return function(*args, **kwargs)
    return wrapper


@traced
def power(base, exponent=2):
    return base ** exponent


@contextlib.contextmanager
def section(name):
    print("enter", name)
    try:
        yield name.upper()
    except ZeroDivisionError:
        print("swallowed")
    finally:
        print("leave", name)


running = average()
next(running)
print([running.send(n) for n in (10, 20, 60)])
print(power(3), power(2, exponent=5))
with section("one") as name, contextlib.suppress(KeyError):
    print(name, {}["missing"])
with section("two"):
    1 / 0
with contextlib.ExitStack() as stack:
    for number in range(3):
        stack.callback(print, "undo", number)


def inner():
    try:
        received = yield "inner"
        yield f"got {received}"
    finally:
        print("closed")


def outer():
    yield from inner()


steps = outer()
print(next(steps), steps.send("mail"))
steps.close()
level = contextvars.ContextVar("level", default=0)
context = contextvars.copy_context()
context.run(level.set, 5)
print(level.get(), context[level])


class Thing:
    pass


thing = Thing()
thing.me = thing
reference = weakref.ref(thing, lambda _: print("collected"))
del thing
gc.collect()
print(reference())
