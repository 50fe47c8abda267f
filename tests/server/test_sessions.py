"""Steps of sessions: what they leave, every way to die, time, streams."""
import functools
import subprocess
import time

import daemon
from daemon import wait_until
from sessions import FORGE, LANGUAGES, Case, Stream


class Steps(Case):
    def test_state_stays(self):
        codes = {"python": ("x = 41\nprint('out')", "x + 1"), "javascript": ("let x = 41; console.log('out')", "x + 1"),
                 "ruby": ("x = 41; puts 'out'", "x + 1"), "bash": ("x=41; echo out", "echo $((x + 1))")}
        for language, (first, second) in codes.items():
            with self.subTest(language):
                session = self.open(language)
                result = self.step(session, first)
                self.assertEqual((result["outcome"], result["state"], result["fresh"], result["stdout"],
                                  result["exit_code"]), ("exited", "kept", True, "out\n", 0), result)
                result = self.step(session, second)
                self.assertFalse(result["fresh"])
                shown = result["stdout"].strip() if language == "bash" else result["value"]["json"]
                self.assertEqual(int(shown), 42, result)

    def test_files_and_directory_stay(self):
        for language, (write, read) in {
                "python": ("import os; os.mkdir('d'); os.chdir('d'); open('f', 'w').write('x')",
                           "print(open('f').read())"),
                "bash": ("mkdir d; cd d; printf x >f", "cat f; echo")}.items():
            with self.subTest(language):
                session = self.open(language)
                self.step(session, write)
                self.assertEqual(self.step(session, read)["stdout"], "x\n")

    def test_what_is_printed_is_of_its_step(self):
        """Also while another thread or process is there, and lines come after the first was read."""
        for language, before, code in (
                ("javascript", "1", "const t = Date.now() + 4; while (Date.now() < t); "
                                    "for (let j = 0; j < 5; j++) console.log('@ ' + j)"),
                ("bash", "sleep 1000 &", "sleep 0.004; for j in 0 1 2 3 4; do echo @ $j; done"),
                ("python", "import threading, time; threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
                 "time.sleep(0.004)\nfor j in range(5): print('@', j)")):
            session = self.open(language)
            self.step(session, before)
            for i in range(40):
                self.assertEqual(self.step(session, code.replace("@", str(i)))["stdout"],
                                 "".join("%d %d\n" % (i, j) for j in range(5)), language)

    def test_what_a_session_is_given(self):
        session = self.open(files=[{"path": "a/b", "content": "F"}], env={"A": "b c"})
        self.assertEqual(self.value(session, "import os; [open('a/b').read(), os.environ['A']]"),
                         ["F", "b c"])
        self.step(session, "os._exit(1)") # the next interpreter gets the same
        self.assertEqual(self.value(session, "import os; [open('a/b').read(), os.environ['A']]"),
                         ["F", "b c"])

    def test_exceptions(self):
        for language, code, kind in (("python", "def f():\n  raise ValueError('bad')\nf()", "ValueError"),
                                     ("javascript", "throw new TypeError('bad')", "TypeError"),
                                     ("ruby", "raise ArgumentError, 'bad'", "ArgumentError")):
            with self.subTest(language):
                session = self.open(language)
                result = self.step(session, code)
                self.assertEqual((result["outcome"], result["exit_code"], result["state"]),
                                 ("exited", 1, "kept"), result)
                told = result["exception"]
                self.assertEqual((told["type"], told["message"]), (kind, "bad"))
                self.assertEqual(set(told), {"type", "module", "message", "traceback", "line", "frames",
                                             "cause"})
        self.assertIsNone(self.step(self.open("bash"), "false")["exception"])

    def test_a_result_has_the_members_of_a_run(self):
        run = self.run_ok("1")
        result = self.step(self.open(), "1")
        self.assertLessEqual(set(run), set(result))
        self.assertEqual(set(result) - set(run), {"state", "fresh", "interrupted", "reason", "rewind",
                                                  "files", "value", "displays", "displays_dropped",
                                                  "cut"})

    def test_numbers_are_not_rounded(self):
        session = self.open()
        for value in (2 ** 70, 0.1, 1e300, -0.0, 1.0):
            got = self.value(session, "v", globals={"v": value})
            self.assertEqual((got, type(got)), (value, type(value)))

    def test_globals_modes_and_names(self):
        session = self.open()
        self.assertEqual(self.value(session, "a + len(b)", globals={"a": 1, "b": [1, {"c": None}]}), 3)
        self.assertEqual(self.value(session, "return a * 10", mode="function"), 10)
        self.assertIsNone(self.step(session, "a", mode="script")["value"])
        result = self.step(session, "1/0", name="cell.py")
        self.assertEqual(result["exception"]["frames"][-1]["file"], "cell.py")

    def test_displays(self):
        session = self.open()
        result = self.step(session, "display({'text/plain': 'a'}, raw=True); display({'text/plain': 'b'}, raw=True)")
        self.assertEqual(result["displays"], [{"text/plain": "a"}, {"text/plain": "b"}])
        result = self.step(session, "for i in range(1500): display({'text/plain': 'x'}, raw=True)")
        self.assertEqual((len(result["displays"]), result["displays_dropped"], result["cut"]),
                         (1000, 500, True))
        self.assertEqual(self.step(session, "1")["displays"], [])

    def test_output_is_cut_at_its_limit_in_each_step(self):
        session = self.open(limits={"output": 10})
        for _ in range(2):
            result = self.step(session, "print('x' * 100)")
            self.assertEqual((result["stdout"], result["stdout_dropped"], result["truncated"]),
                             ("x" * 10, 91, True))

    def test_what_is_printed_between_steps_comes_with_the_next(self):
        session = self.open()
        self.step(session, "import threading, time, os\n"
                           "def late():\n  while not os.path.exists('go'): time.sleep(0.02)\n"
                           "  os.write(1, b'late\\n'); open('said', 'w').close()\n"
                           "threading.Thread(target=late).start()")
        self.put_file(session, "go")
        self.wait_for_file(session, "said")
        self.assertEqual(self.step(session, "print('now')")["stdout"], "late\nnow\n")

    def test_large_code_and_values(self):
        session = self.open()
        text = "x" * (3 << 20)
        result = self.step(session, "s = '%s'\nlen(s)" % text)
        self.assertEqual(result["value"]["json"], len(text))
        self.assertEqual(self.value(session, "s", value_max=8 << 20), text)
        self.assertTrue(self.step(session, "s")["cut"])

    def test_deep_values(self):
        session = self.open()
        result = self.step(session, "v = []\nfor i in range(300): v = [v]\nv")
        self.assertEqual((result["state"], "text" in result["value"]), ("kept", True))
        self.assertEqual(self.value(session, "1"), 1)

    def test_interleaved(self):
        sessions = [self.open(language) for language in LANGUAGES * 2]
        for i in range(5):
            for n, session in enumerate(sessions):
                code = "x=%d; echo $x" if n % 4 == 3 else "x = %d"
                self.step(session, code % (n * 10 + i))
        for n, session in enumerate(sessions):
            result = self.step(session, "echo $x" if n % 4 == 3 else "x")
            shown = result["stdout"].strip() if n % 4 == 3 else result["value"]["json"]
            self.assertEqual(int(shown), n * 10 + 4)

    def test_one_after_the_other_in_the_order_they_came(self):
        session = self.open()
        first = self.hold(session, "seen = []")
        rest = []
        for i in range(8):
            rest.append(self.later(session, "seen.append(%d); list(seen)" % i))
            self.assertTrue(wait_until(lambda: self.look(session)[1]["waiting"] == len(rest)))
        self.let_go(session, first)
        for i, result in enumerate(rest):
            self.assertEqual(result()["value"]["json"], list(range(i + 1)))

    def test_a_policy_outlives_interpreters(self):
        session = self.open(policy={"block": ["socket"]})
        code = "import socket"
        self.assertEqual(self.step(session, code)["exception"]["type"], "ImportError")
        self.step(session, "import os; os._exit(0)")
        self.assertEqual(self.step(session, code)["exception"]["type"], "ImportError")
        self.assertIsNone(self.step(session, code, policy={"block": ["json"]})["exception"])
        self.post(session, "reset")
        self.assertEqual(self.step(session, "import json")["exception"]["type"], "ImportError")
        self.assertIsNone(self.step(session, "import json", policy=None)["exception"])
        self.step(session, "import os; os._exit(0)")
        self.assertIsNone(self.step(session, "import json")["exception"])


    def test_files_that_cannot_be(self):
        both = [{"path": "a", "content": ""}, {"path": "a/b", "content": ""}]
        self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {"language": "python", "files": both}), 400,
                            "invalid")

    def test_a_policy_that_nobody_would_carry_out(self):
        session = self.open(policy={"profile": "nope"})
        for _ in range(2):
            told = self.step(session, "import socket")["exception"]
            self.assertEqual(told["type"], "PolicyError")
            self.assertIn("there is no profile 'nope'", told["message"])
        self.assertIsNone(self.step(session, "import socket", policy="blocklist")["exception"])
        for language in ("javascript", "bash"):
            self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {"language": language, "policy": "strict"}),
                                400, "invalid", "policy", "only Python has one")
        session = self.open("javascript")
        self.assert_refused(self.post(session, "runs", {"code": "1", "policy": {"block": ["os"]}}), 400, "invalid",
                            "policy", "only Python has one")


