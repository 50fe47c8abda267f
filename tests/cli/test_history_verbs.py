"""vial history, vial logs: with a daemon that is real."""
import json
import os
import subprocess

import cli
import test_daemon


class History(test_daemon.WithDaemon):
    def run_one(self, code, language="python"):
        """Its id."""
        self.vial("run", "--daemon", "-l", language, "-c", code)
        return json.loads(self.vial("history", "-n", "1", "--json").stdout)[0]["id"]

    def rows(self, *options):
        done = self.vial("history", *options)
        self.assert_ok(done)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def test_list(self):
        well = self.run_one("print(1)")
        badly = self.run_one("x = {}\nx['k']  # mark-one")
        rows = {row[0]: row[2:] for row in self.rows()}
        self.assertEqual(rows[well][:3], ["run", "python", "exit 0"])
        self.assertEqual(rows[badly][2:][0], "exit 1")
        self.assertEqual(rows[badly][-1], "KeyError: 'k'")
        self.assertNotIn(well, [row[0] for row in self.rows("--failed")])
        self.assertEqual([row[0] for row in self.rows("-g", "MARK-ONE", "--since", "1h")], [badly])
        self.assertEqual(self.rows("-g", "mark-one", "--until", "1999-12-31"), [])
        self.assertEqual(len(self.rows("-n", "1")), 1)
        self.assertEqual(self.rows("-E", "no-such"), [])

    def test_of_another_tenant(self):
        name = self.run_one("print('mine')")
        self.assertEqual(self.rows("--tenant", "nobody"), [])
        self.assertIn(name, [row[0] for row in self.rows("--tenant", "local")])
        self.assert_ok(self.vial("history", "--tenant", "local", name))
        self.assertEqual(self.vial("history", "--tenant", "nobody", name).returncode, 2)

    def test_one(self):
        name = self.run_one("x = 1\nprint(y)")
        done = self.vial("history", name)
        self.assert_ok(done)
        self.assertRegex(done.stdout, r"(?m)^category +name$")
        self.assertIn(">    2  print(y)\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^suggestion +define 'y' before this line")
        record = json.loads(self.vial("history", "--json", name).stdout)
        self.assertEqual((record["code"], record["diagnosis"]["line"]), ("x = 1\nprint(y)", 2))

    def test_what_a_guest_says_controls_nothing(self):
        name = self.run_one("raise ValueError('\\x1b]0;owned\\x07')")
        for options in ((), (name,)):
            self.assertNotIn("\x1b", self.vial("history", *options).stdout)

    def test_logs(self):
        name = self.run_one("import sys; print('to out'); print('to err', file=sys.stderr)")
        done = self.vial("logs", name)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "to out\n", "to err\n"))
        self.assertRegex(self.vial("logs", "-n", "1").stdout, r"^==> %s python .*: exit 0 <==\nto out\n$" % name)

    def test_logs_of_a_session(self):
        session = self.vial("session", "open").stdout.strip()
        self.addCleanup(self.vial, "session", "close", session)
        for n in (1, 2):
            self.vial("session", "run", "-c", "print('step %d')" % n, session)
        said = [line for line in self.vial("logs", session).stdout.splitlines() if "==>" not in line]
        self.assertEqual(said, ["step 1", "step 2"])
        self.assertEqual(len(self.rows("-s", session)), 2)

    def test_follow(self):
        self.run_one("print('before')")
        with subprocess.Popen([cli.VIAL, "logs", "-f", "-n", "1"], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "VIAL_SOCKET": self.daemon.socket}) as process:
            try:
                self.assertIn("==>", process.stdout.readline())
                self.assertEqual(process.stdout.readline(), "before\n")
                self.run_one("print('meanwhile')")
                self.assertIn("==>", process.stdout.readline())
                self.assertEqual(process.stdout.readline(), "meanwhile\n")
            finally:
                process.kill()

    def test_what_is_not_there(self):
        for words in (("history", "nosuch"), ("logs", "nosuch"), ("history", "a/b"), ("history", "-n", "0"),
                      ("logs", "-n", "101"), ("history", "--since", "soon"), ("history", "1", "2")):
            done = self.vial(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertRegex(done.stderr, r"^vial: .+\nTry 'vial %s --help'\.\n$" % words[0], words)
