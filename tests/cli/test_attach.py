"""vial session attach: a shell in a session's sandbox, as a person has it."""
import os
import subprocess

import pexpect

import cli
import test_daemon


class Attach(test_daemon.WithDaemon):
    def setUp(self):
        super().setUp()
        self.session = self.vial("session", "open").stdout.strip()
        self.addCleanup(self.vial, "session", "close", self.session)

    def attach(self):
        shell = pexpect.spawn(cli.VIAL, ["session", "attach", self.session], dimensions=(31, 97),
                              env={**os.environ, **self.env, "TERM": "vt100"},
                              timeout=cli.PATIENCE_S)
        self.addCleanup(shell.close)
        shell.expect_exact("$ ")
        shell.sendline("PS1='me''> '")
        shell.expect_exact("me> ")
        return shell

    def test_a_terminal(self):
        shell = self.attach()
        shell.sendline("stty size; echo $TERM")
        shell.expect_exact("31 97\r\nvt100\r\n")
        shell.setwinsize(40, 120)
        shell.expect_exact("me> ")
        shell.sendline("until [ \"$(stty size)\" = '40 120' ]; do sleep 0.1; done; echo si''zed")
        shell.expect_exact("sized")
        shell.expect_exact("me> ")
        shell.sendline("exit 7")
        shell.expect(pexpect.EOF)
        shell.close()
        self.assertEqual(shell.exitstatus, 7)

    def test_keys(self):
        shell = self.attach()
        shell.sendline("sh -c \"echo asl''eep; exec sleep 1000\"")  # who says so has the terminal
        shell.expect_exact("asleep")
        shell.sendintr()
        shell.expect_exact("me> ")
        shell.send("\x1d")  # Ctrl-]
        shell.expect(pexpect.EOF)
        shell.close()
        self.assertEqual(shell.exitstatus, 0)

    def test_a_program_that_draws(self):
        """One that takes the screen over, reads single keys and gives it back."""
        code = ("import curses\n"
                "def main(s):\n"
                "    s.addstr(2, 3, 'size %d %d' % s.getmaxyx()); s.refresh()\n"
                "    return s.getch()\n"
                "print('key', curses.wrapper(main))\n")
        self.vial("session", "run", "-q", "-c", "_ = open('draw.py', 'w').write(%r)" % code, self.session)
        shell = self.attach()
        shell.sendline("python3 draw.py")
        shell.expect("size 31 97")
        shell.send("q")
        shell.expect_exact("key 113")
        shell.expect_exact("me> ")

    def test_pipes(self):
        done = self.vial("session", "attach", self.session, stdin=b"echo $((6 * 7)); exit 3\n")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("42\r\n", done.stdout)

    def test_refusals(self):
        done = self.vial("session", "attach", "0" * 32)
        self.assertEqual((done.returncode, done.stdout), (cli.USAGE, ""))
        self.assertIn("there is no session", done.stderr)
        for words in ((), ("a", "b"), ("a/b",)):
            self.assert_usage(self.vial("session", "attach", *words), "name one session",
                              hint="Try 'vial session attach --help'.")
        done = self.vial("session", "attach", self.session, env={"VIAL_SOCKET": self.path("none")})
        self.assertEqual(done.returncode, cli.OURS)

    def test_the_session_ends(self):
        process = self.start("session", "attach", self.session, stdin=subprocess.PIPE)
        process.stdin.write(b"echo h''ere\n")
        process.stdin.flush()
        seen = b""
        while b"here\r\n" not in seen:
            seen += os.read(process.stdout.fileno(), 4096)
        self.vial("session", "close", self.session)
        process.stdin.close()
        self.assertEqual(process.wait(cli.PATIENCE_S), cli.OURS)
        self.assertIn(b"the session's interpreter ended", process.stderr.read())
