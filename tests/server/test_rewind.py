"""Sessions that survive their own crashes: steps taken back, with their files."""
import os
import random
import unittest

import sessions
from daemon import wait_until
from rewind_model import Sequence, play
from sessions import Stream

PROCESSES = "import os; sum(p.isdigit() for p in os.listdir('/proc'))"
HANG = "sum(range(10 ** 12))"  # in C: no interrupt is looked at


class Case(sessions.Case):
    def start(self, **more):
        return self.open(rewind=True, **more)

    def undo(self, session, steps=1):
        return self.post(session, "undo?steps=%d" % steps)[1]["result"]

    def checkpoint(self, session, name):
        status, answer, _ = self.post(session, "checkpoints", {"name": name})
        self.assertEqual(status, 201, answer)
        return answer["checkpoints"][0]

    def restore(self, session, name):
        return self.post(session, "checkpoints/%s/restore" % name)

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
        self.assertEqual(self.value(session, "import os; [x, open('f').read(), os.listdir('.')]"),
                         [[1], "one", ["f"]])
        # The supervisor, ourselves, two copies; and for a moment others that end.
        self.assertTrue(wait_until(lambda: self.value(session, PROCESSES) == 4), self.value(session, PROCESSES))

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
        result = self.step(session, "z = 1\nwhile True: pass", timeout=2)
        self.assertEqual((result["outcome"], result["state"]), ("timed_out", "kept"))
        self.assertEqual(self.value(session, "z"), 1)

    def test_what_cannot_be_forked(self):
        session = self.start()
        self.step(session, "import threading; e = threading.Event()\n"
                           "t = threading.Thread(target=e.wait); t.start()")
        result = self.step(session, "a = 1")
        self.assertEqual((result["state"], result["rewind"]), ("kept", "unavailable: threads are running"))
        self.assertEqual(self.step(session, "e.set(); t.join()")["rewind"], "unavailable: threads are running")
        self.assertEqual(self.step(session, "import subprocess\np = subprocess.Popen(['sleep', '60'])")
                         ["rewind"], "ready")
        self.assertEqual(self.step(session, "p.kill(); p.wait()")["rewind"], "unavailable: child processes are running")
        self.assertEqual(self.step(session, "a")["rewind"], "ready")
        self.step(session, "t = threading.Thread(target=threading.Event().wait); t.start()")
        result = self.step(session, "import os; os._exit(4)")
        self.assertEqual((result["state"], result["exit_code"], result["rewind"]), ("lost", 4, None))
        self.assertTrue(self.step(session, "1")["fresh"])

    def test_a_death_between_steps_is_a_loss(self):
        session = self.start()
        self.step(session, "import os, signal\n"
                           "signal.signal(signal.SIGALRM, lambda *_: os.path.exists('go') and os._exit(9))\n"
                           "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\nkept = 1")
        self.put_file(session, "go")
        self.assertTrue(wait_until(lambda: not self.look(session)[1]["memory"]))
        self.assertTrue(self.step(session, "1")["fresh"])

    def test_large_files_are_kept(self):
        session = self.start(limits={"workspace": "200m"})
        self.step(session, "open('big', 'wb').write(bytes(140 << 20))")
        result = self.step(session, "open('more', 'w').close(); exit(1)")
        self.assertEqual((result["state"], result["files"]), ("rolled_back", "kept"))
        self.assertEqual(self.value(session, "import os; sorted(os.listdir('.'))"), ["big", "more"])

    def test_a_directory_beside_a_file_of_almost_its_name(self):
        session = self.start()
        self.step(session, "import os")
        self.assert_taken_back(self.step(session, "os.mkdir('data'); open('data/x', 'w').close()\n"
                                                  "open('data.csv', 'w').close(); exit(1)"))
        self.assertEqual(self.value(session, "os.listdir('.')"), [])

    def test_a_directory_that_became_a_link(self):
        """What the link leads to is none of the workspace's files."""
        session = self.start()
        self.step(session, "import os; os.makedirs('a/b'); os.makedirs('/tmp/far/b'); os.chmod('/tmp/far', 0o750)\n"
                           "os.chmod('/tmp/far/b', 0o710)")
        self.assert_taken_back(self.step(session, "os.removedirs('a/b'); os.symlink('/tmp/far', 'a'); exit(1)"))
        self.assertEqual(self.value(session, "[oct(os.stat(p).st_mode & 0o777) for p in ('/tmp/far', '/tmp/far/b')]"
                                             " + os.listdir('a')"), ["0o750", "0o710", "b"])

    def test_files_cost_what_changed(self):
        session = self.start()
        self.step(session, "open('still', 'wb').write(bytes(20 << 20)); open('f', 'w').write('x')")
        for size in (0, 10, 100):
            result = self.step(session, "open('f', 'wb').write(bytes(%d << 20)); import os; os._exit(1)" % size)
            self.assert_taken_back(result)
            self.step(session, "open('g', 'wb').write(b'g' * (%d << 20))" % size)
            self.assert_taken_back(self.step(session, "os.unlink('g') if 0 else open('g', 'w').close(); exit(1)"))
            self.assertEqual(self.value(session, "import os; [open('f').read(), os.path.getsize('g'),"
                                        " open('g').read(1)]"), ["x", size << 20, "g" if size else ""])

    def test_output(self):
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


    def test_callbacks_are_those_of_before(self):
        session = self.open(rewind={"undo": 3})

        def call(code, **more):
            return Stream(self, session, code, **more).finish({"f": lambda: "of f", "g": lambda: "of g"})[0]

        self.assertEqual(call("f()", callbacks=["f"])["value"]["json"], "of f")
        self.assert_taken_back(call("import os; g(); os._exit(1)", callbacks=["g"]))
        self.assertEqual(call("f()")["value"]["json"], "of f")
        self.assertEqual(call("g()")["exception"]["type"], "NameError")
        self.assertEqual(call("g()", callbacks=["g"])["value"]["json"], "of g")
        call("1", callbacks=[])
        self.undo(session)
        self.assertEqual(call("g()")["value"]["json"], "of g")
        self.undo(session, 2)
        self.assertEqual(call("f()")["value"]["json"], "of f")