class Deaths(Case):
    """A result at once, the truth about the state, and a session that goes on."""
    WAYS = {
        "python": {
            "exit": ("import sys; sys.exit(3)", "exited", 3, None),
            "os._exit": ("import os; os._exit(4)", "exited", 4, None),
            "segfault": ("import ctypes; ctypes.string_at(0)", "signaled", None, 11),
            "kill": ("import os; os.kill(os.getpid(), 9)", "signaled", None, 9),
            "abort": ("import os; os.abort()", "signaled", None, 6),
            "memory": ("x = b''.join([bytes(1 << 20) for i in range(4000)])\n", "out_of_memory", None, None),
        },
        "javascript": {
            "exit": ("process.exit(3)", "exited", 3, None),
            "kill": ("process.kill(process.pid, 'SIGKILL')", "signaled", None, 9),
        },
        "ruby": {
            "exit": ("exit 3", "exited", 3, None),
            "exit!": ("exit! 4", "exited", 4, None),
            "kill": ("Process.kill(9, Process.pid); sleep 1", "signaled", None, 9),
        },
        "bash": {
            "exit": ("exit 3", "exited", 3, None),
            "kill": ("kill -9 $$; sleep 1", "signaled", None, 9),
            "signal": ("sleep 60 & kill -TERM $$; sleep 1", "signaled", None, 15),
        },
    }

    def test_every_way(self):
        for language, ways in self.WAYS.items():
            session = self.open(language, limits={"memory": "300m"})
            for way, (code, outcome, exit_code, signal) in ways.items():
                with self.subTest(language=language, way=way):
                    self.step(session, "x=1")
                    began = time.monotonic()
                    result = self.step(session, code)
                    self.assertLess(time.monotonic() - began, 15)
                    self.assertEqual(result["outcome"], outcome, result)
                    if way == "memory": # Python may notice before the kernel does
                        self.assertTrue(result["oom"])
                        self.assertEqual(result["limit"], "memory")
                        if result["state"] == "kept":
                            self.assertEqual(result["exception"]["type"], "MemoryError")
                        continue
                    self.assertEqual((result["exit_code"], result["signal"], result["state"]),
                                     (exit_code, signal, "lost"), result)
                    result = self.step(session, "echo ${x:-gone}" if language == "bash" else
                                       {"python": "'x' in globals()", "javascript": "typeof x",
                                        "ruby": "binding.local_variable_defined?(:x)"}[language])
                    self.assertTrue(result["fresh"])
                    self.assertEqual(result["state"], "kept")
                    self.assertIn(result["stdout"].strip() or result["value"]["json"],
                                  ("gone", "undefined", False))

    def test_killed_for_memory(self):
        session = self.open(limits={"memory": "50m"})
        result = self.step(session, "import mmap\nm = mmap.mmap(-1, 200 << 20)\n"
                                    "for i in range(0, 200 << 20, 4096): m[i] = 1")
        self.assertEqual((result["outcome"], result["oom"], result["limit"], result["state"]),
                         ("out_of_memory", True, "memory", "lost"))
        self.assertEqual(self.value(session, "1"), 1)

    def test_output_before_the_end_is_kept(self):
        session = self.open()
        result = self.step(session, "import os\nos.write(1, b'a' * 100000)\nos._exit(0)")
        self.assertEqual((len(result["stdout"]), result["state"]), (100000, "lost"))

    def test_closed_streams(self):
        for language, code in (("python", "import sys, os; sys.stdout.close(); os.close(1); os.close(2)"),
                               ("ruby", "$stdout.close; $stderr.close"), ("bash", "exec >&- 2>&-"),
                               ("javascript", "require('fs').closeSync(1)")):
            with self.subTest(language):
                session = self.open(language)
                self.assertEqual(self.step(session, code)["state"], "kept")
                if language == "javascript":
                    continue # Node cannot open a pipe of somebody else's again
                shown = {"python": "print('on')", "ruby": "puts 'on'", "bash": "echo on",
                         "javascript": "console.log('on')"}[language]
                self.assertEqual(self.step(session, shown)["stdout"], "on\n")

    def test_a_closed_channel(self):
        session = self.open()
        result = self.step(session, FORGE + "os.close(chan)\nwhile True: time.sleep(1)")
        self.assertEqual(result["state"], "lost", result)
        self.assertEqual(self.value(session, "1"), 1)

    def test_keyboard_interrupt_of_its_own(self):
        session = self.open()
        result = self.step(session, "x = 5\nraise KeyboardInterrupt")
        self.assertEqual((result["state"], result["exception"]["type"]), ("kept", "KeyboardInterrupt"))
        self.assertEqual(self.value(session, "x"), 5)

    def test_a_death_between_steps_is_told_of(self):
        session = self.open()
        self.step(session, "x = 1\nimport threading, os, time\n"
                           "def end():\n  while not os.path.exists('go'): time.sleep(0.02)\n  os._exit(0)\n"
                           "threading.Thread(target=end).start()")
        self.put_file(session, "go")
        self.assertTrue(wait_until(lambda: not self.look(session)[1]["memory"]))
        result = self.step(session, "'x' in globals()")
        self.assertEqual((result["fresh"], result["value"]["json"]), (True, False))

    def test_processes_left_behind_die_with_the_session(self):
        session = self.open("bash")
        self.step(session, "sleep 7777 & disown")
        self.assertTrue(subprocess.run(["pgrep", "-f", "sleep 7777"], stdout=subprocess.DEVNULL,
                                       check=False).returncode == 0)
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assertTrue(wait_until(lambda: subprocess.run(
            ["pgrep", "-f", "sleep 7777"], stdout=subprocess.DEVNULL, check=False).returncode != 0))


