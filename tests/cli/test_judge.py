"""vial judge: a program against files, through a daemon."""
import json
import os

import cli
import test_daemon
from test_daemon import error, lines

SQUARE = "print(int(input()) ** 2)\n"


def verdict(index, name="accepted", **more):
    return {"event": "run", "index": index, "label": None, "id": "1", "verdict": name,
            "difference": None, "error": None, "result": None, "cut": False, **more}


class Judge(test_daemon.WithDaemon):
    def setUp(self):
        super().setUp()
        self.put("square.py", SQUARE)

    def put_cases(self, **cases):
        for name, (given, wanted) in cases.items():
            self.put("t/%s.in" % name, given)
            self.put("t/%s.out" % name, wanted)

    def test_rows_and_exit_codes(self):
        self.put_cases(c10=("10", "100\n"), c2=("2\n", "4"), c9=("x", "81"))
        done = self.vial("judge", "square.py", "t")
        rows = [line.split("\t") for line in done.stdout.splitlines()]
        self.assertEqual([row[:2] for row in rows], [["c2", "accepted"], ["c9", "runtime_error"],
                                                     ["c10", "accepted"]])
        self.assertIn("ValueError", rows[1][4])
        self.assertEqual((done.returncode, done.stderr), (1, "2 of 3 accepted\n"))
        self.put("t/c9.in", "9")
        self.assertEqual(self.vial("judge", "square.py", "t").returncode, 0)
        self.assertEqual(self.vial("judge", "square.py", "t/c2.in", "t/c9.in").stderr,
                         "2 of 2 accepted\n")

    def test_what_the_daemon_refuses_has_the_name_of_its_option(self):
        self.put_cases(c1=("1", "1"))
        for words, message in ((["--compare", "bogus"], "--compare: must be exact, trimmed, tokens or floats"),
                               (["-j", "0"], "--parallel: must be a number from 1 to 16")):
            self.assert_usage(self.vial("judge", *words, "square.py", "t"), message, hint="Try 'vial judge --help'.")

    def test_what_differs(self):
        self.put_cases(a=("3", "9\n10\n"), b=("3", "\x1b[2J"))
        done = self.vial("judge", "square.py", "t")
        notes = [line.split("\t")[4] for line in done.stdout.splitlines()]
        self.assertEqual(notes, ["line 2: expected '10', got nothing more",
                                 "line 1: expected '\\x1b[2J', got '9'"])

    def test_json(self):
        self.put_cases(a=("3", "9"), b=("3", "8"))
        done = self.vial("judge", "--json", "square.py", "t")
        answer = json.loads(done.stdout)
        self.assertEqual((done.returncode, done.stderr, answer["accepted"]), (1, "", 1))
        self.assertEqual([case["verdict"] for case in answer["cases"]],
                         ["accepted", "wrong_answer"])
        self.assertEqual(answer["cases"][1]["difference"],
                         {"line": 1, "column": 1, "expected": "8", "got": "9"})

    def test_options(self):
        self.put_cases(a=("3", "9.0"), b=("4", "16"))
        judge = ("judge", "square.py", "t")
        self.assertEqual(self.vial(*judge).returncode, 1)
        self.assertEqual(self.vial("judge", "--compare", "floats", *judge[1:]).returncode, 0)
        done = self.vial("judge", "--stop", "-j", "1", *judge[1:])
        self.assertIn("b\tskipped", done.stdout)
        self.put("loop.py", "while True: pass")
        done = self.vial("judge", "-t", "0.3", "loop.py", "t")
        self.assertEqual([line.split("\t")[1] for line in done.stdout.splitlines()],
                         ["time_limit"] * 2)

    def test_bytes_that_are_no_text(self):
        self.put("cat.py", "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())")
        self.put_cases(a=(b"\xff\0\n", b"\xff\0\n"))
        self.assertEqual(self.vial("judge", "--compare", "exact", "cat.py", "t").returncode, 0)

    def test_a_person_sees_a_bar(self):
        self.put_cases(a=("3", "9"))
        status, shown = self.terminal("judge", "square.py", "t", env=self.env)
        self.assertEqual(status, 0)
        self.assertIn("CASE", shown)
        self.assertIn("] 1/1", shown)


class Wrong(test_daemon.WithSocket):
    def setUp(self):
        super().setUp()
        self.put("square.py", SQUARE)
        self.put("1.in", "1")
        self.put("1.out", "1")

    def test_command_lines(self):
        self.put("only.in")
        self.put("odd")
        os.mkdir(self.path("empty"))
        hint = "Try 'vial judge --help'."
        for words, message in ((["square.py"], "name a program, and a directory"),
                               (["nosuch.py", "1.in"], "nosuch.py"),
                               (["square.py", "only.in"], "only.in has no only.out or .ans"),
                               (["square.py", "empty"], "there is no file NAME.in"),
                               (["square.py", "1.out"], "name a directory, or files NAME.in"),
                               (["odd", "1.in"], "which language?"),
                               (["-j", "x", "square.py", "1.in"], "--parallel: 'x' is not")):
            self.assert_usage(self.vial("judge", *words), message, hint=hint)

    def test_no_daemon(self):
        done = self.vial("judge", "square.py", "1.in")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertIn("no daemon is running here (vial serve)", done.stderr)

    def test_daemons_that_are_not_what_they_should_be(self):
        start = {"event": "start", "id": "0", "runs": 1}
        self.false_daemon(error("invalid", "no"), lines(start), lines(start, verdict(1)),
                          lines(start, verdict(0), verdict(0)), lines({"event": 1}),
                          lines(start, {"event": "error", "error": {"code": "limit", "message": "slow"}}))
        for status in (cli.USAGE, cli.OURS, cli.OURS, cli.OURS, cli.OURS, cli.USAGE):
            done = self.vial("judge", "square.py", "1.in")
            self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
