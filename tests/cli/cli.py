"""cli - what the tests of the command line share."""
import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
import patience

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VIAL = BUILD = None  # set by `run`
PATIENCE_S = 120     # a hang, not a measure of speed
USAGE, TIMEOUT, OURS, KILLED = 2, 124, 125, 137


class Case(unittest.TestCase):
    """A test in an empty directory of its own."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vial-cli-")
        os.chmod(self.dir, 0o755)
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def put(self, name, text=""):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def get(self, *names):
        with open(self.path(*names), encoding="utf-8") as file:
            return file.read()

    def vial(self, *args, stdin=b"", env=None, **more):
        """Run vial to its end; stdout and stderr are text, odd bytes as surrogates."""
        done = subprocess.run([VIAL, *args], input=stdin, cwd=self.dir, capture_output=True,
                              timeout=PATIENCE_S, env=dict(os.environ, **(env or {})), check=False,
                              **more)
        done.stdout = done.stdout.decode("utf-8", "surrogateescape")
        done.stderr = done.stderr.decode("utf-8", "surrogateescape")
        return done

    def code(self, language, text, *options, args=(), **more):
        return self.vial("run", "-l", language, *options, "-c", text, "--", *args, **more)

    def start(self, *args, **more):
        """Run vial without waiting for it."""
        process = subprocess.Popen([VIAL, *args], cwd=self.dir, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, **more)
        self.addCleanup(self._end, process)
        return process

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()

    def result(self, language, text, *options, **more):
        """The object that --json prints, and the exit code."""
        done = self.code(language, text, "--json", *options, **more)
        self.assertEqual(done.stdout.count("\n"), 1, done.stderr)
        return json.loads(done.stdout), done.returncode

    def assert_ok(self, done, stdout=None):
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        if stdout is not None:
            self.assertEqual(done.stdout, stdout)

    def assert_usage(self, done, *fragments, hint="Try 'vial run --help'."):
        """One clear line, where to read more, exit 2, and nothing was run."""
        lines = done.stderr.split("\n")
        self.assertEqual((done.returncode, done.stdout), (USAGE, ""), done.stderr)
        self.assertEqual(lines[1:], [hint, ""], done.stderr)
        self.assertTrue(lines[0].startswith("vial: "), lines[0])
        for fragment in fragments:
            self.assertIn(fragment, lines[0])

    def terminal(self, *args, env=None, only_stderr=False):
        """Run vial with its output on a terminal: (exit code, what the terminal got)."""
        master, slave = pty.openpty()
        variables = {**os.environ, "TERM": "xterm", "LC_ALL": "C.UTF-8", "NO_COLOR": "",
                     **(env or {})}
        process = subprocess.Popen([VIAL, *args], cwd=self.dir, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL if only_stderr else slave,
                                   stderr=slave, env=variables)
        os.close(slave)
        seen = b""
        try:
            while select.select([master], [], [], PATIENCE_S)[0]:
                seen += os.read(master, 65536)
        except OSError:  # nobody holds the other side any more
            pass
        os.close(master)
        text = seen.decode("utf-8", "surrogateescape")
        return process.wait(PATIENCE_S), text.replace("\r\n", "\n")


def flags(verb="run"):
    """{long flag: help text} as `vial VERB --help` lists them."""
    text = subprocess.run([VIAL, *verb.split(), "--help"], capture_output=True, text=True, check=True).stdout
    found = {}
    for block in re.split(r"\n(?=  (?:-\w, |    )--)", text)[1:]:
        name = re.match(r"  (?:-\w, |    )--([\w-]+)", block).group(1)
        found[name] = " ".join(block.split("\n\n")[0].split())
    return found


def processes(marker):
    """Processes of this machine whose command line holds `marker`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words and int(pid) != os.getpid():
            found.append(int(pid))
    return found


def wait_until(condition):
    return patience.wait_until(condition, PATIENCE_S)


def languages():
    """The languages installed here, by name."""
    text = subprocess.run([VIAL, "languages", "--json"], capture_output=True, text=True,
                          check=True).stdout
    return {row["name"]: row for row in json.loads(text) if row["tool"]}


def needs(language):
    """Skip a test where a language is not installed."""
    def wrap(test):
        def checked(self):
            if language not in languages():
                self.skipTest(language + " is not installed")
            test(self)
        checked.__name__ = test.__name__
        return checked
    return wrap
