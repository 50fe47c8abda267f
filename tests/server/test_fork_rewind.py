"""Forks of sessions whose steps can be taken back: branches have that, too, each for itself."""
import concurrent.futures
import os
import unittest

import test_fork
import test_rewind
from daemon import wait_until
from fork_model import Rewound
from rewind_model import play
from test_rewind import HANG

# A process that nobody is the parent of but whoever looks after the sandbox's processes.
ORPHAN = """
import os, signal, time
if os.fork() == 0:
    if os.fork() == 0:
        os.setsid()
        %s
        os._exit(0)
    os._exit(0)
os.wait()
time.sleep(0.1)
"""
# Memory files of the copies', by inode: what is mapped and what is open.
OWN = """
import concurrent.futures
import os
maps = {line.split()[4] for line in open('/proc/self/maps') if 'vial-rewind' in line}
fds = set()
for fd in os.listdir('/proc/self/fd'):
    try:
        if 'vial-rewind' in os.readlink('/proc/self/fd/' + fd):
            fds.add(str(os.stat('/proc/self/fd/' + fd).st_ino))
    except OSError:
        pass
[len(maps), sorted(maps | fds)]
"""


class Case(test_fork.Case, test_rewind.Case):
    def checkpoints(self, session):
        return self.daemon.ask("GET", "/v1/sessions/%s/checkpoints" % session)[1]["checkpoints"]


