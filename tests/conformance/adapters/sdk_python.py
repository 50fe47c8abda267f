"""sdk_python - calls of the Python SDK's classes, and what they return or raise.

The cases are carried out in this process, against the context's daemon; calls that are not methods
of the class are those of `Helpers`.
"""
import asyncio
import base64
import concurrent.futures
import contextlib
import enum
import hashlib
import importlib
import inspect
import os
import re
import statistics
import sys
import tempfile
import threading
import time

from expect import check_seconds, fill, short

MODULES = ("agentfly", "toolweaver", "nemo", "claw", "codemie")  # a case may say which by number
ABSENT = object()


# ---- what cases speak of -----------------------------------------------------------------------

def raise_keyerror(text):
    def function(*_args, **_kwargs):
        raise KeyError(text)
    return function


async def async_identity_times_2(x):
    return 2 * x


class Repository:
    """A file repository that remembers."""

    def __init__(self):
        self.written, self.readable = [], {}

    def write_file(self, name, mime_type, owner, content=None):
        file = importlib.import_module("vial.codemie").FileObject(
            name=name, mime_type=mime_type, owner=owner, content=content)
        self.written.append(file)
        return file

    def read_file(self, file_name, owner, mime_type=None):
        return self.readable.get(file_name)


class Builder:
    """Makes Python objects of a case's JSON.  Expressions see the variables as they are later."""

    def __init__(self, module):
        self.module = module
        self.scope = {"raise_keyerror": raise_keyerror,
                      "async_identity_times_2": async_identity_times_2}

    def make(self, value):
        if isinstance(value, list):
            return [self.make(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$pyexpr" in value:
            return eval(value["$pyexpr"], self.scope)  # the cases are ours
        if "$var" in value:
            return self.scope.setdefault(value["$var"], self.make(value.get("value")))
        if "$new" in value:
            kwargs = self.make(value.get("kwargs", {}))
            if "content_b64" in value:
                kwargs["content"] = base64.b64decode(value["content_b64"])
            if "content_random" in value:
                kwargs["content"] = os.urandom(value["content_random"])
            return getattr(self.module, value["$new"])(*self.make(value.get("args", [])), **kwargs)
        return {key: self.make(item) for key, item in value.items()}


# ---- helpers -----------------------------------------------------------------------------------

class Found(list):
    """What was found; or how much, for who asks for a number."""

    __hash__ = None

    def __eq__(self, other):
        return len(self) == other if isinstance(other, int) else list(self) == other

    def __le__(self, other):
        return len(self) <= other


class Helpers:
    """Calls that are not methods of the class, with the plain meaning of their names."""

    def __init__(self, trial):
        self.trial = trial
        self.leases = contextlib.ExitStack()

    @property
    def object(self):
        return self.trial.object

    # any

    def attrs(self):
        return self.object

    def host_var(self, name):
        return self.trial.builder.scope[name]

    async def gather(self, *calls):
        calls = calls[0] if len(calls) == 1 and not is_call(calls[0]) else calls
        return await asyncio.gather(*[self.trial.call(
            call if isinstance(call, dict) else {"call": call[0], "args": call[1:]})
            for call in calls])

    async def parallel_execute(self, calls, workers=4):
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return list(pool.map(lambda given: spread(self.object.execute, given), calls))

    async def bench_execute(self, *args, runs=20, n=None, **kwargs):
        if args and isinstance(args[-1], int):
            *args, runs = args
        seconds = []
        for _ in range(n or runs):
            start = time.monotonic()
            self.object.execute(*args, **kwargs)
            seconds.append(time.monotonic() - start)
        return seconds

    # seeds 0 and 1

    async def acquire(self):
        self.trial.object = await self.trial.kind.acquire()

    async def other_env_step(self, *args):
        async with self.trial.construct() as other:
            return await other.step(*args)

    async def other_sandbox_execute(self, *args, **kwargs):
        async with self.trial.construct() as other:
            return await other.execute_code(*args, **kwargs)

    def limits(self):
        return self.object.limits

    def new_limits(self, *args, **kwargs):
        if len(args) == 1 and isinstance(args[0], dict):
            args, kwargs = (), {**args[0], **kwargs}
        return self.trial.module.ResourceLimits(*args, **kwargs)

    # seed 3

    def analyze_error(self, result):
        return self.trial.module.AutoDebuggerIntegration.analyze_error(result)

    def create_debug_report(self, result):
        return self.trial.module.AutoDebuggerIntegration.create_debug_report(result)

    def analyze_last(self):
        return self.analyze_error(self.trial.last)

    def report_last(self):
        return self.create_debug_report(self.trial.last)

    def leftover_processes(self, *words, **more):
        """Of sandboxes: the commands of processes, other than this one, that contain the words."""
        words += tuple(map(str, more.values()))
        time.sleep(0.3)
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open("/proc/%s/cmdline" % pid, "rb") as file:
                    command = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
                if words and int(pid) != os.getpid() and all(word in command for word in words):
                    found.append(command)
        return Found(found)

    # seed 4

    def config(self):
        return self.object.config

    def config_with_env(self, *given, **variables):
        variables.update(variables.pop("env", {}))
        for more in given:
            variables.update(more)
        with environment(variables, complete=False):
            return self.trial.module.CodeExecutorConfig.from_env()

    def _as(self, user):
        return self.trial.construct(user_id=user)

    def workdir_for(self, user_id):
        return self._as(user_id)._get_user_workdir()

    def execute_as(self, user_id, *args, **kwargs):
        return self._as(user_id).execute(*args, **kwargs)

    def parallel_execute_as(self, *given, calls=None):
        calls = calls or (given[0] if len(given) == 1 else given)
        with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: spread(self.execute_as, call), calls))

    def repository_last(self):
        return self.trial.repository.written[-1]

    def repository_count(self):
        return len(self.trial.repository.written)

    def repository_names_unique(self):
        names = [file.name for file in self.trial.repository.written]
        return len(set(names)) == len(names)

    names_unique = repository_names_unique
    count = repository_count

    def schema_description(self):
        return self.object.args_schema["properties"]["code"]["description"]

    def schema_fields(self):
        schema = self.object.args_schema
        return {name: "required" if name in schema["required"] else "optional"
                for name in schema["properties"]}

    def _manager(self):
        return self.trial.module.SandboxSessionManager(self.object.config)

    def manager_is_singleton(self):
        return self._manager() is self._manager()

    def lock_same(self, one, other):
        manager = self._manager()
        return manager._get_or_create_lock(one) is manager._get_or_create_lock(other)

    def pool_size(self):
        return self._manager().pool_size

    def occupy_pool(self, seconds=None, **_more):
        for _ in range(self.object.config.max_pod_pool_size):
            self.leases.enter_context(self._manager().lease(self.object.config))
        if seconds is not None:
            threading.Timer(seconds, self.leases.close).start()

    def kill_backend_session(self, *_args, **_more):
        for session in list(self._manager()._sessions.values()):
            session.close()

    def age_session(self, *args, seconds=301):
        seconds = next((one for one in args if isinstance(one, (int, float))), seconds)
        stamps = self._manager()._session_timestamps
        for name in stamps:
            stamps[name] -= seconds