class Times(Case):
    LOOPS = {"python": "while True: pass", "javascript": "for (;;) {}", "ruby": "loop {}",
             "bash": "while :; do :; done"}
    SLEEPS = {"python": "import time; time.sleep(60)", "ruby": "sleep 60", "bash": "sleep 60",
              "javascript": "await new Promise((done) => setTimeout(done, 60000))"}
    UP = {"python": "print('up', flush=True)\n", "ruby": "$stdout.puts 'up'; $stdout.flush; ", "bash": "echo up; ",
          "javascript": "require('fs').writeSync(1, 'up\\n'); "}

    def test_interruptible(self):
        opened = [(language, self.open(language), code) for codes in (self.SLEEPS, self.LOOPS)
                  for language, code in codes.items()]
        for _, session, _ in opened:
            self.step(session, "x=7")
        asleep = [self.later(session, code, timeout=2) for _, session, code in opened[:len(self.SLEEPS)]]
        busy = [functools.partial(self.step, session, code, timeout=1)  # one at a time
                for _, session, code in opened[len(self.SLEEPS):]]
        for (language, session, code), wait in zip(opened, asleep + busy):
            with self.subTest(language=language, code=code):
                result = wait()
                self.assertEqual((result["outcome"], result["timed_out"], result["limit"], result["state"],
                                  result["exit_code"]), ("timed_out", True, "timeout", "kept", None), result)
                self.assertTrue(result["interrupted"], result)
                self.assertLess(result["wall_ms"], 20000)
                result = self.step(session, "echo $x" if language == "bash" else "x")
                self.assertFalse(result["fresh"])

    def test_not_interruptible(self):
        stubborn = {
            "python": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\nwhile True: pass",
            "ruby": "trap('INT') {}; loop {}",
            "bash": "trap '' INT; while :; do :; done",
            "javascript": "require('child_process').execSync('trap \"\" INT; sleep 60')",
        }
        opened = [(language, self.open(language)) for language in stubborn]
        running = [self.later(session, stubborn[language], timeout=2) for language, session in opened]
        for (language, session), wait in zip(opened, running):
            with self.subTest(language):
                result = wait()
                self.assertEqual((result["outcome"], result["limit"], result["state"]),
                                 ("timed_out", "timeout", "lost"), result)
                self.assertTrue(2400 <= result["wall_ms"] < 20000, result["wall_ms"])
                self.assertTrue(self.step(session, "true" if language == "bash" else "1")["fresh"])

    def test_what_catches_everything_is_killed(self):
        session = self.open()
        result = self.step(session, "while True:\n  try:\n    for i in range(10**6): i += 1\n"
                                    "  except BaseException: pass", timeout=2)
        self.assertEqual((result["outcome"], result["state"]), ("timed_out", "lost"))
        self.assertIsNotNone(result["reason"])

    def test_the_sessions_own_limits(self):
        session = self.open(limits={"timeout": 2})
        result = self.step(session, "import time; time.sleep(60)")
        self.assertEqual((result["limit"], result["state"]), ("timeout", "kept"))
        self.assertEqual(self.step(session, "time.sleep(2.2); 1", timeout=60)["value"]["json"], 1)
        session = self.open(limits={"cpu-time": 1})
        for _ in range(2): # of each step
            result = self.step(session, "while True: pass")
            self.assertEqual((result["outcome"], result["limit"], result["state"]),
                             ("timed_out", "cpu-time", "kept"))

    def test_interrupt(self):
        for language, code in self.LOOPS.items():
            with self.subTest(language):
                session = self.open(language)
                self.assertEqual(self.post(session, "interrupt")[1], {"interrupted": False})
                stream = Stream(self, session, self.UP[language] + code)
                self.assertEqual(stream.next()["data"][:2], "up")
                self.assertEqual(self.post(session, "interrupt")[1], {"interrupted": True})
                result = stream.finish()[0]
                self.assertEqual((result["outcome"], result["state"], result["interrupted"], result["timed_out"]),
                                 ("cancelled", "kept", True, False), result)
                self.assertEqual(self.step(session, "true" if language == "bash" else "1")["fresh"], False)

    def test_an_interrupt_does_not_hit_the_next_step(self):
        session = self.open()
        for _ in range(20):
            result = self.later(session, "try:\n  for i in range(10**9): pass\nexcept KeyboardInterrupt: pass")
            self.wait_running(session)
            self.post(session, "interrupt")
            self.assertEqual(self.step(session, "1 + 1")["value"]["json"], 2)
            result()

    def test_a_step_is_ended_by_its_id(self):
        session = self.open()
        stream = Stream(self, session, "while True: pass")
        self.assertIn(stream.id, [run["id"] for run in self.daemon.runs()])
        queued = Stream(self, session, "1")
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + queued.id)[0], 200)
        self.assertEqual(queued.finish()[0]["error"]["code"], "gone")
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + stream.id)[0], 200)
        self.assertEqual(stream.finish()[0]["outcome"], "cancelled")
        self.assert_refused(self.daemon.ask("DELETE", "/v1/runs/" + stream.id), 404, "gone")
        shown = subprocess.run([daemon.VIAL, "ps"], env={"VIAL_SOCKET": self.daemon.path, "PATH": "/usr/bin"},
                               capture_output=True, check=False)
        self.assertEqual((shown.returncode, shown.stderr), (0, b""))


