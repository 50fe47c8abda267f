"""Live forks: a session becomes several, each a sandbox of its own."""
import os
import signal
import threading
import time
import unittest

import daemon
import sessions
from daemon import wait_until
from fork_model import Family
from rewind_model import play
from websocket import WebSocket

# What tells one sandbox from another, as it is seen from within.
IDENTITY = """
import os
[os.readlink('/proc/self/ns/' + n) for n in ('pid', 'mnt', 'net', 'ipc', 'user', 'cgroup')]
"""
LIMITS = {"memory": "256m", "workspace": "16m"}
AHEAD = 4  # slots of each environment that are nobody's yet


class Case(sessions.Case):
    options = ("--armed", "2", "--max", "100")

    def fork(self, session, count=1, **more):
        status, answer, _ = self.post(session, "fork", dict(more, count=count))
        self.assertEqual(status, 201, answer)
        self.assertEqual(answer["session"], session)
        self.assertEqual([b["parent"] for b in answer["branches"]], [session] * count)
        return [branch["id"] for branch in answer["branches"]]

    def wait_alone(self, session):
        """Until it sees nobody but itself: what was let in is there for a moment after its answer."""
        code = "import os; [name for name in os.listdir('/proc') if name.isdigit()]"
        self.assertTrue(wait_until(lambda: self.value(session, code) == ["2"]), self.value(session, code))

    def refuse(self, session, status=409, **more):
        found, answer, _ = self.post(session, "fork", more)
        self.assertEqual(found, status, answer)
        return answer["error"]["message"]


class State(Case):
    def test_branches_are_scheduled_as_their_session_is(self):
        session = self.open()
        code = "__import__('os').sched_getscheduler(0)"
        self.assertEqual([self.value(each, code) for each in [session, *self.fork(session, 1)]], [0, 0])

    def test_branches_go_on_where_the_session_was(self):
        session = self.open(limits=LIMITS)
        self.step(session, "x = [1, 2]; f = open('f', 'w+'); f.write('abc'); f.flush()")
        family = [session] + self.fork(session, 3)
        for number, one in enumerate(family):
            self.assertEqual(self.value(one, "x.append(%d); x" % number), [1, 2, number])
            self.assertEqual(self.value(one, "f.write('%d'); f.flush(); open('f').read()" % number),
                             "abc%d" % number)
        for number, one in enumerate(family):
            self.assertEqual(self.value(one, "[x, open('f').read(), f.tell()]"),
                             [[1, 2, number], "abc%d" % number, 4])

    def test_files_are_copied_as_they_are(self):
        session = self.open(limits=LIMITS)
        self.step(session, "import os, time\n"
                  "os.makedirs('d/e'); open('d/e/x', 'w').write('deep'); os.chmod('d/e/x', 0o640)\n"
                  "os.symlink('d/e/x', 'link'); os.symlink('/etc/passwd', 'out'); os.mkfifo('pipe')\n"
                  "open('/tmp/t', 'w').write('tmp'); open('/dev/shm/s', 'w').write('shm')\n"
                  "f = open('holes', 'wb'); f.truncate(12 << 20); f.seek(5000); f.write(b'x'); f.close()\n"
                  "os.utime('d/e/x', (1, 2)); os.chdir('d')")
        branch = self.fork(session)[0]
        self.assertEqual(self.value(branch, "s = os.stat('e/x')\n"
                                    "[os.getcwd(), open('/sandbox/link').read(), oct(s.st_mode), s.st_mtime,"
                                    " s.st_uid, os.readlink('../out'), open('/tmp/t').read(),"
                                    " open('/dev/shm/s').read(), os.stat('../holes').st_blocks,"
                                    " sorted(os.listdir('..'))]"),
                         ["/sandbox/d", "deep", "0o100640", 2.0, 1000, "/etc/passwd", "tmp", "shm", 8,
                          ["d", "holes", "link", "out", "pipe"]])

    def test_what_is_printed_is_the_branch_s_own(self):
        session = self.open()
        branch = self.fork(session)[0]
        self.assertEqual(self.step(branch, "print('here')")["stdout"], "here\n")
        self.assertEqual(self.step(session, "1")["stdout"], "")

    def test_forks_of_forks(self):
        session = self.open()
        self.step(session, "x = 0")
        chain = [session]
        for _ in range(6):
            chain += self.fork(chain[-1])
            self.step(chain[-1], "x += 1")
        self.assertEqual([self.value(one, "x") for one in chain], list(range(7)))

    def test_the_depth_has_a_limit(self):
        session = at = self.open()
        depth = 0
        while True:
            status, answer, _ = self.post(at, "fork", {})
            if status != 201:
                break
            depth += 1
            previous, at = at, answer["branches"][0]["id"]
            self.daemon.ask("DELETE", "/v1/sessions/" + previous)
        self.assertEqual((status, depth), (409, 29), answer)
        self.assertIn("29 deep", answer["error"]["message"])
        self.assertEqual(self.value(at, "1 + 1"), 2)  # nothing was done to it

    def test_an_event_loop_that_rests_is_no_obstacle(self):
        session = self.open()
        self.step(session, "import asyncio\nawait asyncio.sleep(0)")
        branch = self.fork(session)[0]
        for one in (session, branch):
            self.assertEqual(self.step(one, "await asyncio.sleep(0, 7)")["value"]["json"], 7)

    def test_callbacks_and_policies_are_kept(self):
        session = self.open(policy={"block": ["socket"]})
        self.step(session, "1")
        branch = self.fork(session)[0]
        self.assertEqual(self.step(branch, "import socket")["exception"]["type"], "ImportError")

    def test_steps_that_wait_come_after_the_fork(self):
        session = self.open()
        slow = self.later(session, "import time; time.sleep(1); x = 1")
        self.wait_running(session)
        branch = self.fork(session)[0]
        slow()
        self.assertEqual(self.value(branch, "x"), 1)


