"""Sessions that survive their own crashes: steps taken back, with their files."""
import random
import time
import unittest

import sessions

HANG = "sum(range(10 ** 12))"  # in C: no interrupt is looked at


class Case(sessions.Case):
    def start(self, **more):
        return self.open(rewind=True, **more)

    def undo(self, session):
        return self.post(session, "undo")[1]["result"]

    def assert_taken_back(self, result, **members):
        self.assertEqual({name: result[name] for name in ("state", "files", "value", *members)},
                         {"state": "rolled_back", "files": "rolled_back", "value": None, **members})


class Ends(Case):
    """Each way a step can end badly leaves the session as it was."""

    def check(self, code, more=None, **members):
        session = self.start(limits={"memory": "200m", "processes": 64})
        self.value(session, "x = [1]; open('f', 'w').write('one'); len(x)")
        result = self.step(session, "x.append(2); open('f', 'a').write('two')\n"
                           "import os; os.mkdir('d'); open('d/new', 'w').close()\n" + code, **more or {})
        self.assert_taken_back(result, **members)
        self.assertEqual(self.value(session, "import os; [x, open('f').read(), os.listdir('.'),"
                                    " len([p for p in os.listdir('/proc') if p.isdigit()"
                                    " and open('/proc/%s/stat' % p).read().split()[2] != 'Z'])]"),
                         [[1], "one", ["f"], 3])  # the supervisor, the parked one, ourselves

    def test_exit(self):
        self.check("exit(3)", outcome="exited", exit_code=3, signal=None)

    def test_an_end_without_a_word(self):
        self.check("os._exit(7)", outcome="exited", exit_code=7)

    def test_a_crash(self):
        self.check("os.kill(os.getpid(), 11)", outcome="signaled", signal=11, exit_code=None)

    def test_memory(self):
        self.check("import mmap\n"
                   "m = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)\n"
                   "while True: m.write(b'x' * (1 << 20))",
                   outcome="out_of_memory", oom=True, signal=9)

    def test_a_hang(self):
        self.check("import subprocess; subprocess.Popen(['sleep', '100'])\n" + HANG,
                   {"timeout": 0.5}, outcome="timed_out", limit="timeout")

    def test_processes_that_hide(self):
        self.check("for _ in range(5):\n"
                   "  if os.fork() == 0:\n"
                   "    os.setsid()\n"
                   "    while True: os.fork() or os._exit(0)\n" + HANG,
                   {"timeout": 0.5}, outcome="timed_out")


class Goes(Case):
    """What is not a bad end is kept."""

    def test_good_steps_and_exceptions(self):
        session = self.start()
        self.value(session, "import random; random.seed(7); import os; pids = set()\n1")
        rng = random.Random(7)
        for number in range(20):
            self.assertEqual(self.value(session, "random.random()"), rng.random())
        result = self.step(session, "y = 5; 1 / 0")
        self.assertEqual((result["state"], result["rewind"], result["files"]), ("kept", "ready", None))
        self.assertEqual(self.value(session, "y"), 5)

    def test_an_interrupt(self):
        session = self.start()
        result = self.step(session, "z = 1\nwhile True: pass", timeout=0.5)
        self.assertEqual((result["outcome"], result["state"]), ("timed_out", "kept"))
        self.assertEqual(self.value(session, "z"), 1)

    def test_what_cannot_be_forked(self):
        session = self.start()
        self.step(session, "import threading; e = threading.Event()\n"
                           "t = threading.Thread(target=e.wait); t.start()")
        result = self.step(session, "a = 1")
        self.assertEqual((result["state"], result["rewind"]), ("kept", "threads are running"))
        self.assertEqual(self.step(session, "e.set(); t.join()")["rewind"], "threads are running")
        self.assertEqual(self.step(session, "import subprocess\np = subprocess.Popen(['sleep', '60'])")
                         ["rewind"], "ready")
        self.assertEqual(self.step(session, "p.kill(); p.wait()")["rewind"], "child processes are running")
        self.assertEqual(self.step(session, "a")["rewind"], "ready")
        self.step(session, "t = threading.Thread(target=threading.Event().wait); t.start()")
        result = self.step(session, "import os; os._exit(4)")
        self.assertEqual((result["state"], result["exit_code"], result["rewind"]), ("lost", 4, None))
        self.assertTrue(self.step(session, "1")["fresh"])

    def test_a_death_between_steps_is_a_loss(self):
        session = self.start()
        self.step(session, "import os, signal\nsignal.signal(signal.SIGALRM, lambda *_: os._exit(9))\n"
                           "signal.setitimer(signal.ITIMER_REAL, 0.05)\nkept = 1")
        time.sleep(0.5)
        self.assertTrue(self.step(session, "1")["fresh"])

    def test_large_files_are_kept(self):
        session = self.start(limits={"workspace": "200m"})
        self.step(session, "open('big', 'wb').write(bytes(70 << 20))")
        result = self.step(session, "open('more', 'w').close(); exit(1)")
        self.assertEqual((result["state"], result["files"]), ("rolled_back", "kept"))
        self.assertEqual(self.value(session, "import os; sorted(os.listdir('.'))"), ["big", "more"])

    def test_callbacks_and_output(self):
        session = self.start()
        result = self.step(session, "print('before'); exit(2)")
        self.assertEqual((result["stdout"], result["state"]), ("before\n", "rolled_back"))
        self.assertEqual(self.step(session, "print('after')")["stdout"], "after\n")


