"""chaos - a daemon whose parts can be found, clients that know what to expect, and a look around.

The tests are a child subreaper: whatever a daemon that was killed leaves behind becomes a child of
theirs, whichever parent it had.
"""
import collections
import http.client
import os
import random
import re
import signal
import threading
import time

import daemon
import leftovers
from daemon import run_of, wait_until

CLIENTS = 6
AHEAD = 4  # slots of each environment that are nobody's yet (keeper.h)
# Control groups that wait for the next sandbox, with what is open of each: that many at most.
SLACK = {"keeper's descriptors": 64 * 20}
QUIET_S = 60

kills = runs = forks = 0   # how many of each; set by start()
moment = random.Random()   # for everything that is random


def start(seed, is_soak, few):
    global kills, runs, forks
    moment.seed(seed)
    kills, runs, forks = (200, 20000, 10000) if is_soak else (few, 100 * few, 10 * few)
    leftovers.become_subreaper()


# ---- processes -------------------------------------------------------------------------------

Process = collections.namedtuple("Process", "pid parent name depth inner state is_traced")


def process(pid):
    """What there is to know; `depth` counts pid namespaces, `inner` is its pid in the last."""
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
            rows = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return None
    pids = rows.get("NSpid", "0").split()
    return Process(pid, int(rows["PPid"]), rows["Name"], len(pids), int(pids[-1]),
                   rows["State"][0], rows["TracerPid"] != "0")


def children(pid):
    found = []
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
            found = [process(int(word)) for word in file.read().split()]
    except OSError:
        pass
    return [child for child in found if child and child.state != "Z"]


NEST, SANDBOX = 2, 3  # depths

ROLES = {
    "server": lambda p: p.name == "vial-server",
    "nest": lambda p: p.depth == NEST and p.inner == 1,
    "stem": lambda p: p.name == "vial-stem" and p.depth == NEST,
    "net maker": lambda p: p.name == "vial-net",
    "zygote": lambda p: p.depth == NEST and p.name.startswith(("python", "ruby")),
    "pid 1": lambda p: p.depth == SANDBOX and p.inner == 1,
    "guest": lambda p: p.depth == SANDBOX and p.inner == 2,
    "grafter": lambda p: p.name == "vial-grafter",
    "traced": lambda p: p.is_traced,  # by a grafter: who is forked, and who is made of it
    "branch": lambda p: p.depth > SANDBOX and p.inner != 1,
    "pid 1 of a branch": lambda p: p.depth > SANDBOX and p.inner == 1,
}


