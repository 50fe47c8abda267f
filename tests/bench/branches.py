"""What a live fork costs: beside the same beginning run again, a bare fork of the same process, and Docker's way."""
import collections
import contextlib
import os
import statistics
import time

import peers
from crowd import Client

Heap = collections.namedtuple("Heap", "title code bar_ms")
# Until a branch answers, p50, where a bare fork of as much costs what BARE_MS says; scaled elsewhere.
HEAPS = (Heap("10 MB of arrays", "held = numpy.ones(10 << 17)", 6),
         Heap("100 MB of arrays", "held = numpy.ones(100 << 17)", None),
         Heap("1,000 MB of arrays", "held = numpy.ones(1000 << 17)", 6),
         Heap("300 MB of Python objects", """held = []
def size(): return int(open('/proc/self/statm').read().split()[1]) * 4096
start = size()
while size() - start < 300 << 20: held += [[n, str(n)] for n in range(20000)]""", 15))
BARE_MS = 2.4          # of 1,000 MB of arrays in huge pages, to the end of the child
MANY, MANY_BAR_MB = 64, 8  # branches of 100 MB of arrays; what each may add
DEPTH = 20             # forks of one session: each takes it a level down, of 29
BARE = """
import os, time
def bare(count):
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        ends = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(ends[1], b'1')
            os._exit(0)
        os.read(ends[0], 1)
        answered = time.perf_counter()
        os.waitpid(child, 0)
        taken.append([(answered - start) * 1000, (time.perf_counter() - start) * 1000])
        for end in ends: os.close(end)
    return [sorted(column)[count // 2] for column in zip(*taken)]
bare(%d)"""


class Session:
    def __init__(self, client, environment, name=None):
        self.client = client
        self.path = "/v1/sessions/" + (name or client.post("/v1/sessions", {
            "environment": environment, "limits": {"memory": "2g"}})["id"])

    def step(self, code):
        result = self.client.post(self.path + "/runs", {"code": code})["result"]
        if result["exit_code"] != 0:
            raise RuntimeError(f"a step failed: {result['exception']}")
        return (result["value"] or {}).get("json")

    def fork(self, count=1):
        answer = self.client.post(self.path + "/fork", {"count": count})
        return [Session(self.client, None, branch["id"]) for branch in answer["branches"]]

    def memory(self):
        return self.ask("GET")["memory"]

    def ask(self, method):
        return self.client.ask(method, self.path)


def milliseconds(start):
    return (time.perf_counter() - start) * 1000


def forks(session, count):
    """Order to first answer, p50, and what the branch is charged for then."""
    taken, added = [], []
    for _ in range(count):
        start = time.perf_counter()
        branch, = session.fork()
        branch.step("1")
        taken.append(milliseconds(start))
        added.append(branch.memory() / (1 << 20))
        branch.ask("DELETE")
    return statistics.median(taken), statistics.median(added)


def replay(client, environment, code):
    start = time.perf_counter()
    session = Session(client, environment)
    session.step(code)
    session.step("1")
    taken = milliseconds(start)
    session.ask("DELETE")
    return taken