class Undo(Case):
    def test_once_and_no_further(self):
        session = self.start()
        self.value(session, "x = 1; open('f', 'w').write('1')")
        self.step(session, "x = 2; open('f', 'w').write('2'); import os; os.chmod('f', 0o400)")
        result = self.undo(session)
        self.assert_taken_back(result, outcome="exited", exit_code=0)
        self.assertEqual(self.value(session, "import os; [x, open('f').read(), os.stat('f').st_mode & 0o777]"),
                         [1, "1", 0o644])
        self.undo(session)
        again = self.undo(session)
        self.assertEqual((again["state"], again["exception"]["message"]),
                         ("kept", "there is no step that could be taken back"))
        self.assertEqual(self.value(session, "x"), 1)

    def test_it_has_to_be_asked_for(self):
        self.assert_refused(self.post(self.open(), "undo"), 409, "invalid")

    def test_open_files_are_where_they_were(self):
        session = self.start()
        self.step(session, "f = open('log', 'w+'); f.write('abc'); f.flush()")
        self.step(session, "f.write('def'); f.flush(); f.seek(0)")
        self.undo(session)
        self.assertEqual(self.value(session, "f.write('x'); f.flush(); open('log').read()"), "abcx")


class Model(Case):
    """Random steps, bad ends and undos beside a model that replays what counts."""

    def test_random_sequences(self):
        rng = random.Random(20)
        for _ in range(4):
            session = self.start()
            self.step(session, "log = []")
            self.step(session, "pass")
            log, files, before = [], {}, ([], {})
            for number in range(12):
                kind = rng.choice(["good", "good", "file", "exit", "crash", "undo", "delete"])
                if kind == "undo":
                    self.undo(session)
                    if before:
                        (log, files), before = before, None
                    continue
                name = rng.choice("abc")
                code = "log.append(%d)\n" % number
                if kind == "file":
                    code += "open(%r, 'a').write('%d')\n" % (name, number)
                if kind == "delete":
                    code += "import os; os.path.exists(%r) and os.unlink(%r)\n" % (name, name)
                if kind in ("exit", "crash"):
                    code += "open(%r, 'w').write('bad'); import os\n" % name
                    code += "os._exit(1)" if kind == "exit" else "os.abort()"
                    self.assertEqual(self.step(session, code)["state"], "rolled_back")
                    before = None
                    continue
                before = (list(log), dict(files))
                self.assertEqual(self.step(session, code)["state"], "kept")
                log.append(number)
                if kind == "file":
                    files[name] = files.get(name, "") + str(number)
                if kind == "delete":
                    files.pop(name, None)
            found = self.value(session, "import os; [log, {n: open(n).read() for n in os.listdir('.')}]")
            self.assertEqual(found, [log, files])


if __name__ == "__main__":
    unittest.main()