class UndoMany(Case):
    def test_as_many_as_were_asked_for(self):
        session = self.open(rewind={"undo": 3})
        for number in range(6):
            self.step(session, "x = %d; open('f', 'w').write('%d')" % (number, number))
        self.assert_taken_back(self.undo(session, 2))
        self.assertEqual(self.value(session, "[x, open('f').read()]"), [3, "3"])
        self.assert_taken_back(self.undo(session))  # of the look at it
        self.assertEqual(self.undo(session, 2)["exception"]["message"],
                         "there are not so many steps that could be taken back")
        self.assert_taken_back(self.undo(session))
        self.assertEqual(self.value(session, "x"), 2)

    def test_a_bad_step_takes_nothing_from_it(self):
        session = self.open(rewind={"undo": 2})
        for number in range(3):
            self.step(session, "x = %d" % number)
        for _ in range(3):
            self.assert_taken_back(self.step(session, "import os; os._exit(1)"))
        self.assert_taken_back(self.undo(session, 2))
        self.assertEqual(self.value(session, "x"), 0)

    def test_what_is_no_number_of_steps(self):
        session = self.start()
        for steps in ("0", "33", "x", "-1"):
            self.assert_refused(self.post(session, "undo?steps=" + steps), 400, "invalid", "steps")
        for rewind, field in (({"undo": 0}, "rewind.undo"), ({"undo": 33}, "rewind.undo"),
                              ({"undo": "1"}, "rewind.undo"), ({"redo": 1}, "rewind"),
                              ("yes", "rewind")):
            self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {
                "language": "python", "rewind": rewind}), 400, "invalid", field)
        self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {
            "language": "javascript", "rewind": True}), 400, "invalid", "rewind")