def spread(function, given):
    """Call it with what a case gives: arguments in order, by name, or both."""
    if isinstance(given, dict) and set(given) <= {"call", "args", "kwargs"}:
        return function(*given.get("args", []), **given.get("kwargs", {}))
    return function(**given) if isinstance(given, dict) else \
        function(given) if isinstance(given, str) else function(*given)


def is_call(given):
    return isinstance(given, dict) or (bool(given) and isinstance(given[0], str))


@contextlib.contextmanager
def environment(variables, complete):
    """The host's variables; `complete`: no others of the tool's."""
    before = dict(os.environ)
    try:
        if complete:
            for name in [name for name in os.environ if name.startswith("CODE_EXECUTOR_")]:
                del os.environ[name]
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


# ---- what is expected of a value -----------------------------------------------------------------

def plain(value):
    """As JSON has it."""
    if isinstance(value, (list, tuple)) and not isinstance(value, Found):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value), key=repr)
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def member(value, name):
    if isinstance(value, dict):
        return plain(value.get(name, ABSENT))
    return plain(getattr(value, name, ABSENT))


def text_of(value):
    return value if isinstance(value, str) else "\n".join(map(str, value.values())) \
        if isinstance(value, dict) else str(value)


def equal(value, want):
    value = plain(value)
    if isinstance(value, enum.Enum) and isinstance(want, str):
        value = value.name if want in type(value).__members__ else value.value
    return [] if value == want and isinstance(value, bool) == isinstance(want, bool) else \
        ["is %s, expected %s" % (short(value, 300), short(want))]


