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


class Case(test_daemon.WithDaemon):
    def open(self, *options):
        done = self.vial("session", "open", *options)
        self.assert_ok(done)
        name = done.stdout.strip()
        self.addCleanup(self.vial, "session", "close", name)
        return name

    def step(self, name, code, *options):
        return self.vial("session", "run", *options, "-c", code, name)


class Sessions(Case):
    def test_state_is_kept(self):
        name = self.open()
        self.assert_ok(self.step(name, "x = 6\ndef f(): return x * 7"), "")
        self.assert_ok(self.step(name, "print('out'); f()"), "out\n42\n")
        self.assert_ok(self.step(name, "f()", "--quiet"), "")
        self.assert_ok(self.step(name, "f()", "--mode", "script"), "")
        self.assert_ok(self.step(name, "return f() + 1", "--mode", "function"), "43\n")

    def test_options_may_follow_the_session(self):
        name = self.open()
        self.assert_ok(self.vial("session", "run", name, "-c", "6 * 7"), "42\n")
        self.assert_ok(self.vial("session", "run", name, "-c", "6 * 7", "--quiet"), "")
        self.assert_usage(self.vial("session", "run", name, "--", "-c", "1"), "one file at a time",
                          hint="Try 'vial session run --help'.")

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
        self.assert_usage(self.vial("session", "run", name, "nosuch.py"), "nosuch.py: No such file or directory",
                          hint="Try 'vial session run --help'.")

    def test_what_to_do_is_said_in_the_words_of_commands(self):
        name = self.open()
        self.assert_ok(self.step(name, "import os; os.makedirs('d/e')"), "")
        for words, message in ((("rm", name, "d"), "d: Directory not empty; -r removes all that is in it"),
                               (("undo", name), "does not keep what it was; open one with --rewind"),
                               (("open", "-l", "nolang"), "'vial env list' lists what there is")):
            self.assert_usage(self.vial("session", *words), message, hint="Try 'vial session %s --help'." % words[0])

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

    def test_what_is_asked_for_in_vain(self):
        for words, says in ((("open", "-l", "python", "-E", "ruby"), "not both"),
                            (("run", "-t", "0", "-c", "1", self.open()), "--timeout")):
            done = self.vial("session", *words)
            self.assertEqual(done.returncode, 2, done)
            self.assertIn(says, done.stderr)

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

    def test_rewind_and_undo(self):
        name = self.open("--rewind")
        self.assert_ok(self.step(name, "x = 1"), "")
        done = self.step(name, "x = 2; import os; os._exit(3)")
        self.assertEqual(done.returncode, 3, done)
        self.assert_ok(self.step(name, "x"), "1\n")
        self.assert_ok(self.step(name, "x = 5"), "")
        self.assert_ok(self.vial("session", "undo", name), "")
        done = self.vial("session", "undo", name)
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                         (2, "vial: there is no step that could be taken back"))
        self.assert_ok(self.step(name, "x"), "1\n")

    def test_checkpoints(self):
        name = self.open("--undo", "2")
        for number in (1, 2, 3):
            self.assert_ok(self.step(name, "x = %d" % number), "")
        self.assert_ok(self.vial("session", "undo", "-n", "2", name), "")
        self.assert_ok(self.step(name, "x"), "1\n")
        self.assert_ok(self.vial("session", "checkpoint", name, "first"), "")
        self.assert_ok(self.step(name, "x = 5"), "")
        self.assert_ok(self.vial("session", "restore", name, "first"), "")
        self.assert_ok(self.step(name, "x"), "1\n")
        shown = self.vial("session", "checkpoints", name).stdout
        self.assertRegex(shown, r"\Afirst\t[^\t]+\t0 B\n\Z")
        listed = json.loads(self.vial("session", "checkpoints", "--json", name).stdout)
        self.assertEqual([item["name"] for item in listed], ["first"])
        self.assert_ok(self.vial("session", "forget", name, "first"), "")
        done = self.vial("session", "restore", name, "first")
        self.assertEqual((done.returncode, done.stderr.splitlines()[0]),
                         (2, "vial: there is no checkpoint 'first', or no longer"))

    def test_fork(self):
        name = self.open("--rewind")
        self.assert_ok(self.step(name, "import os; x = 1"), "")
        done = self.vial("session", "fork", "-n", "2", name)
        self.assertEqual(done.returncode, 0, done)
        branches = done.stdout.split()
        self.assertEqual(len(branches), 2)
        for number, one in enumerate([name, *branches]):
            self.assertEqual(self.vial("session", "undo", one).returncode, 2)
            self.assert_ok(self.step(one, "x += %d" % number), "")
            self.assertEqual(self.step(one, "x = 9; os._exit(3)").returncode, 3)
            self.assert_ok(self.step(one, "x"), "%d\n" % (1 + number))

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