class Checkpoints(Case):
    def listed(self, session):
        return self.daemon.ask("GET", "/v1/sessions/%s/checkpoints" % session)[1]["checkpoints"]

    def names(self, session):
        return sorted(item["name"] for item in self.listed(session))

    def test_any_number_of_times(self):
        session = self.start()
        self.step(session, "x = [1]; open('f', 'w').write('one')")
        made = self.checkpoint(session, "begin")
        self.assertEqual((made["name"], made["files"]), ("begin", 3))
        for number in range(4):
            self.step(session, "x.append(%d); open('f', 'w').write('more'); open('g%d', 'w').close()"
                      % (number, number))
            self.assert_taken_back(self.restore(session, "begin")[1]["result"], exit_code=0)
            self.assertEqual(self.value(session, "import os; [x, open('f').read(), os.listdir('.')]"),
                             [[1], "one", ["f"]])
        self.assertEqual(self.names(session), ["begin"])

    def test_several_and_what_becomes_of_them(self):
        session = self.start()
        for name in ("a", "b.2", "c-3"):
            self.step(session, "x = %r" % name)
            self.checkpoint(session, name)
        self.step(session, "import os; os._exit(3)")
        self.assertEqual(self.names(session), ["a", "b.2", "c-3"])
        self.restore(session, "a")
        self.assertEqual(self.value(session, "x"), "a")
        self.restore(session, "c-3")
        self.assertEqual(self.value(session, "x"), "c-3")
        status, answer, _ = self.daemon.ask("DELETE", "/v1/sessions/%s/checkpoints/b.2" % session)
        self.assertEqual((status, answer["checkpoints"][0]["name"]), (200, "b.2"))
        self.assertEqual(self.names(session), ["a", "c-3"])
        self.assert_refused(self.restore(session, "b.2"), 404, "gone")
        self.assertEqual(self.value(session, "x"), "c-3")
        self.step(session, "x = 'again'")
        self.checkpoint(session, "a")
        self.step(session, "x = 0")
        self.restore(session, "a")
        self.assertEqual(self.value(session, "x"), "again")

    def test_a_restore_cannot_be_undone(self):
        session = self.start()
        self.step(session, "x = 1")
        self.checkpoint(session, "a")
        self.step(session, "x = 2")
        self.restore(session, "a")
        self.assertEqual(self.undo(session)["state"], "kept")
        self.assertEqual(self.value(session, "x"), 1)

    def test_its_cost(self):
        session = self.start()
        self.step(session, "x = bytearray(30 << 20)")
        first = self.checkpoint(session, "a")["memory"]
        self.assertLess(first, 8 << 20)  # all of it is shared
        self.step(session, "for i in range(0, len(x), 4096): x[i] = 1")
        self.step(session, "pass")  # what this can be taken back to has the same pages
        self.assertTrue(wait_until(lambda: self.listed(session)[0]["memory"] > 28 << 20))

    def test_there_are_bounds(self):
        session = self.start()
        for number in range(16):
            self.checkpoint(session, "n%d" % number)
        self.assert_refused(self.post(session, "checkpoints", {"name": "more"}), 409, "limit")
        for name in ("", "a b", "-a", "x" * 64, "a/b", 5, None, "a\0"):
            self.assert_refused(self.post(session, "checkpoints", {"name": name}), 400, "invalid", "name")
        self.step(session, "import threading; t = threading.Thread(target=threading.Event().wait);"
                           "t.daemon = True; t.start()")
        self.assert_refused(self.post(session, "checkpoints", {"name": "n1"}), 409, "limit")
        self.assertEqual(len(self.names(session)), 16)

    def test_it_has_to_be_asked_for(self):
        session = self.open()
        self.assert_refused(self.post(session, "checkpoints", {"name": "a"}), 409, "invalid")


