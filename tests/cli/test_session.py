"""vial session, vial repl: with a daemon that is real."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import cli
import test_daemon


class Sessions(test_daemon.WithDaemon):
    def open(self, *options):
        done = self.vial("session", "open", *options)
        self.assert_ok(done)
        name = done.stdout.strip()
        self.addCleanup(self.vial, "session", "close", name)
        return name

    def step(self, name, code, *options):
        return self.vial("session", "run", *options, "-c", code, name)

    def test_state_is_kept(self):
        name = self.open()
        self.assert_ok(self.step(name, "x = 6\ndef f(): return x * 7"), "")
        self.assert_ok(self.step(name, "print('out'); f()"), "out\n42\n")
        self.assert_ok(self.step(name, "f()", "--quiet"), "")
        self.assert_ok(self.step(name, "f()", "--mode", "script"), "")
        self.assert_ok(self.step(name, "return f() + 1", "--mode", "function"), "43\n")

    def test_every_language(self):
        for language, first, second in (("javascript", "let x = 6", "x * 7"),
                                        ("ruby", "x = 6; nil", "x * 7"),
                                        ("bash", "x=6", "echo $((x * 7))")):
            with self.subTest(language):
                name = self.open("-l", language)
                self.assertEqual(self.step(name, first, "-q").returncode, 0)
                self.assert_ok(self.step(name, second), "42\n")

    def test_files_and_standard_input(self):
        name = self.open()
        self.assert_ok(self.vial("session", "run", name, self.put("a.py", "y = 1")), "")
        self.assert_ok(self.vial("session", "run", name, "-", stdin=b"y + 1"), "2\n")

    def test_failures(self):
        name = self.open()
        done = self.step(name, "def f():\n    return 1 / 0\nf()")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertTrue(done.stderr.startswith("Traceback (most recent call last):\n"))
        self.assertTrue(done.stderr.endswith("ZeroDivisionError: division by zero\n"))
        done = self.step(name, "raise SystemExit(3)")
        self.assertEqual(done.returncode, 3)
        self.assertIn("the interpreter ended", done.stderr)
        self.assert_ok(self.step(name, "1 + 1"), "2\n")
        done = self.step(name, "while True: pass", "-t", "200ms")
        self.assertEqual(done.returncode, cli.TIMEOUT)
        self.assertIn("the time limit was reached", done.stderr)
        done = self.step(name, "import os; os.kill(os.getpid(), 11)")
        self.assertEqual(done.returncode, 128 + 11)

    def test_what_a_terminal_would_obey_is_shown(self):
        name = self.open()
        self.assert_ok(self.step(name, "type('X', (), {'__repr__': lambda s: '\\x1b[2J'})()"), "\\x1b[2J\n")

    def test_pictures_are_saved_and_named(self):
        name = self.open()
        self.put("picture-1.png", "mine")
        png = "class P:\n    def _repr_png_(self): return b'\\x89PNG data'\nP()"
        self.assert_ok(self.step(name, png), "[picture-2.png]\n")
        with open(self.path("picture-2.png"), "rb") as file:
            self.assertEqual(file.read(), b"\x89PNG data")
        self.assertEqual(self.get("picture-1.png"), "mine")

    def test_list_reset_close(self):
        name = self.open()
        self.assert_ok(self.step(name, "x = 1"))
        rows = [line.split("\t") for line in self.vial("session", "list").stdout.splitlines()]
        self.assertIn([name, "python", "idle", "1"], [row[:4] for row in rows])
        listed = json.loads(self.vial("session", "list", "--json").stdout)
        self.assertIn(name, [session["id"] for session in listed])
        self.assert_ok(self.vial("session", "reset", name), "")
        self.assertIn("NameError", self.step(name, "x").stderr)
        self.assert_ok(self.vial("session", "close", name), "")
        self.assertEqual(self.step(name, "1").returncode, cli.USAGE)

    def test_an_interrupt_is_for_the_code(self):
        name = self.open()
        process = self.start("session", "run", "-c", "import time\nprint('up', flush=True)\n"
                             "for _ in range(600): time.sleep(0.1)", name)
        self.assertEqual(process.stdout.read(3), b"up\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(cli.PATIENCE_S), 1)
        self.assertIn(b"KeyboardInterrupt", process.stderr.read())
        self.assert_ok(self.step(name, "time.__name__"), "'time'\n")

    def test_usage(self):
        hint = "Try 'vial session run --help'."
        self.assert_usage(self.vial("session", "run"), "which session?", hint=hint)
        self.assert_usage(self.vial("session", "run", "x"), "which code?", hint=hint)
        self.assert_usage(self.vial("session", "close"), "which session?",
                          hint="Try 'vial session close --help'.")
        self.assert_usage(self.vial("session", "clos"), "did you mean", hint="Try 'vial session --help'.")
        self.assert_usage(self.vial("session", "close", "../x"), "not the id of a session",
                          hint="Try 'vial session close --help'.")


class Repl(test_daemon.WithDaemon):
    def test_a_script_on_standard_input(self):
        done = self.vial("repl", stdin=b"x = 6\n\ndef f(y):\n    return y * 7\n\nf(x)\nprint('out')\n(1 +\n2)\n")
        self.assert_ok(done, "42\nout\n3\n")
        self.assertEqual(self.vial("repl", stdin=b"1/0\n").returncode, 1)

    def test_languages(self):
        for language, text, shown in (("javascript", b"let f = (x) => {\nreturn x * 2\n}\nf(21)\n", "42\n"),
                                      ("ruby", b"def f(x)\nx * 2\nend\nf(21)\n", ":f\n42\n"),
                                      ("bash", b"for i in 1 2; do\necho $i\ndone\n", "1\n2\n")):
            with self.subTest(language):
                self.assert_ok(self.vial("repl", "-l", language, stdin=text), shown)

    def converse(self, *exchanges):
        """Type on a terminal and wait for what is expected: pairs of text and pattern."""
        master, slave = pty.openpty()
        env = {**os.environ, **self.env, "TERM": "xterm", "HOME": self.dir, "LC_ALL": "C.UTF-8"}
        env.pop("XDG_STATE_HOME", None)
        process = subprocess.Popen([cli.VIAL, "repl"], cwd=self.dir, stdin=slave, stdout=slave,
                                   stderr=slave, env=env, start_new_session=True,
                                   preexec_fn=lambda: __import__("fcntl").ioctl(0, 0x540E, 0))
        os.close(slave)
        self.addCleanup(self._end, process)
        self.addCleanup(os.close, master)
        for text, pattern in exchanges:
            os.write(master, text)
            seen, end = b"", time.monotonic() + cli.PATIENCE_S
            while not re.search(pattern, seen) and time.monotonic() < end:
                if select.select([master], [], [], 0.5)[0]:
                    try:
                        seen += os.read(master, 65536)
                    except OSError:
                        break
            self.assertRegex(seen, pattern)
        return process.wait(cli.PATIENCE_S)

    def test_on_a_terminal(self):
        status = self.converse((b"", rb">>> $"), (b"x = 5\n", rb">>> $"),
                               (b"def f():\n", rb"\.\.\. $"), (b"    return x\n", rb"\.\.\. $"),
                               (b"\n", rb">>> $"), (b"f()\n", rb"\n5\r\n"),
                               (b"print(x + 2, flush=True)\n", rb"\n7\r\n"),
                               (b"import time; print('g' 'o', flush=True); time.sleep(60)\n", rb"\ngo\r\n"),
                               (b"\x03", rb"KeyboardInterrupt"),
                               (b"x\n", rb"\n5\r\n"), (b"half a li\x03", rb">>> $"),
                               (b"\x1b[A\n", rb"\n5\r\n"), (b"\x04", rb"\n"))
        self.assertEqual(status, 0)
        self.assertIn("def", self.get(".local/state/vial/history"))
        self.assertEqual(os.stat(self.path(".local/state/vial/history")).st_mode & 0o077, 0)
        self.assertEqual(self.vial("session", "list").stdout, "")
