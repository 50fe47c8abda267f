"""Live sessions while parts of the daemon are killed, and one session that goes on and on."""
import http.client
import json
import random
import re
import time
import unittest

import chaos
import daemon
import leftovers
from chaos import Daemon, kill, moment, wait_until

SESSIONS = 100
WORKERS = 5
GONE_S, BACK_S = 60, 60  # patience, not promises
WARM_UP = 500
MEMORY_KB = 512  # what an allocator may keep, however many steps there were

# What a client may be told of a session or step that was lost; and all that it may be told.
LOST = re.compile(r"there is no session|the (sandbox|environment|session) was lost"
                  r"|the sandbox died before it was ready|init died before it was ready"
                  r"|the (warm interpreter|stem) of \w+ died")


class Caller:
    """Some sessions, each of which holds a word that only it was told."""

    def __init__(self, path, count, rng):
        self.path, self.rng = path, rng
        self.connection = daemon.UnixConnection(path)
        self.words = {}  # by session; None: it has to be told again
        self.count = count
        self.right, self.lost = 0, 0
        self.failed, self.wrong = [], []

    def ask(self, method, path, body=None):
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body),
                                    {"Content-Type": "application/json"})
            response = self.connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as why:
            self.connection.close()
            return None, "%s: %s" % (type(why).__name__, why)

    def refused(self, status, answer):
        if status is not None:  # else the daemon itself is gone
            self.failed.append((time.monotonic(), answer["error"]["message"]))
        time.sleep(0.01)

    def open_one(self):
        status, answer = self.ask("POST", "/v1/sessions", {"language": "python"})
        if status == 201:
            self.words[answer["id"]] = None
        else:
            self.refused(status, answer)

    def step(self):
        """One step of one session; whatever it says must be this session's."""
        if len(self.words) < self.count:
            return self.open_one()
        session = self.rng.choice(list(self.words))
        word = self.words[session]
        fresh_word = "%016x" % self.rng.getrandbits(64)
        code = "word" if word else "word = %r; word" % fresh_word
        status, answer = self.ask("POST", "/v1/sessions/%s/runs" % session, {"code": code})
        if status == 200:
            self.judge(session, word or fresh_word, answer)
        else:
            self.refused(status, answer)
            if status in (None, 404):
                del self.words[session]

    def judge(self, session, word, answer):
        result = answer["result"]
        value = (result["value"] or {}).get("json")
        if answer["session"] != session or value not in (word, None):
            self.wrong.append((session, word, answer))
        elif value == word:
            self.right += 1
            self.words[session] = word
        else:  # a fresh interpreter, or one that was killed meanwhile
            self.lost += 1
            self.words[session] = None
            if result["state"] == "kept" and not result["fresh"]:
                self.wrong.append((session, word, answer))

    def close(self):
        for session in self.words:
            self.ask("DELETE", "/v1/sessions/" + session)
        self.connection.close()


class Callers(chaos.Workers):
    """All of them, at work."""

    def __init__(self, path):
        self.callers = [Caller(path, SESSIONS // WORKERS, random.Random(moment.random()))
                        for _ in range(WORKERS)]
        super().__init__([caller.step for caller in self.callers])

    def __exit__(self, *_):
        super().__exit__()
        for caller in self.callers:
            caller.close()

    def sum(self, name):
        return sum(getattr(caller, name) for caller in self.callers)

    def all(self, name):
        return [one for caller in self.callers for one in getattr(caller, name)]

    def are_open(self):
        return all(len(caller.words) == caller.count for caller in self.callers)

    def wait_for_more(self, count, seconds):
        enough = self.sum("right") + count
        return wait_until(lambda: self.sum("right") >= enough, seconds)


class Parts(unittest.TestCase):
    """What was lost says so, and the rest goes on."""

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon("--listen", "none", "--max", str(SESSIONS + 50))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def check(self, role):
        with Callers(self.daemon.path) as load:
            self.assertTrue(wait_until(load.are_open), load.all("failed"))
            for _ in range(chaos.kills):
                time.sleep(moment.uniform(0, 0.1))
                found = self.daemon.find(role)
                if found:
                    kill(moment.choice(found).pid)
                self.assertTrue(load.wait_for_more(WORKERS, BACK_S), "after a kill: nothing works")
        self.assertEqual(load.all("wrong"), [])
        for _, why in load.all("failed"):
            self.assertRegex(why, LOST)
        print("# %d kills: %d right, %d lost, %d refused" % (
            chaos.kills, load.sum("right"), load.sum("lost"), len(load.all("failed"))), flush=True)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.log())
        self.assertEqual(self.daemon.ask("GET", "/v1/sessions")[1]["sessions"], [])
        self.assertTrue(self.daemon.settle(), "it does not come to rest: %s" % self.daemon.pools())

    def test_zygote(self):
        self.check("zygote")

    def test_stem(self):
        self.check("stem")

    def test_pid_1_of_a_nest(self):
        self.check("nest")

    def test_pid_1_of_a_sandbox(self):
        self.check("pid 1")

    def test_guest(self):
        self.check("guest")


class Whole(unittest.TestCase):
    """The keeper or the server: all sessions are gone, none is another one's."""

    def check(self, role):
        before = leftovers.Snapshot()
        for _ in range(max(2, chaos.kills // 10)):
            made = Daemon("--listen", "none", "--max", str(SESSIONS + 50))
            self.addCleanup(made.close)
            with Callers(made.path) as load:
                self.assertTrue(wait_until(load.are_open), load.all("failed"))
                time.sleep(moment.uniform(0, 0.3))
                kill(made.find(role)[0].pid)
                made.process.wait(GONE_S)
                after = Daemon("--listen", "none", "--max", str(SESSIONS + 50), path=made.path)
                self.addCleanup(after.close)
                self.assertEqual(chaos.wait_no_orphans(GONE_S, after.process.pid), [])
                self.assertTrue(wait_until(load.are_open), "the next one does not work")
                self.assertTrue(load.wait_for_more(WORKERS, BACK_S))
            self.assertEqual(load.all("wrong"), [])
            for _, why in load.all("failed"):
                self.assertRegex(why, LOST)
            after.close()
            made.close()
        self.assertEqual(leftovers.wait_clean(before, GONE_S)[1], [])

    def test_keeper(self):
        self.check("keeper")

    def test_server(self):
        self.check("server")


class OneSession(unittest.TestCase):
    """Step after step, and nothing grows."""

    def test_many_steps(self):
        made = Daemon("--listen", "none")
        self.addCleanup(made.close)
        caller = Caller(made.path, 1, moment)
        caller.open_one()
        session = next(iter(caller.words))
        path = "/v1/sessions/%s/runs" % session

        def steps(count):
            for number in range(count):
                status, answer = caller.ask("POST", path, {
                    "code": "x = %d\nprint(x)\nx" % number if number % 3 else "1 / 0"})
                self.assertEqual((status, answer["result"]["state"]), (200, "kept"))

        def measured():
            memory = {"server": made.memory_kb("server"),
                      "session": made.ask("GET", "/v1/sessions/" + session)[1]["memory"] // 1024}
            return memory, chaos.descriptors(made.server_pid())

        steps(WARM_UP)
        memory_before, descriptors = measured()
        steps(chaos.runs)
        memory, after = measured()
        print("# %d steps, KiB: %s, then %s" % (chaos.runs, memory_before, memory), flush=True)
        self.assertLessEqual(after, descriptors)
        for who, kb in memory.items():
            self.assertLessEqual(kb, memory_before[who] + MEMORY_KB, who)
        caller.close()