class Memory(Case):
    """What can be gone back to has memory of its own, and gives way before a step does."""

    def test_all_of_it_can_be_rewritten(self):
        session = self.start(limits={"memory": "128m"})
        self.step(session, "x = bytearray(90 << 20)")
        for number in range(1, 4):
            result = self.step(session, "for i in range(0, len(x), 4096): x[i] = %d\nx[0]" % number)
            self.assertEqual((result["state"], result["rewind"], result["oom"]),
                             ("kept", "ready", False))
        self.assert_taken_back(self.step(session, "x[0] = 9; import os; os._exit(1)"))
        self.assertEqual(self.value(session, "x[0]"), 3)

    def test_what_is_old_gives_way(self):
        session = self.open(rewind={"undo": 8}, limits={"memory": "128m"})
        self.step(session, "x = bytearray(90 << 20)")
        for number in range(1, 8):
            result = self.step(session, "for i in range(0, len(x), 4096): x[i] = %d\nx[0]" % number)
            self.assertEqual((result["state"], result["oom"]), ("kept", False), result)
        self.assertEqual(result["rewind"], "ready")
        self.assertIn("not so many", self.undo(session, 7)["exception"]["message"])
        self.assert_taken_back(self.undo(session))
        self.assertEqual(self.value(session, "x[0]"), 6)


class Ruby(Case):
    def start(self, **more):
        return self.open("ruby", rewind={"undo": 2}, **more)

    def test_bad_ends_undo_and_checkpoints(self):
        session = self.start()
        self.step(session, "x = [1]; File.write('f', 'one')")
        for bad, members in (("exit(3)", {"exit_code": 3}), ("exit!(4)", {"exit_code": 4}),
                             ("Process.kill(:KILL, $$); sleep", {"signal": 9})):
            self.assert_taken_back(self.step(session, "x << 2; File.write('f', 'two'); " + bad), **members)
        self.assertEqual(self.value(session, "[x, File.read('f')]"), [[1], "one"])
        self.checkpoint(session, "a")
        self.step(session, "x << 5")
        self.step(session, "x << 6")
        self.assert_taken_back(self.undo(session, 2))
        self.assertEqual(self.value(session, "x << 7; x"), [1, 7])
        self.restore(session, "a")
        self.assertEqual(self.value(session, "[x, Process.waitall]"), [[1], []])

    def test_a_copy_hears_signals(self):
        session = self.start()
        self.step(session, "x = 1; exit!(1)")
        self.assertEqual(self.step(session, "y = 2; sleep 60", timeout=2)["state"], "kept")
        self.assertEqual(self.value(session, "y"), 2)

    def test_what_cannot_be_copied(self):
        session = self.start()
        self.step(session, "t = Thread.new { sleep }")
        self.assertEqual(self.step(session, "1")["rewind"], "unavailable: threads are running")
        self.step(session, "t.kill; t.join; pid = spawn('sleep 60')")
        self.assertEqual(self.step(session, "2")["rewind"], "unavailable: child processes are running")

    def test_one_that_is_not_warm(self):
        session = self.start(env={"RUBY_X": "1"})
        self.assertEqual(self.step(session, "1")["rewind"],
                         "unavailable: this interpreter cannot be copied")
        self.assert_refused(self.post(session, "checkpoints", {"name": "a"}), 409, "limit")
        python = self.open(rewind=True, env={"PYTHONX": "1"})
        self.assert_taken_back(self.step(python, "import os; os._exit(1)"))


