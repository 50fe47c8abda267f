"""sitecustomize - makes an ordinary Python a zygote, and each fork of it an ordinary Python again.

`site` imports it at the start: PYTHONPATH leads here.  It loads what programs will want
and leaves a path hook behind, which is the last thing that Python calls before it opens its
program.  The hook calls fork(), which is not libc's (guest/preload.c): in the zygote it
never returns; in a guest, inside its sandbox, it returns 0.  The guest puts right what
differs from a fresh start, waits for its program, and is gone: nothing of this shows in the
program, not even on its stack.

What cannot be put right is started afresh, in the same sandbox.  Python 3.8 and later.
"""
import gc
import os
import posix
import sys
import time

HERE = os.path.dirname(__file__)

# getpriority() is ours as well (guest/call.h); these are no priorities.
PREPARE, WAIT, AFRESH, LOADING, SERVE, REHEARSED = range(0x76696100, 0x76696106)
RENEWS = 1
HAS_WORDS, RENAMED, PLAIN, SESSION, REHEARSAL, LATER = 1, 2, 4, 8, 16, 32

CONTROL_FD, WORDS_FD = 1000, 1001  # guest/go.h
FAILED, ERR_BUG = "<IIii248s", 8   # a record with a struct err: GO_FAILED

# What short programs use, as long as it is small.
COMMON = """abc argparse ast base64 bisect calendar collections collections.abc contextlib copy csv
    dataclasses datetime decimal enum fnmatch fractions functools glob hashlib heapq inspect io
    itertools json linecache logging math operator pathlib pickle platform pprint queue random re
    secrets shutil signal socket statistics string struct subprocess tempfile textwrap threading
    traceback types typing unicodedata urllib.parse uuid warnings weakref zlib""".split()

# Variables that are read when an interpreter or a library starts: a run that sets one is not warm.
STARTERS = ("PYTHON", "LD_", "LC_", "LANG", "GLIBC_", "MALLOC_", "OPENSSL_", "MPL")

# What these want to be done after a fork is for other threads, or for fonts in use, of which there
# are none, or done by renew(): Python need not know that there was one, and touches far less memory.
FORK_SAFE = ("asyncio.events", "concurrent.futures.thread", "logging", "matplotlib.font_manager", "random",
             "threading")


# ---- the zygote ------------------------------------------------------------------------------

def hide():
    """Take our traces away.  Returns the modules that this environment wants loaded."""
    sys.path[:] = [path for path in sys.path if path != HERE]
    sys.path_importer_cache.pop(HERE, None)
    for name in ("PYTHONPATH", "LD_PRELOAD"):
        rest = [path for path in os.environ.pop(name, "").split(":")
                if path and not path.startswith(HERE)]
        if rest:
            os.environ[name] = ":".join(rest)
    os.environ.pop("LD_BIND_NOW", None)
    wanted = os.environ.get("VIAL_PRELOAD", "").split(",")
    for name in [name for name in os.environ if name.startswith("VIAL_")]:
        del os.environ[name]
    return [name for name in wanted if name]


def import_real():
    """The sitecustomize that Python would have found without us: False when there is none."""
    ours = sys.modules.pop(__name__)
    try:
        __import__(__name__)
        return True
    except ImportError as why:
        if why.name != __name__:
            raise
        return False
    finally:
        sys.modules.setdefault(__name__, ours)


def register_noted(**functions):
    """Stands in for os.register_at_fork() while modules are loaded."""
    strangers.add(sys._getframe(1).f_globals.get("__name__"))
    posix.register_at_fork(**functions)


def load(wanted):
    warnings = sys.modules.get("warnings") or __import__("warnings")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in COMMON:
            try:
                __import__(name)
            except ImportError:  # this Python was built without it
                pass
        for name in wanted:
            try:
                __import__(name)
            except Exception as why:
                os.write(2, ("preload %s: %s: %s\n"
                             % (name, type(why).__name__, why)).encode())


def load_session():
    """The driver of sessions, for guests that become one; to programs it is not there."""
    sys.path.insert(0, HERE)
    try:
        return __import__("session")
    except ImportError:  # this Python lacks something of it: each session starts afresh, and says so
        return None
    finally:
        sys.path.remove(HERE)
        for name in [name for name in sys.modules if name.split(".")[0] == "session"]:
            del sys.modules[name]
        for path in [path for path in sys.path_importer_cache if path.startswith(HERE)]:
            del sys.path_importer_cache[path]