class Languages(Case):
    def test_ruby(self):
        session = self.open("ruby")
        self.step(session, "x = [1]; f = File.open('f', 'w+'); f.write('ab'); f.flush; rand")
        family = [session] + self.fork(session, 2)
        drawn = set()
        for number, one in enumerate(family):
            self.assertEqual(self.value(one, "x << %d; x" % number), [1, number])
            self.assertEqual(self.value(one, "f.write('%d'); f.flush; File.read('f')" % number),
                             "ab%d" % number)
            drawn.add(self.value(one, "rand"))
            self.assertEqual(self.step(one, "system('echo a'); fork { puts 'b' }; Process.wait; puts `echo c`;"
                                       " Thread.new { sleep 0.01 }.join; system('echo d')")["stdout"],
                             "a\nb\nc\nd\n")
        self.assertEqual(len(drawn), 3)

    def test_bash(self):
        session = self.open("bash")
        self.step(session, "x=1; f() { echo f $x; }; echo a > file; cd /tmp")
        family = [session] + self.fork(session, 2)
        for number, one in enumerate(family):
            self.step(one, "x=%d; echo %d >> /sandbox/file" % (number, number))
        self.assertEqual([self.step(one, "f; pwd; cat /sandbox/file")["stdout"] for one in family],
                         ["f %d\n/tmp\na\n%d\n" % (n, n) for n in range(3)])


class Isolation(Case):
    def test_each_has_everything_of_its_own(self):
        session = self.open()
        family = [session] + self.fork(session, 2)
        seen = [self.step(one, IDENTITY)["value"]["json"] for one in family]
        for kind in zip(*seen):
            self.assertEqual(len(set(kind)), 3, kind)

    def test_no_power_is_left(self):
        session = self.open()
        before = self.step(session, "[l for l in open('/proc/self/status') if l[:3] in"
                           " ('Cap', 'NoN', 'Sec', 'Uid', 'Gid', 'Gro', 'TracerPid', 'Sig')]")["value"]["json"]
        for one in [session] + self.fork(session):
            self.assertEqual(self.value(one, "[l for l in open('/proc/self/status') if l[:3] in"
                                        " ('Cap', 'NoN', 'Sec', 'Uid', 'Gid', 'Gro', 'TracerPid', 'Sig')]"),
                             before)

    def test_none_sees_or_signals_another(self):
        session = self.open()
        branch = self.fork(session)[0]
        for one in (session, branch):
            self.wait_alone(one)
        self.step(session, "import os\nfor p in range(3, 3000):\n"
                  "  try: os.kill(p, 9)\n  except OSError: pass")
        self.assertEqual(self.value(branch, "1"), 1)

    def test_descriptors_are_those_that_were(self):
        session = self.open()
        listing = "import os; sorted(int(f) for f in os.listdir('/proc/self/fd'))"
        before = self.value(session, listing)
        self.assertEqual([self.value(one, listing) for one in [session] + self.fork(session, 2)],
                         [before] * 3)

    def test_none_dies_with_another(self):
        session = self.open()
        self.step(session, "x = 5")
        first, second = self.fork(session, 2)
        third = self.fork(second)[0]
        self.step(first, "import os; os._exit(1)")
        self.assertEqual([self.value(one, "x") for one in (session, second, third)], [5, 5, 5])
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.daemon.ask("DELETE", "/v1/sessions/" + second)
        time.sleep(0.5)
        self.assertEqual(self.value(third, "x"), 5)

    def test_each_has_the_limits(self):
        session = self.open(limits={"memory": "128m", "processes": 8})
        branch = self.fork(session)[0]
        self.assertEqual(self.step(branch, "x = bytearray(300 << 20)")["outcome"], "out_of_memory")
        self.assertEqual(self.value(session, "1"), 1)