def matches(value, pattern):
    return [] if re.search(pattern, text_of(value)) else \
        ["is %s, does not match /%s/" % (short(text_of(value), 400), pattern)]


def differs(value, pattern):
    return ["is %s, matches /%s/" % (short(text_of(value), 400), pattern)] \
        if re.search(pattern, text_of(value)) else []


def one_of(value, want):
    return [] if plain(value) in want else ["is %s, expected one of %s" % (short(value), want)]


def each(check):
    """Of some members."""
    def checked(value, want):
        return ["%s %s" % (name, why) for name, one in want.items()
                for why in check(member(value, name), one)]
    return checked


def listed(words):
    return [words] if isinstance(words, str) else words


def contains(value, words):
    return ["is %s, lacks %r" % (short(text_of(value), 400), word) for word in listed(words)
            if word not in text_of(value)]


def lacks(value, words):
    return ["is %s, contains %r" % (short(text_of(value), 400), word) for word in listed(words)
            if word in text_of(value)]


def has(value, names):
    return ["has no %s" % name for name in names if member(value, name) is ABSENT]


def has_not(value, names):
    return ["has %s" % name for name in names if member(value, name) is not ABSENT]


def present(value, names):
    return ["%s is %s" % (name, member(value, name)) for name in names
            if member(value, name) in (ABSENT, None)]


def columns(value, want):
    return [why for name, column in want.items()
            for why in equal([member(item, name) for item in value], column)]


def keys_of_items(value, want):
    return [why for item in value for why in has(item, want)]


def in_range(value, bounds):
    low, high = (bounds.get("min", value), bounds.get("max", value)) \
        if isinstance(bounds, dict) else bounds
    return [] if value is not ABSENT and low <= value <= high else \
        ["is %s, expected %s" % (value, bounds)]


def has_length(value, want):
    return in_range(len(value), want) if isinstance(want, dict) else equal(len(value), want)


def decimals(value, count):
    return [] if round(value, count) == value else ["is %r, has more decimals" % value]


def has_content(value, want):
    content = value.content if isinstance(value.content, bytes) else value.content.encode()
    return equal(content.decode("utf-8", "replace"), want)


CHECKS = {
    "returns": equal, "returns_in": one_of, "returns_regex": matches,
    "returns_not_regex": differs, "returns_contains": contains, "returns_not_contains": lacks,
    "returns_len": has_length,
    "returns_max": lambda value, want: [] if value <= want else ["is %s" % value],
    "returns_map": each(equal), "returns_map_regex": each(matches), "returns_has": has,
    "returns_lacks": has_not, "returns_field": columns, "returns_keys_of_items": keys_of_items,
    "content": has_content, "attrs": each(equal), "attrs_in": each(one_of),
    "attrs_regex": each(matches), "attrs_not_regex": each(differs), "attrs_present": present,
    "attrs_range": each(in_range), "attrs_decimals": each(decimals),
}


# ---- a case ------------------------------------------------------------------------------------

def module_of(case):
    """The one that is named, or the first that has the class."""
    names = [MODULES[case["seed"]]] if "seed" in case else MODULES
    modules = [importlib.import_module("vial." + name) for name in names]
    return next((m for m in modules if hasattr(m, case["input"]["class"])), modules[0])