class Bash(Case):
    def said(self, session, code):
        return self.step(session, code)["stdout"]

    def test_bad_ends_undo_and_checkpoints(self):
        session = self.open("bash", rewind={"undo": 2})
        self.step(session, "x=1; f() { echo f$x; }; echo one >f; cd /tmp; cd -")
        for bad, members in (("exit 3", {"exit_code": 3}), ("kill -KILL $BASHPID", {"signal": 9}),
                             ("kill -KILL $$; sleep 1", {"signal": 9}), ("kill $$; sleep 1", {"signal": 15}),
                             ("set -u; echo $nothing", {"exit_code": 1})):
            self.assert_taken_back(self.step(session, "x=2; echo two >f; unset -f f; sleep 60 & " + bad),
                                   **members)
        self.assertEqual(self.said(session, "f; cat f; jobs"), "f1\none\n")
        self.checkpoint(session, "a")
        self.step(session, "x=5")
        self.step(session, "x=6; trap 'echo bye' EXIT")
        self.assert_taken_back(self.undo(session, 2))
        self.assertEqual(self.said(session, "f; (exit 4); echo $?"), "f1\n4\n")
        self.step(session, "x=9")
        self.restore(session, "a")
        self.assertEqual(self.said(session, "f; trap"), "f1\n" + self.said(session, "trap"))

    def test_a_copy_is_the_shell(self):
        session = self.open("bash", rewind=True)
        self.step(session, "x=1; exit 1")
        result = self.step(session, "y=2; sleep 60", timeout=2)
        self.assertEqual((result["state"], result["interrupted"]), ("kept", True))
        self.assertEqual(self.said(session, "set -e; false; echo no"), "")
        self.assertEqual(self.said(session, "echo $y $(echo sub) | cat"), "2 sub\n")
        self.assertEqual(self.said(session, "trap 'echo usr' USR1; kill -USR1 $$; (($$ == BASHPID)) && echo me"),
                         "usr\nme\n")
        self.step(session, "sleep 60 &")
        self.assertEqual(self.step(session, "true")["rewind"], "unavailable: child processes are running")
        self.step(session, "kill $!; wait")
        self.assertEqual(self.step(session, "true")["rewind"], "ready")


class Model(Case):
    """Random steps, bad ends, undos, checkpoints and restores: REWIND_SEQUENCES of them."""

    def test_random_sequences(self):
        play(self, Sequence, "REWIND", count=12, seed=20, steps=(4, 20))


class Leaks(Case):
    """REWIND_ROLLBACKS of them, one after the other: nothing is left of any."""

    def state(self, session):
        """Who is in the sandbox, and what the interpreter has open.  A copy that was dropped is
        still seen while it ends, so the least of some looks counts."""
        return [self.value(session, PROCESSES), self.value(session, "len(os.listdir('/proc/self/fd'))")]

    def test_rollbacks(self):
        count = int(os.environ.get("REWIND_ROLLBACKS", 60))
        session = self.start()
        self.step(session, "x = 7; open('f', 'w').write('seven')")
        for number in range(10):
            self.step(session, "import os; os._exit(1)")
        before, memory = min(self.state(session) for look in range(5)), self.memory(session)
        fds = len(os.listdir("/proc/%d/fd" % self.daemon.server_pid()))
        for number in range(count):
            bad = ("import os; os._exit(1)", "import os; os.abort()", "open('f', 'a').write('x'); exit(2)",
                   "import os; os.fork() and os._exit(3)\nimport time; time.sleep(99)")[number % 4]
            self.assertEqual(self.step(session, bad)["state"], "rolled_back", number)
            if number % 500 == 499:
                print("# %d rollbacks" % (number + 1), flush=True)
        self.assertEqual(self.value(session, "[x, open('f').read()]"), [7, "seven"])
        self.assertTrue(wait_until(lambda: self.state(session) == before), self.state(session))
        self.assertTrue(wait_until(lambda: self.memory(session) < memory + (8 << 20)), self.memory(session))
        self.assertTrue(wait_until(lambda: len(os.listdir("/proc/%d/fd" % self.daemon.server_pid())) < fds + 4))

    def memory(self, session):
        return self.daemon.ask("GET", "/v1/sessions/" + session)[1]["memory"]


if __name__ == "__main__":
    unittest.main()