class Streams(Case):
    def test_events_in_order(self):
        stream = Stream(self, self.open(), "import sys\nprint('a', flush=True)\n"
                        "display({'text/plain': 'd'}, raw=True)\nprint('e', file=sys.stderr)\n5")
        result, events = stream.finish()
        self.assertEqual(result["value"]["json"], 5)
        said = {"stdout": "", "stderr": ""}
        for event in events:
            if event["event"] == "output":
                said[event["stream"]] += event["data"]
        self.assertEqual(said, {"stdout": "a\n", "stderr": "e\n"})
        self.assertEqual([e["data"] for e in events if e["event"] == "display"], [{"text/plain": "d"}])
        self.assertIsNone(stream.next())

    def test_output_comes_as_it_is_printed(self):
        stream = Stream(self, self.open(), "import time\nfor i in range(3): print(i, flush=True); time.sleep(0.4)")
        first = stream.next()
        self.assertEqual((first["event"], first["data"][0]), ("output", "0"))
        self.assertEqual(stream.finish()[0]["stdout"], "0\n1\n2\n")

    def test_a_client_that_goes_leaves_the_step_running(self):
        session = self.open()
        stream = Stream(self, session, "import time; time.sleep(0.7); x = 9")
        stream.hang_up()
        self.assertEqual(self.value(session, "x"), 9)

    def test_a_queued_step_whose_client_goes_is_not_run(self):
        session = self.open()
        first = self.hold(session, "x = 1")
        Stream(self, session, "x = 2").hang_up()
        self.assertTrue(wait_until(lambda: self.look(session)[1]["waiting"] == 0))
        self.let_go(session, first)
        self.assertEqual(self.value(session, "x"), 1)

    def test_a_reader_that_does_not_read_finds_the_result(self):
        session = self.open(limits={"output": "20m"})
        stream = Stream(self, session, "for i in range(300000): print('x' * 60)")
        self.assertTrue(wait_until(lambda: self.look(session)[1]["state"] == "idle"))
        result, events = stream.finish()
        self.assertEqual(len(result["stdout"]), 300000 * 61)
        self.assertLess(len(events), 300000)