def heap(client, environment, prelude, which, count):
    """(figures, the line) of one size."""
    session = Session(client, environment)
    session.step(prelude + which.code)
    first, added = forks(session, count)
    for number in range(100):
        session.step(f"x = {number}")
    later, added_later = forks(session, count)
    answered, ended = session.step(BARE % max(5, count))
    session.ask("DELETE")
    again = statistics.median(replay(client, environment, prelude + which.code)
                              for _ in range(max(1, count // 3)))
    return {"first": first, "later": later, "bare": ended, "replay": again}, (
        f"fork, {which.title}: until the branch answers, p50: {first:.1f} ms at step 1, {later:.1f} after 100 steps; "
        f"{added:.1f} and {added_later:.1f} MB added; beside it: a bare fork {answered:.1f} ms ({ended:.1f} to its "
        f"end), the beginning again {again:.0f} ms ({again / first:.0f} times)")


def available_mb():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("MemAvailable")) / 1024


def many(client, environment, prelude):
    session = Session(client, environment)
    session.step(prelude + HEAPS[1].code)
    before, start = available_mb(), time.perf_counter()
    branches = session.fork(MANY)
    made = milliseconds(start)
    right = sum(branch.step(f"held[{number}] += {number}; float(held[{number}])") == number + 1
                for number, branch in enumerate(branches))
    taken = milliseconds(start)
    host = before - available_mb()
    added = sum(branch.memory() for branch in branches) / (1 << 20)
    for one in (session, *branches):
        one.ask("DELETE")
    again = replay(client, environment, prelude + HEAPS[1].code)
    return [f"fork, {MANY} branches of 100 MB of arrays: made in {made:.0f} ms, all have answered after {taken:.0f} ms, "
            f"{right} of them right; beside it: the beginning again, {MANY} times: {again * MANY:.0f} ms",
            say(added < MANY * MANY_BAR_MB, f"fork, {MANY} branches of 100 MB add {added:.0f} MB by their control "
                f"groups ({host:.0f} by the host's free memory), bar less than {MANY} x {MANY_BAR_MB}")]


def say(met, text):
    return f"{'met' if met else 'NOT MET'}: {text}"


def bars(figures, has_numpy):
    """Where a bare fork costs more than where the bars were set, they are as much higher."""
    scale = max(1, figures[HEAPS[2].title]["bare"] / BARE_MS)
    note = f"bare fork {scale:.1f} times that of where the bars were set" + ("" if has_numpy else "; no huge pages")
    return [say(figures[which.title][when] <= which.bar_ms * scale,
                f"fork, {which.title}, {title}: {figures[which.title][when]:.1f} ms, bar at most "
                f"{which.bar_ms * scale:.1f} ({which.bar_ms:g} x {scale:.1f}: {note})")
            for which in HEAPS if which.bar_ms
            for when, title in (("first", "at step 1"), ("later", "after 100 steps"))]


def docker(count):
    """What people do there: the files as an image, and the beginning again, for memory is not in it."""
    tool, reason = peers.docker_tool()
    title = "fork, docker commit + run"
    if reason:
        return f"left out: {title}: {reason}"
    code = "held = bytearray(100 << 20); print(len(held))"
    container, reason = peers.ask(*tool, "run", "-d", "--network", "none", peers.IMAGE, "sleep", "600")
    if reason:
        return f"left out: {title}: {reason}"
    taken = []
    try:
        for _ in range(count):
            start = time.perf_counter()
            image, reason = peers.ask(*tool, "commit", container)
            if not reason:
                said, reason = peers.ask(*tool, "run", "--rm", "--network", "none", image, "python3", "-c", code)
                taken.append(milliseconds(start))
                peers.ask(*tool, "rmi", "-f", image)
            if reason or said != str(100 << 20):
                return f"left out: {title}: {reason or said}"
    finally:
        peers.ask(*tool, "rm", "-f", container)
    return (f"{title}, 100 MB: {statistics.median(taken):.0f} ms until it answers: the files as they were, "
            "the memory made again")


def measure(vial, scratch, is_quick):
    path = os.path.join(scratch, "branches.sock")
    count = 3 if is_quick else DEPTH // 2
    with contextlib.ExitStack() as stack:
        reason = peers.start([vial, "serve", "--socket", path, "--listen", "none", "--armed", "4",
                              "--max", str(3 * MANY)], path, stack)
        if reason:
            return [f"left out: live forks: {reason}"]
        client = Client(path)
        stack.callback(client.close)
        has_numpy = client.has_environment("python-data")
        environment = "python-data" if has_numpy else "python"
        prelude = "import numpy\n" if has_numpy else (
            "import array\nclass numpy: ones = staticmethod(lambda count: array.array('d', [1.0]) * count)\n")
        replay(client, environment, prelude)  # once, so that it is warm
        found = {which.title: heap(client, environment, prelude, which, count) for which in HEAPS}
        lines = [line for _, line in found.values()]
        lines += many(client, environment, prelude)
        lines += bars({title: figures for title, (figures, _) in found.items()}, has_numpy)
    return [*lines, docker(1 if is_quick else 5)]