class Daemon(daemon.Daemon):
    """One that tells its parts."""

    def close(self):
        if os.path.isdir(self.dir):  # once
            super().close()

    def find(self, role):
        if role == "keeper":
            return [process(self.process.pid)]
        return [child for child in children(self.process.pid) if ROLES[role](child)]

    def pools(self):
        rows = self.ask("GET", "/v1/environments")[1]["environments"]
        return {row["name"]: row["pool"] for row in rows}

    def is_quiet(self):
        """Nothing runs, what is to be armed is, and so are the slots that are made ahead."""
        pools = self.pools().values()
        busy = sum(pool["arming"] + pool["running"] + pool["waiting"] for pool in pools)
        armed = sum(pool["armed"] for pool in pools)
        slots = armed + AHEAD * len(self.find("stem"))
        return not busy and armed == len(self.find("guest")) and slots == len(self.find("pid 1"))

    def settle(self):
        """Whether it comes to rest."""
        def stays():
            if not self.is_quiet():
                return False
            time.sleep(0.2)
            return self.is_quiet()
        return wait_until(stays, QUIET_S)

    def holdings(self):
        """What it has, at rest: counts that must not grow."""
        server = self.server_pid()
        mine = [p.pid for p in children(self.process.pid) if not ROLES["net maker"](p)]
        found = {"processes": len(mine), "cgroups": len(own_cgroups(mine)),
                 "mounts": len(mounts(mine)), "namespaces": len(namespaces(mine)),
                 "keeper's descriptors": descriptors(self.process.pid),
                 "server's descriptors": descriptors(server)}
        for role in ("stem", "zygote", "net maker"):
            for number, found_one in enumerate(self.find(role)):
                found["%s %d's descriptors" % (role, number)] = descriptors(found_one.pid)
        return found

    def memory_kb(self, role):
        """Its own: what it shares with its children counts, too, as long as it does."""
        with open("/proc/%d/status" % self.find(role)[0].pid, encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


def descriptors(pid):
    """Without network namespaces: of these a keeper has some ahead, now more, now less.  Nor with what a
    net maker reads of them: those files stay open, of 32 networks at most (test_reuse.py)."""
    count = 0
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            count += not re.search("^net:|/net/", os.readlink("/proc/%d/fd/%s" % (pid, name)))
        except OSError:
            pass
    return count


def namespaces(pids):
    found = set()
    for pid in pids:
        for kind in ("user", "pid", "mnt", "ipc", "uts", "net", "cgroup"):
            try:
                found.add(os.readlink("/proc/%d/ns/%s" % (pid, kind)))
            except OSError:
                pass
    return found


def mounts(pids):
    """(namespace, mount) of all that these see; but the host's are not ours alone."""
    found, host = set(), os.readlink("/proc/self/ns/mnt")
    for pid in pids:
        try:
            space = os.readlink("/proc/%d/ns/mnt" % pid)
            if space == host:
                continue
            with open("/proc/%d/mountinfo" % pid, encoding="utf-8", errors="replace") as file:
                found.update((space, line.split()[0]) for line in file)
        except OSError:
            pass
    return found


def own_cgroups(pids):
    found = set()
    for pid in pids:
        try:
            with open("/proc/%d/cgroup" % pid, encoding="utf-8", errors="replace") as file:
                found.update(line.rstrip() for line in file if "/vial" in line)
        except OSError:
            pass
    return found


def orphans(but):
    """Children of ours that are not `but`: what a daemon left.  The dead ones are buried."""
    with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as file:
        found = [process(int(word)) for word in file.read().split() if int(word) != but]
    for one in filter(None, found):
        if one.state == "Z":
            os.waitpid(one.pid, os.WNOHANG)
    return [one for one in found if one and one.state != "Z"]


def wait_no_orphans(seconds, but):
    """Who is still there after that time."""
    wait_until(lambda: not orphans(but), seconds)
    return orphans(but)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


# ---- clients ---------------------------------------------------------------------------------

def job(rng):
    """A run, and what its result must say."""
    token = "%016x" % rng.getrandbits(64)
    pause = "import time; time.sleep(%.3f); " % rng.uniform(0, 0.03) if rng.random() < 0.3 else ""
    kind = rng.randrange(5)
    if kind == 0:
        return run_of("%sprint(open('f').read() + input())" % pause, stdin=token[8:] + "\n",
                      files=[{"path": "f", "content": token[:8]}]), (token + "\n", "", 0)
    if kind == 1:
        status = rng.randrange(120)
        return run_of("%simport sys; sys.stderr.write('%s'); sys.exit(%d)" % (pause, token, status)), \
            ("", token, status)
    if kind == 2:
        return run_of("echo $1; echo %s >&2" % token, "sh", args=[token]), (token + "\n",) * 2 + (0,)
    if kind == 3:
        return run_of("%simport os; print(os.environ['T'])" % pause, env={"T": token}), \
            (token + "\n", "", 0)
    return run_of("%sprint('%s')" % (pause, token)), (token + "\n", "", 0)


class Workers:
    """Threads that do something again and again while one is `with` them."""

    def __init__(self, tasks):
        self.stopped = threading.Event()
        self.threads = [threading.Thread(target=self.repeat, args=(task,)) for task in tasks]

    def repeat(self, task):
        while not self.stopped.is_set():
            task()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


class Load(Workers):
    """Clients that ask all the time, and compare."""

    def __init__(self, path, clients=CLIENTS):
        numbers = [random.Random(moment.random()) for _ in range(clients)]
        super().__init__([lambda rng=rng: self.work(rng) for rng in numbers])
        self.path = path
        self.right = 0
        self.failed = []  # (when it was begun, why)
        self.wrong = []
        self.lock = threading.Lock()

    def work(self, rng):
        began = time.monotonic()
        request, expected = job(rng)
        try:
            status, answer = self.ask(request)
        except (OSError, ValueError, http.client.HTTPException) as why:
            self.note(self.failed, (began, "%s: %s" % (type(why).__name__, why)))
            time.sleep(0.01)
            return
        if status != 200:
            self.note(self.failed, (began, answer["error"]["message"]))
            return
        result = answer["result"]
        if (result["stdout"], result["stderr"], result["exit_code"]) == expected:
            with self.lock:
                self.right += 1
        else:
            self.note(self.wrong, (expected, result))

    def ask(self, request):
        made = daemon.UnixConnection(self.path)
        try:
            made.request("POST", "/v1/runs", daemon.json.dumps(request),
                         {"Content-Type": "application/json"})
            response = made.getresponse()
            return response.status, daemon.json.loads(response.read())
        finally:
            made.close()

    def note(self, where, what):
        with self.lock:
            where.append(what)

    def wait_for_more(self, count, seconds):
        """Whether so many more runs go well within that time."""
        enough = self.right + count
        return wait_until(lambda: self.right >= enough, seconds)