class Branches(Case):
    def test_a_bad_step_is_taken_back_in_each(self):
        session = self.start()
        self.step(session, "import os; x = [1]; open('f', 'w').write('one')")
        family = [session] + self.fork(session, 3)
        for number, one in enumerate(family):
            self.step(one, "x.append(%d); open('f', 'a').write('%d')" % (number, number))
            self.assert_taken_back(self.step(one, "x.clear(); os.unlink('f'); os._exit(3)"), exit_code=3)
        for number, one in enumerate(family):
            self.assertEqual(self.value(one, "[x, open('f').read()]"), [[1, number], "one%d" % number])

    def test_each_way_to_end_badly(self):
        session = self.start(limits={"memory": "200m"})
        self.step(session, "import os; x = 1")
        branch = self.fork(session)[0]
        for code, more, outcome in (
                ("os.abort()", {}, "signaled"), ("exit(4)", {}, "exited"), (HANG, {"timeout": 0.5}, "timed_out"),
                ("import mmap\nm = mmap.mmap(-1, 1 << 30)\nwhile True: m.write(b'x' * (1 << 20))", {},
                 "out_of_memory")):
            result = self.step(branch, "x = 2; open('new', 'w').close()\n" + code, **more)
            self.assert_taken_back(result, outcome=outcome)
            self.assertEqual(self.value(branch, "[x, os.listdir('.')]"), [1, []])

    def test_a_first_step_that_ends_at_once(self):
        session = self.start()
        self.step(session, "import os; heap = [bytes(1000) for _ in range(20000)]")
        for _ in range(8):
            branch = self.fork(session)[0]
            for one in (branch, session):
                self.assert_taken_back(self.step(one, "os._exit(3)"), exit_code=3)
            self.daemon.ask("DELETE", "/v1/sessions/" + branch)

    def test_a_program_that_does_not_want_to_hear_of_its_children(self):
        session = self.start()
        self.step(session, "import os, signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
        for one in [session] + self.fork(session):
            self.assert_taken_back(self.step(one, "os._exit(3)"), exit_code=3)
            self.assertEqual(self.value(one, "signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN"), True)

    def test_what_could_be_gone_back_to_ends_with_the_fork(self):
        session = self.open(rewind={"undo": 4})
        self.step(session, "x = 1")
        self.checkpoint(session, "a")
        self.step(session, "x = 2")
        for one in [session] + self.fork(session, 2):
            self.assertEqual(self.checkpoints(one), [])
            self.assert_refused(self.restore(one, "a"), 404, "gone")
            result = self.undo(one)
            self.assertEqual((result["state"], result["exception"]["message"]),
                             ("kept", "there is no step that could be taken back"))
            self.assertEqual(self.value(one, "x"), 2)

    def test_what_can_be_gone_back_to_is_its_own(self):
        session = self.open(rewind={"undo": 4})
        self.step(session, "x = [0]")
        family = [session] + self.fork(session, 2)
        for number, one in enumerate(family):
            self.step(one, "x.append(%d)" % number)
            self.checkpoint(one, "here")
            self.step(one, "x.append('more')")
        self.assertEqual(self.undo(family[0], 2)["state"], "rolled_back")
        self.assertEqual(self.restore(family[1], "here")[0], 200)
        self.assertEqual([self.value(one, "x") for one in family], [[0], [0, 1], [0, 2, "more"]])
        self.assertEqual(self.undo(family[0], 2)["state"], "kept")  # the fork is as far as it goes

    def test_forks_of_forks(self):
        session = self.start()
        self.step(session, "import os; x = 0")
        chain = [session]
        for _ in range(5):
            self.assert_taken_back(self.step(chain[-1], "x = -1; os._exit(1)"))
            self.step(chain[-1], "x += 1")
            chain += self.fork(chain[-1])
        self.assertEqual([self.value(one, "x") for one in chain], [1, 2, 3, 4, 5, 5])
        for one in chain:
            self.assert_taken_back(self.step(one, "x = -1; os.abort()"), signal=6)

    def test_open_files_and_large_heaps(self):
        session = self.start(limits={"memory": "400m"})
        self.step(session, "import os; f = open('f', 'w+'); f.write('abc'); f.flush(); heap = bytearray(120 << 20)\n"
                  "objects = [str(n) for n in range(200000)]")
        for one in [session] + self.fork(session, 2):
            self.assertEqual(self.value(one, "f.write('d'); f.flush(); [f.tell(), open('f').read()]"), [4, "abcd"])
            self.assert_taken_back(self.step(one, "f.write('lost'); f.flush(); objects.clear(); os._exit(1)"))
            self.assertEqual(self.value(one, "[f.tell(), open('f').read(), len(objects)]"), [4, "abcd", 200000])

    def test_whoever_looks_after_a_branch_holds_nothing_of_it(self):
        """Else memory would be short for what can be gone back to."""
        session = self.start(limits={"memory": "400m"})
        self.step(session, "import os; heap = bytearray(b'x') * (150 << 20); small = [str(n) for n in range(500000)]")
        for one in [session] + self.fork(session, 1):
            # It lets go of it while the branch is already at work.
            self.assertTrue(wait_until(lambda: self.value(
                one, "[int(line.split()[1]) for line in open('/proc/%d/status' % os.getppid())"
                " if line.startswith('RssAnon')][0]") < 16 << 10))
            self.assertEqual(self.step(one, "heap[:] = b'y' * len(heap)")["rewind"], "ready")

    def test_nothing_of_the_copies_is_in_a_branch(self):
        session = self.start()
        self.step(session, "open('f', 'w').write('x' * 100000)")
        self.checkpoint(session, "a")
        before = self.value(session, OWN)[1]
        seen = [set(self.value(one, OWN)[1]) for one in [session] + self.fork(session, 2)]
        self.assertTrue(before)
        for number, own in enumerate(seen):
            self.assertFalse(own & set(before))
            self.assertFalse(any(own & other for other in seen[:number]))

    def test_how_one_that_is_lost_ended(self):
        session = self.start()
        self.step(session, "import os, threading, time")
        for one in [session] + self.fork(session, 1):
            self.step(one, "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()")
            result = self.step(one, "os._exit(7)")
            self.assertEqual(result["state"], "lost")
            self.assertIn(result["exit_code"], (7, None))  # not known before Linux 6.15
            self.assertEqual(self.value(one, "2"), 2)

    def test_other_languages(self):
        for language, begin, change, bad, look in (
                ("ruby", "$x = [1]; File.write('f', 'a')", "$x << %d; system('true')", "File.write('f', 'b'); exit!(3)",
                 "puts $x.inspect, File.read('f')"),
                ("bash", "x=(1); echo -n a >f", "x+=(%d); true", "x=(); echo b >f; exit 3",
                 "(IFS=,; echo \"[${x[*]}]\"); cat f")):
            session = self.open(language, rewind={"undo": 2})
            self.step(session, begin)
            family = [session] + self.fork(session, 2)
            for number, one in enumerate(family):
                self.step(one, change % number)
                self.assert_taken_back(self.step(one, bad), exit_code=3)
                self.assertEqual(self.step(one, look)["stdout"].replace(" ", "").split("\n")[:2],
                                 ["[1,%d]" % number, "a"])
                self.assertEqual(self.undo(one, 2)["state"], "rolled_back", language)
                self.assertEqual(self.undo(one)["state"], "kept")
                self.assertEqual(self.step(one, look)["stdout"].split("\n")[0], "[1]")


class Refusals(Case):
    """They come before anything was done: what could be gone back to still can."""

    def begin(self):
        session = self.open(rewind={"undo": 4})
        self.step(session, "import os, socket, time; x = 1")
        self.checkpoint(session, "a")
        self.step(session, "x = 2")
        return session

    def check(self, session, undo=1):
        self.assertEqual([c["name"] for c in self.checkpoints(session)], ["a"])
        if undo:
            self.assertEqual(self.undo(session, undo)["state"], "rolled_back")
        self.assertEqual(self.restore(session, "a")[0], 200)
        self.assertEqual(self.value(session, "x"), 1)
        self.assert_taken_back(self.step(session, "x = 5; os._exit(1)"))
        for one in [session] + self.fork(session):
            self.assertEqual(self.value(one, "x"), 1)

    def test_what_cannot_be_carried_over(self):
        session = self.begin()
        self.step(session, "s = socket.socket()")
        self.assertIn("socket", self.refuse(session))
        self.check(session, 2)

    def test_a_child(self):
        session = self.begin()
        self.step(session, "child = os.fork() or time.sleep(60)")
        self.assertIn("child processes", self.refuse(session))
        self.step(session, "os.kill(child, 9)")
        self.assertIn("child processes", self.refuse(session))
        self.step(session, "os.wait()")
        self.check(session, 0)  # steps beside a child have no way back

    def test_somebody_in_the_background(self):
        session = self.begin()
        for code in ("time.sleep(60)", "end = time.time() + 60\n        while time.time() < end: pass"):
            self.step(session, ORPHAN % code)
            self.assertIn("child processes", self.refuse(session))
            self.assertEqual(self.restore(session, "a")[0], 200)
        self.check(session, 0)


class Attacks(Case):
    """A program that plays a part in it loses what it has; nobody else does."""

    def attack(self, code, tries=4, **more):
        other = self.open(rewind=True)
        self.step(other, "x = 5")
        session = self.open(rewind={"undo": 4}, **more)
        self.step(session, "import os, signal, time, mmap, ctypes")
        self.step(session, "y = 1")
        self.step(session, code)
        made = []
        for _ in range(tries):
            status, answer, _ = self.post(session, "fork", {"count": 2})
            self.assertIn(status, (201, 409, 500, 503), answer)
            made += [branch["id"] for branch in answer.get("branches", [])]
            self.step(session, "z = 1")
        for one in made:
            self.step(one, "z = 2")
            self.daemon.ask("DELETE", "/v1/sessions/" + one)
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assertEqual(self.value(self.fork(other)[0], "x"), 5)
        return made

    def test_one_that_looks_like_a_copy(self):
        wait = "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n        while True: signal.sigwait(range(1, 65))"
        self.attack(ORPHAN % wait)

    def test_a_dead_supervisor(self):
        self.attack("os.kill(os.getppid(), 9)")

    def test_a_supervisor_or_copies_that_are_gone_or_stopped(self):
        copies = ("for p in os.listdir('/proc'):\n"
                  " if p.isdigit() and int(p) not in (1, os.getpid(), os.getppid()): os.kill(int(p), %d)")
        codes = "os.kill(os.getppid(), 19)", copies % 9, copies % 19
        with concurrent.futures.ThreadPoolExecutor(len(codes)) as pool:  # each is given up after 20 s
            self.assertEqual(len(list(pool.map(self.attack, codes))), len(codes))

    def test_the_table_of_copies(self):
        """All of it forged: pids of nobody, of the supervisor, of pid 1, of all."""
        for value in (0, 1, 2, 3, -1):
            self.attack("with open('/proc/self/maps') as f:\n"
                        " at = [l for l in f if 'vial-rewind' in l][0].split()[0].split('-')\n"
                        "start, end = (int(n, 16) for n in at)\n"
                        "(ctypes.c_int * ((end - start) // 4)).from_address(start)[:] ="
                        " [%d] * ((end - start) // 4)" % value, tries=2)

    def test_memory_of_that_name(self):
        """Of the program's own, to be executed, without end."""
        code = ("held = []\nfor _ in range(%d):\n fd = os.memfd_create('vial-rewind'); os.ftruncate(fd, 4096)\n"
                " held.append(mmap.mmap(fd, 4096, prot=%s))")
        for count, prot in ((1, "mmap.PROT_READ | mmap.PROT_WRITE"), (20, "mmap.PROT_READ | mmap.PROT_WRITE"),
                            (1, "mmap.PROT_READ | mmap.PROT_EXEC")):
            self.attack(code % (count, prot), tries=2)

    def test_many_processes(self):
        self.attack("children = []\nfor _ in range(50):\n p = os.fork()\n if not p: time.sleep(30)\n children.append(p)",
                    limits={"processes": 64})

    def test_no_room_for_another_process(self):
        self.attack("pass", limits={"processes": 4})

    def test_checkpoints_without_end(self):
        session = self.open(rewind={"undo": 32}, limits={"memory": "100m"})
        for number in range(16):
            self.step(session, "x%d = bytearray(1 << 20)" % number)
            self.checkpoint(session, "c%d" % number)
        self.assertEqual([self.value(one, "len(x15)") for one in [session] + self.fork(session, 2)], [1 << 20] * 3)
        self.assertEqual(self.checkpoints(session), [])


class Model(Case):
    """Random steps, bad ends, undos, checkpoints, restores, forks and ends: FORK_SEQUENCES of them."""

    def test_random_families(self):
        play(self, Rewound, "FORK", count=8, seed=11, steps=(6, 24))


class Leaks(Case):
    """FORK_ROLLBACKS forks, each followed by steps that are taken back: nothing is left of any."""

    def test_nothing_is_left_of_many(self):
        def once():
            session = self.start()
            self.step(session, "import os; x = 1; open('f', 'w').write('f')")
            self.checkpoint(session, "a")
            for one in [session] + self.fork(session, 2):
                self.assertEqual(self.step(one, "x = 2; os.unlink('f'); os._exit(1)")["state"], "rolled_back")
                self.assertEqual(self.value(one, "[x, open('f').read()]"), [1, "f"])
                self.daemon.ask("DELETE", "/v1/sessions/" + one)

        for _ in range(10):
            once()
        before = self.at_rest()
        for number in range(int(os.environ.get("FORK_ROLLBACKS", 30))):
            once()
            if number % 500 == 499:
                print("# %d forks" % (number + 1), flush=True)
        self.wait_at_rest(before)


if __name__ == "__main__":
    unittest.main()
