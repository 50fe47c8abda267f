"""Live forks while whoever takes part in them is killed; and forks without end."""
import collections
import http.client
import json
import os
import random
import re
import time
import unittest

import chaos
import daemon
import leftovers
from chaos import Daemon, kill, moment, wait_until

CALLERS = 3
ROOM = 200
GONE_S, BACK_S = 5, 60
WARM_UP = 40
PIECE = 500      # forks between two looks
MEMORY_KB = 1024  # what an allocator may keep, however many forks there were

# What a client may be told of a fork, a step or a session that was lost; and all that it may be told.
LOST = re.compile(r"there is no session|the (sandbox|environment|session) was lost"
                  r"|the (session's )?interpreter (has ended|ended|died|was ended)|it could not be forked"
                  r"|whoever was to fork it died|the sandbox died before it was ready"
                  r"|the sandbox was not sealed|init died before it was ready"
                  r"|a branch's sandbox: |the (warm interpreter|stem) of \w+ died|trace: "
                  r"|^idmap: ")  # its pid 1 died before it had its ids


class Caller:
    """Opens a session, tells it a word, and forks it; each branch must know the word, and one tells another."""

    def __init__(self, path, rng, rewinds):
        self.path, self.rng, self.rewinds = path, rng, rewinds
        self.connection = daemon.UnixConnection(path)
        self.right = self.lost = self.forks = 0
        self.failed, self.wrong = [], []
        self.family = []

    def ask(self, method, path, body=None):
        """(status, answer); None, None: it was refused, and that is noted."""
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body),
                                    {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            status, answer = response.status, json.loads(response.read())
        except TimeoutError:
            self.connection.close()
            self.wrong.append((method, path, body, "no answer"))
            return None
        except (OSError, ValueError, http.client.HTTPException):
            self.connection.close()  # the daemon itself is gone
            time.sleep(0.01)
            return None
        if status < 300:
            return answer
        self.failed.append(answer["error"]["message"])
        return None

    def value(self, session, code, expected):
        """One step; whatever it says must be this session's."""
        answer = self.ask("POST", "/v1/sessions/%s/runs" % session, {"code": code})
        if not answer:
            return False
        result = answer["result"]
        found = (result["value"] or {}).get("json")
        if found == expected:
            self.right += 1
            return True
        self.lost += 1
        is_new = result["fresh"] or (result["exception"] or {}).get("type") == "NameError"  # or a fork of one that is
        if found is not None or (result["state"] == "kept" and not is_new):
            self.wrong.append((session, expected, answer))
        return False

    def end_badly(self, session):
        """A step that is taken back; a fresh interpreter, where there was one that is lost, has no file."""
        answer = self.ask("POST", "/v1/sessions/%s/runs" % session,
                          {"code": "import os; os.unlink('f'); word = 'bad'; os.%s"
                           % self.rng.choice(("_exit(1)", "abort()"))})
        if answer and answer["result"]["state"] != "rolled_back":
            self.lost += 1

    def fork(self, session, count):
        answer = self.ask("POST", "/v1/sessions/%s/fork" % session, {"count": count})
        if not answer:
            return []
        made = [branch["id"] for branch in answer["branches"]]
        if len(made) != count:
            self.wrong.append((session, count, answer))
        self.forks += 1
        self.family += made
        return made

    def once(self):
        word = "%016x" % self.rng.getrandbits(64)
        answer = self.ask("POST", "/v1/sessions", {"language": "python", "rewind": self.rewinds})
        if not answer:
            return
        session = answer["id"]
        self.family = [session]
        if self.value(session, "word = %r; heap = bytearray(%d << 20); open('f', 'w').write(word); word" % (
                word, self.rng.choice((0, 1, 8))), word):
            branches = self.fork(session, self.rng.randrange(1, 4))
            told = []  # whose step was not taken back
            for number, one in enumerate([session, *branches] if branches else []):
                if self.rewinds:
                    self.end_badly(one)
                if self.value(one, "word += '%d'; word + open('f').read()" % number,
                              "%s%d%s" % (word, number, word)):
                    told.append((number, one))
            if told and self.rng.random() < 0.3:
                number, parent = self.rng.choice(told)
                for one in self.fork(parent, 1):
                    self.value(one, "word", "%s%d" % (word, number))
        for one in self.family:
            self.close(one)

    def close(self, session):
        kept = len(self.failed)
        self.ask("DELETE", "/v1/sessions/" + session)
        del self.failed[kept:]  # it may have ended before


class Callers(chaos.Workers):
    def __init__(self, path, count=CALLERS, rewinds=False):
        self.callers = [Caller(path, random.Random(moment.random()), rewinds) for _ in range(count)]
        super().__init__([caller.once for caller in self.callers])

    def __exit__(self, *_):
        super().__exit__()
        for caller in self.callers:
            caller.connection.close()

    def sum(self, name):
        return sum(getattr(caller, name) for caller in self.callers)

    def all(self, name):
        return [one for caller in self.callers for one in getattr(caller, name)]

    def wait_for_forks(self, count, seconds=BACK_S):
        """Whether so many more succeed within that time."""
        enough = self.sum("forks") + count
        return wait_until(lambda: self.sum("forks") >= enough, seconds)


def holdings(made):
    """What chaos counts, and what forks could lose besides: leases of uids, network namespaces."""
    links = []
    for name in os.listdir("/proc/%d/fd" % made.process.pid):
        try:
            links.append(os.readlink("/proc/%d/fd/%s" % (made.process.pid, name)))
        except OSError:
            pass
    return {**made.holdings(), "leases": sum(link.endswith("/leases") for link in links),
            "network namespaces": sum(link.startswith("net:") for link in links)}


# Groups that wait for the next sandbox keep their lease (cgroup pool), network namespaces are made ahead.
SLACK = {**chaos.SLACK, "leases": 64, "network namespaces": 16}


class Case(unittest.TestCase):
    def start(self, *options, path=None):
        made = Daemon("--listen", "none", "--armed", "2", "--max", str(ROOM), *options, path=path)
        self.addCleanup(made.close)
        return made

    def assert_only_lost(self, load):
        self.assertEqual(load.all("wrong"), [])
        for why in load.all("failed"):
            self.assertRegex(why, LOST)

    def assert_no_more(self, made, before):
        self.assertEqual(made.ask("GET", "/v1/sessions")[1]["sessions"], [])
        self.assertTrue(made.settle(), "it does not come to rest: %s" % made.pools())
        now = holdings(made)
        more = {kind: (count, now[kind]) for kind, count in before.items()
                if now.get(kind, 0) > count + SLACK.get(kind, 0)}
        self.assertEqual(more, {}, "before, now")


class Parts(Case):
    """What was lost says so; what lives is right; the daemon goes on, with no more than it had."""

    rewinds = False

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "none", "--armed", "2", "--max", str(ROOM))
        with Callers(cls.daemon.path, rewinds=cls.rewinds) as load:
            assert load.wait_for_forks(WARM_UP, 60), load.all("failed")
        assert cls.daemon.settle(), cls.daemon.pools()
        cls.before = holdings(cls.daemon)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def find(self, role):
        return self.daemon.find(role)

    def hunt(self, role):
        """One that lives for some milliseconds is looked for without a pause."""
        deadline = time.monotonic() + BACK_S
        while time.monotonic() < deadline:
            found = self.find(role)
            if found:
                time.sleep(moment.choice((0, 0, 0.001, 0.003)))
                kill(moment.choice(found).pid)
                return
        self.fail("there is no %s" % role)

    def check(self, role):
        with Callers(self.daemon.path, rewinds=self.rewinds) as load:
            for _ in range(chaos.kills):
                time.sleep(moment.uniform(0, 0.05))
                self.hunt(role)
                if moment.random() < 0.5:
                    self.assertTrue(load.wait_for_forks(1), "after a kill: no fork succeeds: %s" %
                                    load.all("failed")[-3:])
        print("# %d kills: %d forks, %d answers right, %d lost, %s" % (
            chaos.kills, load.sum("forks"), load.sum("right"), load.sum("lost"),
            dict(collections.Counter(load.all("failed")))), flush=True)
        self.assert_only_lost(load)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())
        self.assert_no_more(self.daemon, self.before)

    def test_grafter(self):
        self.check("grafter")

    def test_whoever_is_traced(self):
        self.check("traced")

    def test_branch(self):
        self.check("branch")

    def test_pid_1_of_a_branch(self):
        self.check("pid 1 of a branch")

    def test_the_original(self):
        self.check("guest")

    def test_pid_1_of_the_original(self):
        self.check("pid 1")

    def test_stem(self):
        self.check("stem")