class Trial:
    """A case being carried out."""

    def __init__(self, case, context):
        self.given, self.expect = case["input"], case["expect"]
        self.slack, self.url = context.slack, context.url
        self.module = module_of(case)
        self.kind = getattr(self.module, self.given["class"])
        self.builder = Builder(self.module)
        self.repository = Repository()
        self.init = self.builder.make(self.given.get("init", {}))
        self.last, self.object = None, None
        self.helpers = Helpers(self)

    def construct(self, **more):
        init = {**self.init, **more}
        if self.given["class"] == "CodeExecutorTool":
            init.setdefault("file_repository", self.repository)
        if self.given["class"] in ("LocalSandbox", "get_sandbox"):
            init.setdefault("uri", self.url)
        return self.kind(**init)

    async def call(self, step):
        args, kwargs = self.builder.make([step.get("args", []), step.get("kwargs", {})])
        name = step["call"]
        function = getattr(self.helpers, name, None) or getattr(self.object, name, None) or \
            getattr(self.module, name)
        value = function(*args, **kwargs)
        value = await value if inspect.isawaitable(value) else value
        if type(value).__name__ == "ExecutionResult":
            self.last = value
        return value

    async def run(self):
        wrong = []
        try:
            for number, step in enumerate(self.given["steps"]):
                want = self.expect["steps"][number]
                start = time.monotonic()
                value, raised = None, None
                try:
                    if self.object is None:  # what the constructor raises, the step does
                        self.object = self.construct()
                        start = time.monotonic()
                    value = await self.call(step)
                except Exception as why:  # pylint: disable=broad-except
                    raised = why
                seconds = time.monotonic() - start
                wrong += ["step %d: %s" % (number + 1, why)
                          for why in self.check(value, raised, seconds, want)]
        finally:
            await self.close()
        return wrong

    async def close(self):
        self.helpers.leases.close()
        if hasattr(self.object, "aclose"):
            await self.object.aclose()
        if self.given["class"] == "CodeExecutorTool" and self.object is not None:
            self.module.SandboxSessionManager().close_all()

    # ---- what is expected ----

    def check(self, value, raised, seconds, want):
        wrong = check_seconds(seconds, want, self.slack)
        for path in want.get("host_absent", []):
            if os.path.exists(path):
                wrong.append("%s exists on the host" % path)
        if "any" in want:
            tries = [self.check(value, raised, seconds, one) for one in want["any"]]
            return wrong + ([] if any(not one for one in tries) else tries[0])
        if "raises" in want:
            return wrong + check_raised(raised, value, want["raises"])
        if raised is not None:
            return [*wrong, "raised %s: %s" % (type(raised).__name__, short(str(raised), 400))]
        for key, check in CHECKS.items():
            if key in want:
                wrong += check(value, want[key])
        if "returns_sha_of_inputs" in want:
            digits = want["returns_sha_of_inputs"]
            shas = [hashlib.sha256(file.content).hexdigest()[:digits]
                    for file in self.init["input_files"]]
            wrong += equal(value, repr(shas))
        if "median_max_seconds" in want and \
                statistics.median(value) > want["median_max_seconds"] * self.slack:
            wrong.append("median %.3f s" % statistics.median(value))
        return wrong


def check_raised(raised, value, want):
    if raised is None:
        return ["raised nothing, returned %s" % short(value)]
    names = [kind.__name__ for kind in type(raised).__mro__]
    wanted = want.get("type_in") or [want.get("type", "Exception")]
    wrong = []
    if not any(name in names for name in wanted):
        wrong.append("raised %s (%s), expected %s" % (names[0], short(str(raised)), wanted))
    if not re.search(want.get("message_regex", ""), str(raised)):
        wrong.append("raised %s, does not match /%s/" % (short(str(raised), 400),
                                                         want["message_regex"]))
    return wrong


class Adapter:
    def __init__(self, context):
        self.context = context
        sys.path.insert(0, os.path.join(context.root, "sdk/python/src"))
        os.environ["VIAL_BINARY"] = context.vial
        os.environ.pop("VIAL_URL", None)
        url = context.url
        os.environ["VIAL_SOCKET"] = context.daemon.path if context.daemon else ""
        if not context.daemon:
            os.environ["VIAL_URL"] = url

    def close(self):
        pass

    def run(self, case):
        with tempfile.TemporaryDirectory(prefix="vial-conformance-") as tmp:
            case = fill(case, {"{TMP}": tmp})
            for name, text in case["input"].get("files", {}).items():
                path = os.path.join(tmp, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
            given = case["input"].get("env")
            before = os.getcwd()
            os.chdir(tmp)
            try:
                with environment(given or {}, complete=given is not None):
                    return asyncio.run(Trial(case, self.context).run())
            finally:
                os.chdir(before)