def wait_for_program(path):
    """The path hook.  Python goes on when it has failed, as path hooks do."""
    if path != program:
        raise ImportError
    sys.path_hooks.remove(wait_for_program)
    compile("", path, "exec")
    gc.collect()
    gc.freeze()  # what is here now is never looked at again, nor copied for it
    os.dup2(channel, CONTROL_FD, inheritable=False)
    os.close(channel)
    os.environ["VIAL_RECEIVES"] = "1"
    sys._vial_take_words = take_words_late  # for guest/python_late.c
    prepared = posix.getpriority(PREPARE, 0)
    del sys._vial_take_words
    if strangers <= set(FORK_SAFE):
        posix.getpriority(SERVE, 0)
        sys.modules["random"].seed()
    elif posix.fork() != 0:
        os._exit(125)
    try:
        become_guest(path, prepared)
    except BaseException as why:  # it must not go on as something else
        fail(("%s: %s" % (type(why).__name__, why)).encode()[:240])
    raise ImportError


def fail(text):
    try:
        os.write(CONTROL_FD, sys.modules["struct"].pack(FAILED, ord("x"), 256, ERR_BUG, 0, text))
    except OSError:  # the program was already here
        os.write(2, b"vial: %s\n" % text)
    os._exit(125)


# ---- a guest ---------------------------------------------------------------------------------

def become_guest(path, prepared):
    del os.environ["VIAL_RECEIVES"]
    renew(prepared)
    told = posix.getpriority(WAIT, 0)
    if told & LATER:
        return
    if not told & PLAIN or (told & SESSION and not session):
        posix.getpriority(AFRESH, 0)
    if told & HAS_WORDS:
        take_words(path, told)
    if told & SESSION:
        session.serve(rehearse() if told & REHEARSAL else CONTROL_FD)  # does not return


def rehearse():
    """A channel on which two steps wait: one as any, and the end of the rehearsal."""
    server, driver = sys.modules["socket"].socketpair()
    for step in ("def greet(name):\n    return f'hello, {name}'\nprint(greet('you'))\ngreet('me')",
                 "import posix; posix.getpriority(%d, 0)" % REHEARSED):
        message = {"op": "run", "id": server.fileno(), "code": step}
        server.sendall(sys.modules["json"].dumps(message).encode() + b"\n")
    server.detach()
    return driver.detach()


def renew(prepared):
    """What was drawn in the zygote is not every guest's.  Much of the library sees to itself."""
    modules = sys.modules
    modules["threading"].main_thread()._set_native_id()
    modules["tempfile"]._name_sequence = None
    modules["uuid"]._last_timestamp = None
    if "multiprocessing.process" in modules:
        modules["multiprocessing.process"].current_process().authkey = os.urandom(32)
    if "_ssl" in modules:
        modules["_ssl"].RAND_add(os.urandom(32), 32.0)
    if "numpy.random" in modules and not prepared & RENEWS:
        modules["numpy.random"].seed()


def take_words_late(told):
    try:
        take_words(program, told)
    except BaseException as why:
        fail(("%s: %s" % (type(why).__name__, why)).encode()[:240])


def take_words(path, told):
    """Arguments, environment, name: items of a letter, a text and a NUL."""
    with open(WORDS_FD, "rb", closefd=False) as file:
        items = file.read().split(b"\0")[:-1]
    args = [os.fsdecode(item[1:]) for item in items if item[:1] == b"a"]
    pairs = [item[1:].split(b"=", 1) for item in items if item[:1] == b"e"]
    names = [os.fsdecode(item[1:]) for item in items if item[:1] == b"n"]

    changed = [(name, value) for name, value in pairs if os.environb.get(name) != value]
    if (names and not told & RENAMED) or \
            any(os.fsdecode(name).startswith(STARTERS) for name, _ in changed):
        posix.getpriority(AFRESH, 0)
    for name, value in changed:
        os.environb[name] = value
    if any(name == b"TZ" for name, _ in changed):
        time.tzset()
    for words in (sys.argv, getattr(sys, "orig_argv", [])):
        words[-1:] = names or words[-1:]
        words += args
    if names:
        sys.path_importer_cache.pop(path)
        sys.path_importer_cache[os.path.join(os.getcwd(), names[0])] = None
    posix.close(WORDS_FD)


# ---- now -------------------------------------------------------------------------------------

channel = os.dup(CONTROL_FD)  # elsewhere for now: modules may fork() when they are loaded
os.close(CONTROL_FD)
wanted = hide()
has_real = import_real()
posix.getpriority(LOADING, 0)
strangers = set()
os.register_at_fork = register_noted
load(wanted)
session = load_session()
os.register_at_fork = posix.register_at_fork
program = os.path.abspath(sys.argv[0]) if sys.version_info >= (3, 9) else sys.argv[0]
sys.path_hooks.append(wait_for_program)
if not has_real:
    raise ImportError(name=__name__)  # as if there were none