class SessionFiles(Case):
    """vial session put, get, ls, rm."""

    def files(self, name, *options):
        done = self.vial("session", "ls", "-R", "--json", *options, name)
        self.assert_ok(done)
        return sorted(entry["path"] for entry in json.loads(done.stdout))

    def test_a_file_there_and_back(self):
        name = self.open()
        source = self.put("in.txt", "hello")
        self.assert_ok(self.vial("session", "put", name, source), "")
        self.assert_ok(self.vial("session", "put", name, source, "other"), "")
        self.assert_ok(self.vial("session", "put", name, source, source, "d/"), "")
        self.assert_ok(self.vial("session", "put", name, "-", "typed", stdin=b"from stdin"), "")
        self.assert_ok(self.vial("session", "put", name, "/dev/null", "empty"), "")
        self.assertEqual(self.files(name), ["d", "d/in.txt", "empty", "in.txt", "other", "typed"])
        self.assert_ok(self.step(name, "[open(f).read() for f in ('in.txt', 'd/in.txt', 'typed', 'empty')]"),
                       "['hello', 'hello', 'from stdin', '']\n")
        self.assert_ok(self.step(name, "open('out', 'w').write('x' * 300000)", "-q"))
        self.assert_ok(self.vial("session", "get", name, "out", self.dir), "")
        with open(os.path.join(self.dir, "out"), encoding="ascii") as file:
            self.assertEqual(file.read(), "x" * 300000)
        self.assert_ok(self.vial("session", "get", name, "typed", "-"), "from stdin")
        self.assert_ok(self.vial("session", "get", name, "./typed", os.path.join(self.dir, "new")), "")
        done = self.vial("session", "ls", name, "d")
        self.assert_ok(done)
        self.assertRegex(done.stdout, r"^0\d{3}\t5 B\t\S+ \S+\tin.txt\n$")
        self.assert_ok(self.vial("session", "rm", name, "in.txt", "other"), "")
        done = self.vial("session", "rm", name, "d")
        self.assertEqual(done.returncode, 2)
        self.assertIn("not empty", done.stderr)
        self.assert_ok(self.vial("session", "rm", "-r", name, "d"), "")
        self.assertEqual(self.files(name), ["empty", "out", "typed"])

    def test_trees(self):
        name = self.open()
        tree = os.path.join(self.dir, "tree")
        os.makedirs(os.path.join(tree, "a", "ä"))
        with open(os.path.join(tree, "a", "ä", "f"), "wb") as file:
            file.write(os.urandom(100000))
        with open(os.path.join(tree, "tool"), "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        os.chmod(os.path.join(tree, "tool"), 0o755)
        os.symlink("a/ä/f", os.path.join(tree, "link"))
        self.assert_ok(self.vial("session", "put", name, tree), "")
        self.assertEqual(self.files(name), ["tree", "tree/a", "tree/a/ä", "tree/a/ä/f", "tree/link", "tree/tool"])
        back = os.path.join(self.dir, "back")
        self.assert_ok(self.vial("session", "get", name, "tree/", back), "")
        self.assertEqual(subprocess.run(["diff", "-r", tree, back], check=False).returncode, 0)
        self.assertTrue(os.access(os.path.join(back, "tool"), os.X_OK))
        self.assertEqual(os.readlink(os.path.join(back, "link")), "a/ä/f")
        os.symlink("tree", os.path.join(self.dir, "latest"))
        self.assert_ok(self.vial("session", "put", name, os.path.join(self.dir, "latest")), "")
        self.assertEqual([path for path in self.files(name) if path.startswith("latest/t")], ["latest/tool"])

    def test_what_a_guest_made_stays_where_it_is_put(self):
        name = self.open()
        self.assert_ok(self.step(name, "import os\nos.mkdir('d'); os.symlink('/etc', 'd/out'); os.symlink('..', 'd/up')\n"
                                       "os.symlink('d/up/..', 'bent'); os.mkfifo('p'); open('f\\x1b[31m', 'w').close()", "-q"))
        into = os.path.join(self.dir, "into")
        done = self.vial("session", "get", name, ".", into)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out 2", done.stderr)
        self.assertEqual(sorted(os.listdir(into)), ["d", "f\x1b[31m"])
        self.assertEqual(os.listdir(os.path.join(into, "d")), ["up"])
        done = self.vial("session", "ls", name)
        self.assertNotIn("\x1b", done.stdout)
        # A link that is here already is not written through, either.
        os.symlink(self.dir, os.path.join(into, "g"))
        self.assert_ok(self.step(name, "os.mkdir('g'); open('g/x', 'w').close()", "-q"))
        done = self.vial("session", "get", name, "./", into)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("x", os.listdir(self.dir))

    def test_what_is_wrong_is_said(self):
        name = self.open()
        for words, code in ((["put", name, "/nowhere"], 2), (["get", name, "none"], 2), (["put", name, "-"], 2),
                            (["put", name], 2), (["get", name], 2), (["ls", name, "none"], 2), (["rm", name, "none"], 2),
                            (["put", name, "/dev/null", "../x"], 2), (["ls", "0" * 32], 2), (["get", "../x", "f"], 2)):
            done = self.vial("session", *words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
        self.assertEqual(self.files(name), [])

    def test_a_bar_on_a_terminal(self):
        name = self.open()
        with open(os.path.join(self.dir, "big"), "wb") as file:
            file.truncate(150 << 20)
        leader, follower = pty.openpty()
        done = subprocess.run([cli.VIAL, "session", "put", name, os.path.join(self.dir, "big")], stderr=follower,
                              env=dict(self.env, TERM="xterm"), timeout=120, check=False)
        os.close(follower)
        seen = os.read(leader, 65536).decode()
        os.close(leader)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(seen, r"big  \[#*-*\] +\d+%  .* of 150 MiB")


class Repl(test_daemon.WithDaemon):
    def test_a_script_on_standard_input(self):
        done = self.vial("repl", stdin=b"x = 6\n\ndef f(y):\n    return y * 7\n\nf(x)\nprint('out')\n(1 +\n2)\n")
        self.assert_ok(done, "42\nout\n3\n")
        self.assertEqual(self.vial("repl", stdin=b"1/0\n").returncode, 1)
        self.assertEqual(self.vial("repl", stdin=b"1/0\n2\n").returncode, 0)  # that of the last step
        wrong = self.vial("repl", stdin=b"def f(:\nprint(1)\n# a note:\nfor i in (2, 3):\n    print(i)\n"
                          b"else:\n    print(4)\n\n5\n")
        self.assertEqual((wrong.returncode, wrong.stdout), (0, "1\n2\n3\n4\n5\n"))
        self.assertIn("SyntaxError", wrong.stderr)

    def test_languages(self):
        for language, text, shown in (("javascript", b"let f = (x) => {\nreturn x * 2\n}\nf(21)\n", "42\n"),
                                      ("ruby", b"def f(x)\nx * 2\nend\nf(21)\n", ":f\n42\n"),
                                      ("bash", b"for i in 1 2; do\necho $i\ndone\n", "1\n2\n")):
            with self.subTest(language):
                self.assert_ok(self.vial("repl", "-l", language, stdin=text), shown)

    def test_its_session_goes_however_it_ends(self):
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            process = subprocess.Popen([cli.VIAL, "repl"], env={**os.environ, **self.env}, cwd=self.dir,
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            process.stdin.write(b"print('here')\n")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), b"here\n")
            self.assertEqual(len(self.sessions()), 1)
            process.send_signal(number)
            process.wait(cli.PATIENCE_S)
            self.assertEqual(process.stdout.read(), b"")  # nobody holds it
            process.stdin.close()
            process.stdout.close()
            end = time.monotonic() + cli.PATIENCE_S
            while self.sessions() and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual(self.sessions(), [])

    def sessions(self):
        return json.loads(self.vial("session", "list", "--json").stdout)

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
                               (b"\n", rb">>> $"), (b"f()\n", rb"(?s)\n5\r\n.*>>> $"),
                               (b"print(x + 2, flush=True)\n", rb"(?s)\n7\r\n.*>>> $"),
                               (b"import time; print('g' 'o', flush=True); time.sleep(60)\n", rb"\ngo\r\n"),
                               (b"\x03", rb"(?s)KeyboardInterrupt.*>>> $"),
                               (b"x\n", rb"(?s)\n5\r\n.*>>> $"), (b"half a li\x03", rb">>> $"),
                               (b"\x1b[A\n", rb"(?s)\n5\r\n.*>>> $"), (b"\x04", rb"\n"))
        self.assertEqual(status, 0)
        self.assertIn("def", self.get(".local/state/vial/history"))
        self.assertEqual(os.stat(self.path(".local/state/vial/history")).st_mode & 0o077, 0)
        self.assertEqual(self.vial("session", "list").stdout, "")