class Randomness(Case):
    DRAW = "import random, uuid, os; [random.random(), str(uuid.uuid4()), os.urandom(4).hex()]"

    def test_it_differs(self):
        session = self.open()
        self.step(session, self.DRAW)
        drawn = [self.value(one, self.DRAW) for one in [session] + self.fork(session, 3)]
        self.assertEqual(len({numbers[0] for numbers in drawn}), 4)

    def test_it_does_not_if_that_is_asked_for(self):
        session = self.open()
        self.step(session, self.DRAW)
        drawn = [self.value(one, "random.random()")
                 for one in [session] + self.fork(session, 2, deterministic=True)]
        self.assertEqual(len(set(drawn)), 1)


class Refusals(Case):
    """What cannot be carried over is said before anything is done, and the session goes on."""

    def check(self, code, word, undo="pass", is_forked=True):
        session = self.open()
        self.step(session, "x = 1\n" + code)
        self.assertIn(word, self.refuse(session, count=2))
        self.assertEqual(self.value(session, "x"), 1)
        self.step(session, undo)
        if is_forked:
            self.assertEqual(self.value(self.fork(session)[0], "x"), 1)

    def test_threads(self):
        self.check("import threading; e = threading.Event(); t = threading.Thread(target=e.wait); t.start()",
                   "threads", "e.set(); t.join()")

    def test_children(self):
        self.check("import subprocess; p = subprocess.Popen(['sleep', '60'])", "child processes",
                   "p.kill(); p.wait()")

    def test_nothing_is_done_in_its_name_before_it_is_known_to_be_alone(self):
        # What others have its memory could change the calls.  The first of them would be refused here.
        self.check("import ctypes, subprocess; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)\n"
                   "p = subprocess.Popen(['sleep', '60'])", "child processes", "p.kill(); p.wait()",
                   is_forked=False)

    def test_sockets(self):
        self.check("import socket; s = socket.socketpair()", "socket", "s[0].close(); s[1].close()")

    def test_pipes(self):
        self.check("import os; p = os.pipe()", "pipe", "os.close(p[0]); os.close(p[1])")

    def test_files_without_a_name(self):
        self.check("import os; f = open('gone', 'w'); os.unlink('gone')", "gone", "f.close()")

    def test_shared_memory(self):
        self.check("import mmap; m = mmap.mmap(-1, 4096)", "shared", "m.close()")

    def test_tasks(self):
        self.check("import asyncio; t = asyncio.ensure_future(asyncio.sleep(60))\nawait asyncio.sleep(0)",
                   "eventpoll", "t.cancel()\nawait asyncio.sleep(0)")

    def test_what_is_asked_for(self):
        session = self.open()
        self.assertIn("from 1 to 64", self.refuse(session, 400, count=65))
        self.assertIn("no such member", self.refuse(session, 400, number=2))

    def test_its_own_limits(self):
        """There is no room for a process more; links are files of their own in a copy."""
        session = self.open(limits={"processes": 1})
        self.assertIn("its limits", self.refuse(session))
        self.assertEqual(self.value(session, "1"), 1)
        session = self.open(limits={"workspace": "1m"})
        self.step(session, "import os; open('f', 'w').write('x' * 700000); os.link('f', 'g')")
        self.assertIn("No space left", self.refuse(session))
        self.step(session, "os.unlink('g')")
        self.assertEqual(self.value(self.fork(session)[0], "os.path.getsize('f')"), 700000)

    def test_languages_that_cannot(self):
        session = self.open("javascript")
        self.assertIn("cannot be forked", self.refuse(session))
        self.assertEqual(self.post(session, "fork", {})[1]["error"]["code"], "denied")

    def test_directories_as_deep_as_they_are_copied_and_deeper(self):
        """Whoever copies them has a stack that holds so many, and ends where nothing of ours lies."""
        session = self.open()
        self.step(session, "import os\nos.chdir('/tmp')\nfor _ in range(100): os.mkdir('d'); os.chdir('d'); "
                           "os.symlink('A' * 4090, 'l')")
        branch = self.fork(session)[0]
        self.assertEqual(self.value(branch, "len(os.getcwd()), len(os.readlink('l'))"), [204, 4090])
        self.step(session, "os.mkdir('d')")
        self.assertIn("more than 100 deep", self.refuse(session))
        self.assertEqual(self.value(session, "1"), 1)

    def test_too_many_for_the_pool(self):
        session = self.open()
        branches = self.fork(session, 40)
        self.assertIn("no room", self.refuse(session, 503, count=64))
        self.assertEqual(self.value(branches[-1], "1"), 1)