def descendants(pid):
    for child in chaos.children(pid):
        yield child
        yield from descendants(child.pid)


class Rewound(Parts):
    """The same with sessions that are several processes each; and those are killed, too."""

    rewinds = True

    def find(self, role):
        """Branches, and whoever is looked after by another, are no children of the keeper's."""
        keeper = self.daemon.process.pid
        if role == "copy":  # or who runs the program
            return [p for p in descendants(keeper) if p.depth == chaos.SANDBOX and p.inner > 2]
        if role in ("branch", "traced"):
            return [p for p in descendants(keeper) if chaos.ROLES[role](p)]
        return super().find(role)

    def test_copy(self):
        self.check("copy")


class Whole(Case):
    """The keeper or the server in the middle of forks: all of them are gone."""

    def check(self, role):
        before = leftovers.Snapshot()
        for _ in range(max(2, chaos.kills // 5)):
            made = self.start()
            with Callers(made.path) as load:
                self.assertTrue(load.wait_for_forks(1), load.all("failed"))
                time.sleep(moment.uniform(0, 0.2))
                wait_until(lambda: made.find("grafter"), 1)
                kill(made.find(role)[0].pid)
                made.process.wait(GONE_S)
                after = self.start(path=made.path)
                self.assertEqual(chaos.wait_no_orphans(GONE_S, after.process.pid), [])
                self.assertTrue(load.wait_for_forks(1), "the next one does not work")
            self.assert_only_lost(load)
            after.close()
            made.close()
        self.assertEqual(leftovers.wait_clean(before, 5)[1], [])

    def test_keeper(self):
        self.check("keeper")

    def test_server(self):
        self.check("server")


class Endless(Case):
    """Fork after fork, and nothing grows."""

    def fork_often(self, made, count, rewinds):
        with Callers(made.path, 2, rewinds) as load:
            self.assertTrue(load.wait_for_forks(count, 60 + count), load.all("failed"))
        self.assertEqual((load.all("failed"), load.all("wrong"), load.sum("lost")), ([], [], 0))
        return load.sum("forks")

    def test_many_forks(self):
        self.check(False)

    def test_many_forks_of_sessions_with_rewind(self):
        self.check(True)

    def check(self, rewinds):
        made = self.start()
        total = self.fork_often(made, WARM_UP, rewinds)
        self.assertTrue(made.settle(), made.pools())
        before = holdings(made)
        memory_before = {role: made.memory_kb(role) for role in ("keeper", "server")}
        while total < chaos.forks + WARM_UP:
            began, done = time.monotonic(), self.fork_often(made, min(PIECE, chaos.forks), rewinds)
            total += done
            self.assert_no_more(made, before)
            memory = {role: made.memory_kb(role) for role in memory_before}
            print("# %d forks, %.0f/s, KiB: %s" % (total, done / (time.monotonic() - began), memory),
                  flush=True)
            for role, kb in memory.items():
                self.assertLessEqual(kb, memory_before[role] + MEMORY_KB, role)