class Memory(Case):
    """Many objects lie in huge pages, which are quick to copy; few do not."""

    ADVISED = ("import re\n"
               "advised = lambda: sum(int(re.search(r'Rss: +(\\d+)', area)[1]) for area in\n"
               "    re.split(r'\\n(?=[0-9a-f]+-[0-9a-f]+ )', open('/proc/self/smaps').read())\n"
               "    if re.search(r'VmFlags:.* hg\\b', area)) >> 10\n")

    @unittest.skipUnless(os.path.exists("/sys/kernel/mm/transparent_hugepage"), "a kernel without huge pages")
    def test_of_objects(self):
        session = self.open(limits={"memory": "512m"})
        self.step(session, self.ADVISED)
        before = self.value(session, "advised()")
        self.step(session, "few = [float(i) for i in range(100000)]")
        self.assertEqual(self.value(session, "advised()"), before)
        self.step(session, "x = [float(i) for i in range(3000000)]")
        self.assertGreater(self.value(session, "advised()"), before + 40)
        family = [session] + self.fork(session)
        for one in family:
            self.step(one, "del x[::2]; y = [str(v) for v in x[:1000000]]")
            self.assertEqual(self.value(one, "[sum(x), sum(map(len, y)), sum(few)]"),
                             [2250000000000.0, sum(len(str(float(i))) for i in range(1, 2000000, 2)), 4999950000.0])
            self.step(one, "del x, y; import gc; gc.collect()")
            self.assertLess(self.value(one, "advised()"), before + 20)
            self.assertEqual(self.value(one, "x = [float(i) for i in range(3000000)]; sum(x)"), 4499998500000.0)


class Libraries(Case):
    """Threads that a library has started end with the fork, and are there again when it needs them."""

    PRODUCT = "import hashlib; p = a @ b; [hashlib.sha256(p.tobytes()).hexdigest(), float(p[7, 9])]"

    def setUp(self):
        super().setUp()
        session = self.open()
        if self.step(session, "import numpy")["exception"]:
            self.skipTest("this Python has no numpy")

    def test_numpy(self):
        session = self.open(limits={"memory": "1g", "processes": 64})
        # As many threads as it wants, whatever the host has: each of them is a process less to it.
        self.step(session, "import os; os.environ['OPENBLAS_NUM_THREADS'] = '4'\n"
                  "import numpy as np; r = np.random.default_rng(1)\n"
                  "a, b = r.random((400, 400)), r.random((400, 400))")
        before = self.value(session, self.PRODUCT)
        family = [session] + self.fork(session, 2)
        for one in family + [self.fork(family[1])[0]]:
            self.assertEqual(self.value(one, self.PRODUCT), before)
            self.assertEqual(self.value(one, "float(np.linalg.norm(np.linalg.inv(a) @ a - np.eye(400))) < 1e-6"), True)


class Beside(Case):
    """What others ask of a session while it is forked is done after it, or refused."""

    def fork_once(self, session):
        status, answer, _ = self.post(session, "fork", {"count": 1})
        for branch in answer.get("branches", []):
            self.daemon.ask("DELETE", "/v1/sessions/" + branch["id"])
        return status

    def busy(self, meanwhile):
        """Call that while forks are under way which take their time."""
        session = self.open(limits={"memory": "512m", "workspace": "128m"})
        self.step(session, "open('large', 'wb').write(bytes(100 << 20)) and None")
        forks = threading.Thread(target=lambda: [self.fork_once(session) for _ in range(4)])
        forks.start()
        try:
            while forks.is_alive():
                meanwhile(session)
        finally:
            forks.join()
        self.assertEqual(self.value(session, "1"), 1)
        return session

    def test_files(self):
        kept = []

        def put(session):
            name = "f%d" % len(kept)
            status, answer, _ = self.daemon.ask("PUT", "/v1/sessions/%s/files/%s" % (session, name),
                                                body=b"x" * 100000)
            self.assertIn(status, (200, 201, 204, 409, 429, 503), answer)
            if status < 300:
                kept.append(name)

        session = self.busy(put)
        there = self.value(session, "import os; os.listdir()")
        self.assertEqual(sorted(set(kept) - set(there)), [])

    def test_terminals(self):
        def attach(session):
            with self.daemon.raw() as sock:
                made = WebSocket(sock, "/v1/sessions/%s/terminal" % session)
                if made.status != 101:
                    self.assertIn(made.status, (409, 429, 503), made.head)

        session = self.busy(attach)
        # Nobody lives on in the sandboxes that were.
        self.wait_alone(session)

    def test_the_end_of_the_session(self):
        for wait in range(6):
            session = self.open(limits={"memory": "512m", "workspace": "128m"})
            self.step(session, "open('large', 'wb').write(bytes(50 << 20)) and None")
            fork = threading.Thread(target=self.fork_once, args=(session,))
            fork.start()
            time.sleep(wait * 0.02)
            self.daemon.ask("DELETE", "/v1/sessions/" + session)
            fork.join()
        self.assertEqual(self.daemon.ask("GET", "/v1/sessions")[1]["sessions"], [])

    def test_branches_are_seen_when_they_are_there(self):
        session = self.open(limits={"memory": "512m", "workspace": "128m"})
        self.step(session, "x = 7; open('large', 'wb').write(bytes(100 << 20)) and None")
        fork = threading.Thread(target=self.post, args=(session, "fork", {"count": 3}))
        fork.start()
        seen = set()
        while fork.is_alive() or len(seen) < 3:
            for one in self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]:
                if one["id"] not in seen | {session}:
                    self.assertEqual(self.value(one["id"], "x"), 7)
                    self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/" + one["id"])[0], 200)
                    seen.add(one["id"])
        fork.join()


class Kept(Case):
    """Who has forked one waits for the next; and slots wait for sandboxes."""

    def named(self, name):
        keeper = self.daemon.process.pid
        with open("/proc/%d/task/%d/children" % (keeper, keeper), encoding="ascii") as file:
            pids = [int(word) for word in file.read().split()]
        found = []
        for pid in pids:
            try:
                with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
                    rows = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
            except OSError:
                continue
            if rows["Name"] == name and rows["State"][0] != "Z":
                found.append((pid, len(rows["NSpid"].split())))
        return found

    @daemon.inside
    def test_one_that_died_meanwhile_is_missed_by_nobody(self):
        session = self.open()
        self.step(session, "x = 1")
        for _ in range(3):
            branch = self.fork(session)[0]
            self.assertEqual(self.value(branch, "x"), 1)
            self.assertTrue(wait_until(lambda: self.named("vial-grafter")))
            for pid, _ in self.named("vial-grafter"):
                os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda: not self.named("vial-grafter")))

    @daemon.inside
    def test_slots_that_died_are_made_again(self):
        def space_of(pid):
            try:
                return os.readlink("/proc/%d/ns/pid" % pid)
            except FileNotFoundError:  # it has just gone
                return None

        def slots():
            """Those that nobody lives in."""
            spaces = [space_of(pid) for pid, _ in self.named("python3")]
            return {pid for pid, depth in self.named("vial-init")
                    if depth == 3 and space_of(pid) not in [None, *spaces]}
        session = self.open()
        self.assertEqual(self.value(session, "1"), 1)
        self.assertTrue(wait_until(lambda: len(slots()) == AHEAD))
        time.sleep(0.3)  # until all that was ordered is there
        before = slots()
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: len(slots() - before) == AHEAD), slots())


class Model(Case):
    """Random steps, losses, forks and ends: FORK_SEQUENCES of them."""

    def test_random_families(self):
        play(self, Family, "FORK", count=12, seed=7, steps=(4, 20))


class Leaks(Case):
    def test_nothing_is_left_of_many(self):
        def some():
            for _ in range(5):
                session = self.open()
                for branch in self.fork(session, 3):
                    self.daemon.ask("DELETE", "/v1/sessions/" + branch)
                self.daemon.ask("DELETE", "/v1/sessions/" + session)

        for _ in range(2):
            some()
        before = self.at_rest()
        for _ in range(2):
            some()
        self.wait_at_rest(before)


if __name__ == "__main__":
    unittest.main()
