"""vial run, ps and kill with a daemon: one that is real, and ones that are not what they should be."""
import atexit
import base64
import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest
from unittest import mock

import cli

MARKER = "98765.1234"  # sleep for this long is nobody else's

RESULT = {"outcome": "exited", "stage": "run", "exit_code": 3, "signal": None, "timed_out": False,
          "oom": False, "limit": None, "stdout": "", "stderr": "", "stdout_dropped": 0,
          "stderr_dropped": 0, "truncated": False, "exception": None, "wall_ms": 1.5, "cpu_ms": 1,
          "compile_ms": 0, "peak_memory": 4096, "processes": 1, "files_changed": [],
          "files_changed_cut": False, "exports": []}
START = {"event": "start", "id": "7"}
HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"


def lines(*events):
    return HEAD + b"".join(json.dumps(event).encode() + b"\n" for event in events)


def output(data, stream="stdout"):
    return {"event": "output", "stream": stream, "data": data}


def result(**changes):
    return {"event": "result", "result": {**RESULT, **changes}}


def error(code, message, status="400 Bad Request", hint=None):
    body = json.dumps({"error": {"code": code, "message": message, "field": None, "hint": hint}})
    return ("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)).encode()


class FalseDaemon(threading.Thread):
    """Answers each connection with the next of `answers`, whatever it is asked; keeps what it heard."""

    def __init__(self, path, answers):
        super().__init__(daemon=True)
        self.answers, self.heard = list(answers), []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen()
        self.start()

    @staticmethod
    def read_request(link):
        data = b""
        while b"\r\n\r\n" not in data:
            data += link.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        words = [line.split(b": ", 1) for line in head.split(b"\r\n")[1:]]
        length = int(dict(words).get(b"Content-Length", 0))
        while len(body) < length:
            body += link.recv(65536)
        return head.split(b"\r\n")[0].decode(), json.loads(body) if body else None

    def end(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.join()
        self.server.close()

    def run(self):
        for answer in self.answers:
            try:
                link, _ = self.server.accept()
            except OSError:  # by end()
                return
            with link:
                self.heard.append(self.read_request(link))
                for part in answer if isinstance(answer, list) else [answer]:
                    if callable(part):
                        part()
                    else:
                        link.sendall(part)


class WithSocket(cli.Case):
    """Tests that have a socket of their own, in a directory whose name is short enough."""

    def setUp(self):
        super().setUp()
        self.socket = os.path.join(self.dir, "sock")
        self.env = {"VIAL_SOCKET": self.socket}
        clean = mock.patch.dict(os.environ)
        clean.start()
        self.addCleanup(clean.stop)
        for name in ("VIAL_CONFIG", "VIAL_NO_DAEMON"):
            os.environ.pop(name, None)

    def vial(self, *args, env=None, **more):
        return super().vial(*args, env={**self.env, **(env or {})}, **more)

    def start(self, *args, **more):
        return super().start(*args, env={**os.environ, **self.env}, **more)

    def false_daemon(self, *answers):
        daemon = FalseDaemon(self.socket, answers)
        self.addCleanup(daemon.end)
        return daemon


class Choice(WithSocket):
    """Which of the two runs it."""

    HERE = "ran here\n"

    def run_code(self, *options, **more):
        return self.code("sh", "echo ran here", *options, **more)

    def test_no_socket_is_no_daemon(self):
        self.assert_ok(self.run_code(), self.HERE)

    def test_a_socket_that_nobody_listens_on_is_no_daemon(self):
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(self.socket)
        self.assert_ok(self.run_code(), self.HERE)
        self.assert_ok(self.run_code(env={"VIAL_SOCKET": self.put("file")}), self.HERE)
        self.assert_ok(self.run_code(env={"VIAL_SOCKET": "/" + "x" * 200}), self.HERE)

    def test_a_daemon_that_is_demanded_and_not_there(self):
        done = self.run_code("--daemon")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertRegex(done.stderr, r"^vial: no daemon is running here \(vial serve\): .*\n$")

    def test_a_daemon_that_is_there_runs_it(self):
        daemon = self.false_daemon(lines(START, output("there\n"), result()))
        done = self.run_code("--memory", "64m", "-t", "1", "-t", "2", "-e", "A=1", "-e", "A=2",
                             args=("x", "-y"))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "there\n", ""))
        request, body = daemon.heard[0]
        self.assertEqual(request, "POST /v1/runs HTTP/1.0")
        self.assertEqual(body, {"language": "sh", "code": "echo ran here", "args": ["x", "-y"],
                                "env": {"A": "2"}, "files": [], "exports": [],
                                "limits": {"memory": "64m", "timeout": "2"}})

    def test_files_and_input_are_sent(self):
        self.put("prog.py", "print('ü')")
        self.put("a.txt", "text")
        self.put("b.bin", b"\xff\0")
        self.put("in", b"\0one\ntwo\n")
        daemon = self.false_daemon(*[lines(START, result(exit_code=0))] * 3)
        self.assert_ok(self.vial("run", "--file", "a.txt", "--file", "d/b=b.bin", "--export", "./*.c",
                                 "--stdin", "in", "prog.py", "arg"))
        with open(self.path("in"), "rb") as file:
            file.seek(5)
            for options in ([], ["--stdin", "-"]):
                subprocess.run([cli.VIAL, "run", *options, "prog.py"], cwd=self.dir, stdin=file,
                               env={**os.environ, **self.env}, check=True)
                self.assertEqual(os.lseek(file.fileno(), 0, os.SEEK_CUR), 5)
        bodies = [body for _, body in daemon.heard]
        self.assertEqual(bodies[0], {
            "language": "python", "code": "print('ü')", "name": "prog.py", "args": ["arg"],
            "env": {}, "limits": {}, "exports": ["*.c"], "stdin": "\0one\ntwo\n",
            "files": [{"path": "a.txt", "content": "text"},
                      {"path": "d/b", "content_base64": base64.b64encode(b"\xff\0").decode()}]})
        self.assertNotIn("stdin", bodies[1])
        self.assertEqual(bodies[2]["stdin"], "two\n")

    def test_what_the_pool_does_not_offer_is_run_here(self):
        self.false_daemon()
        self.put("conf.yaml", "{}\n")
        cases = (["--no-daemon"], ["--dir", "."], ["--workdir", "/w"],
                 ["--allow-weak", "landlock"], ["--output", "3m"], ["--config", "conf.yaml"], ["-e", b"A=\xff"],
                 ["--export", b"\xff*"], ["--stdin", "-"], ["--stdin", "/dev/zero"])
        for options in cases:
            with self.subTest(options):
                self.assert_ok(self.run_code(*options), self.HERE)
                if options != ["--no-daemon"]:
                    done = self.run_code("--daemon", *options)
                    self.assertEqual((done.returncode != 0, done.stdout), (True, ""), done.stderr)
                    self.assertIn("--daemon: ", done.stderr)
        for env in ({"VIAL_NO_DAEMON": "1"}, {"VIAL_CONFIG": self.path("conf.yaml")}):
            self.assert_ok(self.run_code(env=env), self.HERE)
        self.assert_ok(self.code("python", b"# -*- coding: latin-1 -*-\nprint(len('\xfc'))"), "1\n")
        self.assert_ok(self.run_code(args=(b"\xff",)), self.HERE)
        self.put("huge", b"x" * (65 << 20))
        self.assert_ok(self.run_code("--file", "huge"), self.HERE)

    def test_contradictions(self):
        self.assert_usage(self.run_code("--daemon", "--no-daemon"), "--daemon contradicts --no-daemon")
        self.assert_usage(self.run_code("--daemon", "--dir", "."), "--daemon: --dir")

    def test_what_the_daemon_refuses_is_run_here(self):
        self.false_daemon(error("denied", "not in this pool"), error("limit", "too large", "413 No"),
                          lines({"event": "error", "error": {"code": "invalid", "message": "odd"}}))
        for _ in range(3):
            self.assert_ok(self.run_code(), self.HERE)

    def test_a_refusal_where_the_daemon_is_demanded(self):
        self.false_daemon(error("denied", "not in this pool", hint="ask another"))
        done = self.run_code("--daemon")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (cli.OURS, "", "vial: --daemon: not in this pool; ask another\n"))

    def test_a_full_daemon_is_not_passed_by(self):
        self.false_daemon(error("busy", "256 runs wait", "429 Too Many Requests"))
        done = self.run_code()
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertEqual(done.stderr,
                         "vial: the daemon is busy (--no-daemon runs it here): 256 runs wait\n")

    def test_explain_says_which(self):
        self.assertIn("daemon\n  not used: --no-daemon\n", self.run_code("--explain", "--no-daemon").stdout)
        self.assertRegex(self.run_code("--explain").stdout,
                         r"daemon\n  not used: %s: No such file or directory\n" % self.socket)
        self.false_daemon()
        self.assertIn("daemon\n  %s runs it\n" % self.socket, self.run_code("--explain").stdout)
        self.assertIn("daemon\n  not used: --dir", self.run_code("--explain", "--dir", ".").stdout)


class NotWhatItShouldBe(WithSocket):
    """The daemon is another program: nothing that it says is taken on trust."""

    def refused(self, answer, *says, options=()):
        self.false_daemon(answer)
        done = self.code("sh", "echo ran here", *options)
        os.unlink(self.socket)
        self.assertEqual(done.returncode, cli.OURS, done.stderr)
        self.assertNotIn("ran here", done.stdout)
        self.assertRegex(done.stderr, r"^vial: [^\n]*\n$")
        for fragment in says:
            self.assertIn(fragment, done.stderr)

    def test_answers_that_are_none(self):
        unknown = "how the program ended is not known: "
        cases = (
            (b"", "the daemon went away"),
            (b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP"),
            (b"HTTP/1.1 2\r\n\r\n", "does not speak HTTP"),
            (b"x" * 100000, "does not speak HTTP"),
            (HEAD[:-2] + b"Transfer-Encoding: chunked\r\n\r\n", "encodes"),
            (HEAD, "the daemon went away"),
            (HEAD + b"{}", "broke off"),
            (HEAD + b"{}\n", "has no 'event'"),
            (HEAD + b"[1]\n", "does not speak JSON"),
            (HEAD + b"{} {}\n", "does not speak JSON"),
            (HEAD + b'{"event": "\xff"}\n', "does not speak JSON"),
            (HEAD + b"[" * 1000 + b"\n", "does not speak JSON"),
            (lines({"event": 1}), "'event' that is no string"),
            (lines({"event": "start", "id": "../x"}), "no proper id"),
            (lines(START), "the daemon went away"),
            (lines(START, output("x", "stdlog")), "a stream 'stdlog'"),
            (lines(START, {"event": "output", "stream": "stdout"}), "has no 'data'"),
            (lines(START, {"event": "output", "stream": "stdout", "data_base64": "!"}), "base64"),
            (lines(START) + json.dumps(result()).encode(), "broke off"),
        )
        for answer, says in cases:
            with self.subTest(answer[:60]):
                self.refused(answer, unknown, says)

    def test_results_that_are_none(self):
        cases = ({"outcome": "flew"}, {"exit_code": 256}, {"exit_code": -1}, {"exit_code": "0"},
                 {"signal": 1000}, {"timed_out": 0}, {"wall_ms": -1}, {"wall_ms": None},
                 {"peak_memory": 1.5}, {"limit": 3}, {"stage": "a\0b"}, {"exception": {}},
                 {"files_changed": {}}, {"files_changed": [1]}, {"exports": [{"path": "a"}]},
                 {"exports": [{"path": "a\0", "size": 1, "content_base64": ""}]},
                 {"exports": [{"path": "a", "size": 1, "content_base64": "x"}]},
                 {"stdout_dropped": -1})
        for changes in cases:
            with self.subTest(changes):
                self.refused(lines(START, result(**changes)), "how the program ended is not known: ")

    def test_a_failure_after_the_start_is_final(self):
        says = {"event": "error", "error": {"code": "sys", "message": "the pool broke", "hint": None}}
        self.refused(lines(START, says), "vial: the pool broke\n")
        self.refused(error("bug", "broken", "500 Internal Server Error"), "vial: daemon: broken\n")

    def test_an_error_controls_no_terminal(self):
        self.refused(error("bug", "a\x1b[2Jb\n", "500 No"), "a\\x1b[2Jb\\n")

    def test_events_of_the_future_are_passed_over(self):
        self.false_daemon(lines({"event": "weather"}, START, output("x"), {"event": "z"}, result()))
        done = self.code("sh", "echo ran here")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "x", ""))

    def test_exports_stay_in_their_directory(self):
        def export(path):
            return {"path": path, "size": 1, "content_base64": base64.b64encode(b"!").decode()}
        os.mkdir(self.path("out"))
        os.symlink(self.dir, self.path("out/link"))
        self.false_daemon(lines(START, result(exit_code=0, exports=[
            export("../up"), export(self.path("absolute")), export("link/through"), export("good")])))
        done = self.code("sh", "", "--export", "*", "--export-to", "out")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertEqual(done.stderr.count("not saved"), 3, done.stderr)
        self.assertEqual(self.get("out/good"), "!")
        self.assertEqual(sorted(os.listdir(self.dir)), ["out", "sock"])

    def test_lists_that_are_none(self):
        self.false_daemon(HEAD + b"{}", HEAD + b'{"runs": [{"id": 1}]}', error("bug", "no", "500 No"))
        for says in ("no 'runs'", "'id' that is no string", "vial: no\n"):
            done = self.vial("ps")
            self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
            self.assertIn(says, done.stderr)


class Verbs(WithSocket):
    def test_without_a_daemon(self):
        for verb in (["ps"], ["ps", "--json"], ["kill", "1"], ["kill", "--all"]):
            done = self.vial(*verb)
            self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
            self.assertRegex(done.stderr, r"^vial: no daemon is running here \(vial serve\): .*\n$")

    def test_usage(self):
        self.assert_usage(self.vial("ps", "x"), "unexpected argument", hint="Try 'vial ps --help'.")
        hint = "Try 'vial kill --help'."
        self.assert_usage(self.vial("kill"), "which run?", hint=hint)
        self.assert_usage(self.vial("kill", "--all", "1"), "--all", hint=hint)
        self.assert_usage(self.vial("kill", "../1"), "'../1' is not the id of a run", hint=hint)

    def test_what_ps_shows(self):
        runs = [{"id": "12", "environment": "python", "state": "running", "seconds": 1.25,
                 "memory": 9 << 20},
                {"id": "13", "environment": "sh", "state": "waiting", "seconds": 0, "memory": None}]
        self.false_daemon(*[HEAD + json.dumps({"runs": runs}).encode()] * 3)
        self.assert_ok(self.vial("ps"), "12\tpython\trunning\t1.3 s\t9 MiB\n13\tsh\twaiting\t0 ms\t-\n")
        self.assertEqual(json.loads(self.vial("ps", "--json").stdout), runs)
        code, seen = self.terminal("ps", env=self.env)
        self.assertEqual(code, 0)
        self.assertIn("ENVIRONMENT", seen)

    def test_kill_all_passes_over_what_has_ended(self):
        runs = {"runs": [{"id": "1"}, {"id": "2"}]}
        daemon = self.false_daemon(HEAD + json.dumps(runs).encode(), error("gone", "x", "404 Not Found"),
                                   HEAD + b"{}")
        self.assert_ok(self.vial("kill", "--all"), "")
        self.assertEqual([line for line, _ in daemon.heard],
                         ["GET /v1/runs HTTP/1.0", "DELETE /v1/runs/1 HTTP/1.0",
                          "DELETE /v1/runs/2 HTTP/1.0"])

    def test_kill_of_what_is_not_there(self):
        self.false_daemon(error("gone", "x", "404 Not Found"), HEAD + b"{}")
        done = self.vial("kill", "8", "9")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (1, "", "vial: 8: no such run\n"))


class Daemon:
    """`vial serve` on a socket of its own."""

    def __init__(self, *options):
        self.dir = tempfile.mkdtemp(prefix="vial-serve-")
        self.socket = os.path.join(self.dir, "sock")
        with open(os.path.join(self.dir, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [cli.VIAL, "serve", "--socket", self.socket, "--listen", "none", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "STATE_DIRECTORY": os.path.join(self.dir, "state")})
        if not cli.wait_until(lambda: self.process.poll() is not None or "vial run" in self.said()) \
                or self.process.poll() is not None:
            said = self.said().strip()
            self.end(signal.SIGKILL)
            raise unittest.SkipTest("vial serve does not start: " + said)

    def said(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8") as log:
            return log.read()

    def count_runs(self):
        """How many its pool has had."""
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(self.socket)
            link.sendall(b"GET /v1/environments HTTP/1.0\r\nHost: vial\r\n\r\n")
            answer = b"".join(iter(lambda: link.recv(65536), b""))
        found = json.loads(answer.split(b"\r\n\r\n", 1)[1])["environments"]
        return sum(environment["pool"]["runs"] for environment in found)

    def refuses(self):
        with socket.socket(socket.AF_UNIX) as link:
            return link.connect_ex(self.socket) in (errno.ECONNREFUSED, errno.ENOENT)

    def end(self, *signals):
        for i, number in enumerate(signals or [signal.SIGTERM]):
            if i:  # two at once would be one
                cli.wait_until(self.refuses)
            self.process.send_signal(number)
        status = self.process.wait(cli.PATIENCE_S)
        shutil.rmtree(self.dir)
        return status


class WithDaemon(WithSocket):
    """Tests that share one daemon."""

    daemon = None

    def setUp(self):
        super().setUp()
        if not WithDaemon.daemon:
            WithDaemon.daemon = Daemon("--armed", "2")
            atexit.register(WithDaemon.end_daemon)
        self.socket = self.env["VIAL_SOCKET"] = self.daemon.socket
        self.assertTrue(self.gone())

    @staticmethod
    def end_daemon():
        if WithDaemon.daemon:
            WithDaemon.daemon.end()
            WithDaemon.daemon = None

    def gone(self):
        return cli.wait_until(lambda: not cli.processes(MARKER))

    def started(self):
        return cli.wait_until(lambda: cli.processes(MARKER))

    def runs(self):
        return json.loads(self.vial("ps", "--json").stdout)


class SameResult(WithDaemon):
    """What comes of a run does not tell which way it went."""

    MEASURED = ("wall_ms", "cpu_ms", "compile_ms", "peak_memory")
    PROGRAMS = {  # name: language, code, options, arguments
        "output": ("python", "import sys\nprint('out ü')\nprint('err', file=sys.stderr)"),
        "exit code": ("sh", "exit 7"),
        "exception": ("python", "def f():\n    raise KeyError('nö')\nf()"),
        "syntax": ("python", "def f(:"),
        "exception of javascript": ("javascript", "function f() { throw new TypeError('x') }\nf()"),
        "exception of ruby": ("ruby", "def f\n  raise ArgumentError, 'x'\nend\nf"),
        "signal": ("sh", "kill -SEGV $$"),
        "timeout": ("python", "while True: pass", "--timeout", "300ms"),
        "cpu time": ("python", "while True: pass", "--cpu-time", "300ms"),
        "memory": ("python", "x = bytearray(1 << 30)\nx[::4096] = x[::4096]", "--memory", "64m"),
        "cut": ("python", "print('x' * 5000, end='')", "--output", "1000"),
        "bytes": ("python", "import os; os.write(1, bytes(range(256)) * 300); os.write(2, b'\\xff')"),
        "NULs": ("sh", r"printf 'a\\0b'"),
        "changed files": ("sh", "mkdir d; echo 1 >d/a; echo 22 >b; ln -s b c"),
        "environment": ("sh", "env | sort; pwd; id", "-e", "A=ü b", "-e", "A=last"),
        "interpreter": ("python", "import sys, os\nprint(sys.argv, sys.flags, sys.path, __file__, "
                        "os.getcwd(), sorted(os.environ.items()), os.getuid())"),
        "compiled": ("c", '#include <stdio.h>\nint main(void) { puts("compiled"); return 3; }'),
        "compiler's error": ("c", "int main(void) { return x; }"),
        "forks": ("python", "import os\npid = os.fork()\nprint('child' if pid == 0 else "
                  "os.waitpid(pid, 0)[1])"),
        "empty": ("python", ""),
        "missing module": ("python", "import nothing_of_this_name"),
        "sys.exit": ("python", "import sys; sys.exit('goodbye')"),
    }

    def test_json(self):
        here = cli.languages()
        for name, (language, code, *options) in self.PROGRAMS.items():
            with self.subTest(name):
                if language not in here:
                    self.skipTest(language + " is not installed")
                (there, status), (local, local_status) = (
                    self.result(language, code, way, *options, args=("one", "two ü"))
                    for way in ("--daemon", "--no-daemon"))
                for key in self.MEASURED:  # a whole number of milliseconds is written without a point
                    for said in (there, local):
                        self.assertIsInstance(said.pop(key), (int, float), key)
                self.assertEqual(there, local)
                self.assertEqual(status, local_status)

    def test_output_and_messages(self):
        for name in ("output", "exit code", "exception", "signal", "cut", "bytes", "memory", "timeout"):
            language, code, *options = self.PROGRAMS[name]
            with self.subTest(name):
                there, here = (self.code(language, code, way, *options)
                               for way in ("--daemon", "--no-daemon"))
                self.assertEqual((there.returncode, there.stdout), (here.returncode, here.stdout))
                self.assertEqual(*(re.sub(r"\d+ ms", "N ms", done.stderr) for done in (there, here)))

    def test_files_input_and_exports(self):
        self.put("in.txt", "input\n")
        self.put("lib/helper.py", "def f(): return 'helped'\n")
        self.put("data.bin", bytes(range(256)))
        self.put("prog.py", "import sys, helper\nprint(helper.f(), sys.stdin.read())\n"
                 "data = open('d/data.bin', 'rb').read()\nopen('out.bin', 'wb').write(data[::-1])\n"
                 "open('d/more.txt', 'w').write('ü')\n")
        results = []
        for way in ("--daemon", "--no-daemon"):
            to = self.path(way)
            done = self.vial("run", way, "--json", "--file", "lib/helper.py", "--file",
                             "d/data.bin=data.bin", "--stdin", "in.txt", "--export", "*.bin", "--export",
                             "d/more.txt", "--export", "missing", "--export-to", to, "prog.py")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            result = json.loads(done.stdout.replace(to, "TO"))
            results.append({key: result[key] for key in result if key not in self.MEASURED})
            with open(os.path.join(to, "out.bin"), "rb") as file:
                self.assertEqual(file.read(), bytes(range(256))[::-1])
            self.assertEqual(self.get(way, "d/more.txt"), "ü")
        self.assertEqual(results[0], results[1])
        self.assertEqual(len(results[0]["exports"]), 3)

    def test_a_file_in_the_way_of_another(self):
        self.put("f", "x")
        for way in ("--daemon", "--no-daemon"):
            for names in (("a", "a/b"), ("a/b", "a")):
                with self.subTest(way=way, names=names):
                    self.assert_usage(self.code("sh", "ls", way, *(word for name in names for word in (
                        "--file", name + "=f"))), names[1] + ": another file is in its way")

    def test_odd_names_of_programs(self):
        programs = {"py": "import sys\nprint(sys.argv, __file__, sys.path[0])\n1 / 0\n",
                    "rb": "p $0, __FILE__, ARGV\nraise 'x'\n", "js": "console.log(process.argv); f()\n", "sh": "echo $0 $@\n"}
        here = cli.languages()
        for end, language in (("py", "python"), ("rb", "ruby"), ("js", "javascript"), ("sh", "sh")):
            for name in ("[x].", "-y.", "+z.", "@a.", ".b.", "a b."):
                with self.subTest(name + end):
                    if language not in here:
                        self.skipTest(language + " is not installed")
                    self.put(name + end, programs[end])
                    there, local = (self.vial("run", way, "--", "./" + name + end, "one")
                                    for way in ("--daemon", "--no-daemon"))
                    self.assertIn("one", there.stdout)
                    self.assertEqual((there.returncode, there.stdout, there.stderr),
                                     (local.returncode, local.stdout, local.stderr))

    def test_a_pattern_is_of_characters(self):
        for way in ("--daemon", "--no-daemon"):
            to = self.path(way)
            self.assert_ok(self.code("python", "for name in ('é.md', 'ab.md', 'c.md'): open(name, 'w')", way,
                                     "--export", "?.md", "--export-to", to, env={**os.environ, "LC_ALL": "C"}), "")
            self.assertEqual(sorted(os.listdir(to)), ["c.md", "é.md"])

    def test_an_export_is_saved_under_any_name(self):
        for way in ("--daemon", "--no-daemon"):
            done = self.code("python", r"open(b'a\xff', 'w').write('x'); open('n\n', 'w')", way,
                             "--export", "*", "--export-to", way)
            self.assert_ok(done, "")
            self.assertEqual(sorted(os.listdir(self.path(way).encode())), [b"a\xff", b"n\n"])

    def test_each_run_is_its_own(self):
        marks = {self.code("python", "import random, uuid, os\nprint(random.random(), uuid.uuid4(), "
                           "os.listdir('/tmp'), os.listdir('.'))\nopen('/tmp/x', 'w')\nopen('y', 'w')",
                           "--daemon").stdout for _ in range(8)}
        self.assertEqual(len(marks), 8)
        self.assertEqual({mark.split("[", 1)[1] for mark in marks}, {"] ['main.py']\n"})


class UnderWay(WithDaemon):
    """While a program runs at the daemon."""

    SLEEPER = "echo up; sleep %s & wait" % MARKER

    def start_sleeper(self, *options):
        process = self.start("run", "--daemon", *options, "-l", "sh", "-c", self.SLEEPER)
        self.assertTrue(self.started())
        return process

    def test_output_comes_as_it_is_written(self):
        for number, stream in ((1, "stdout"), (2, "stderr")):
            with self.subTest(stream):
                process = self.start("run", "--daemon", "-l", "sh", "-c",
                                     "echo ready >&%d; sleep %s" % (number, MARKER))
                self.assertEqual(getattr(process, stream).readline(), b"ready\n")
                self.assertTrue(self.started())
                process.send_signal(signal.SIGINT)
                process.wait(cli.PATIENCE_S)
                self.assertTrue(self.gone())

    def test_output_keeps_its_order(self):
        code = "import sys\nfor i in range(200):\n    print(i, file=(sys.stdout, sys.stderr)[i % 2], " \
               "flush=True)"
        done = subprocess.run([cli.VIAL, "run", "--daemon", "-l", "python", "-c", code],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                              env={**os.environ, **self.env})
        self.assertEqual(done.stdout.split(), [b"%d" % i for i in range(0, 200, 2)])

    def test_signals_end_the_run_and_are_our_exit_code(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number.name):
                process = self.start_sleeper()
                self.assertEqual(process.stdout.readline(), b"up\n")
                process.send_signal(number)
                self.assertEqual(process.wait(cli.PATIENCE_S), 128 + number)
                self.assertEqual(process.stderr.read(), b"")
                self.assertTrue(self.gone())

    def test_a_cancelled_run_has_a_result(self):
        process = self.start_sleeper("--json")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signal.SIGTERM)
        found = json.loads(process.stdout.read())
        self.assertEqual((found["outcome"], found["stdout"]), ("cancelled", "up\n"))

    def test_a_client_that_is_killed_takes_the_run_along(self):
        process = self.start_sleeper()
        process.kill()
        process.wait()
        self.assertTrue(self.gone())
        self.assertTrue(cli.wait_until(lambda: self.runs() == []))

    def test_a_reader_that_goes_away_ends_the_run_quietly(self):
        process = self.start("run", "--daemon", "-l", "sh", "-c", "sleep %s & yes" % MARKER)
        self.assertEqual(process.stdout.read(2), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(cli.PATIENCE_S), 128 + signal.SIGPIPE)
        self.assertEqual(process.stderr.read(), b"")
        self.assertTrue(self.gone())

    def test_a_reader_that_sleeps_does_not_stop_the_clock(self):
        process = self.start("run", "--daemon", "-l", "sh", "--output", "2m", "--timeout", "4", "-c",
                             "sleep %s & yes" % MARKER)
        self.assertTrue(self.started())
        self.assertTrue(self.gone(), "nobody reads, and the guest lives on")
        self.assertGreater(len(process.stdout.read()), 100000)
        self.assertEqual(process.wait(cli.PATIENCE_S), cli.TIMEOUT)

    def test_ps_shows_it_and_kill_ends_it(self):
        process = self.start_sleeper()
        self.assertTrue(cli.wait_until(lambda: len(self.runs()) == 1))  # one of before may still end
        run, = self.runs()
        self.assertEqual((run["environment"], run["state"]), ("sh", "running"))
        self.assertGreater(run["seconds"], 0)
        self.assert_ok(self.vial("kill", run["id"]), "")
        self.assertEqual(process.wait(cli.PATIENCE_S), cli.KILLED)
        self.assertEqual(process.stderr.read(), b"vial: killed by request (vial kill)\n")
        self.assertTrue(self.gone())
        self.assertTrue(cli.wait_until(lambda: self.runs() == []))
        done = self.vial("kill", run["id"])
        self.assertEqual((done.returncode, done.stderr), (1, "vial: %s: no such run\n" % run["id"]))

    def test_kill_all(self):
        sleepers = [self.start_sleeper() for _ in range(3)]
        self.assertTrue(cli.wait_until(lambda: len(self.runs()) == 3))
        self.assert_ok(self.vial("kill", "--all"), "")
        for process in sleepers:
            self.assertEqual(process.wait(cli.PATIENCE_S), cli.KILLED)
        self.assertTrue(self.gone())


class Serve(WithSocket):
    def test_usage(self):
        hint = "Try 'vial serve --help'."
        for options, says in ((["x"], "unexpected argument"), (["--max", "0"], "--max: must be 1 to 2048"),
                              (["--armed", "x"], "'x' is not a whole number"),
                              (["--queue", "1000000"], "queue: must be 0 to 100000"),
                              (["--listen", "example.com:80"], "a numeric address"),
                              (["--set", "armd=1"], "did you mean 'armed'?"),
                              (["--set", "armed"], "'armed' is not KEY=VALUE"),
                              (["--listen", "127.0.0.1"], "not ADDRESS:PORT"),
                              (["--listen", "127.0.0.1:0"], "not ADDRESS:PORT"),
                              (["--listen", "127.0.0.1:70000"], "not ADDRESS:PORT"),
                              (["--listen", "::1:80"], "not ADDRESS:PORT"),
                              (["--socket", "/" + "x" * 200], "--socket")):
            with self.subTest(options):
                self.assert_usage(self.vial("serve", *options), says, hint=hint)

    def test_without_tokens_nobody_else_can_reach_it(self):
        for address in ("0.0.0.0:6011", "[::]:6011", "192.0.2.1:6011"):
            with self.subTest(address):
                done = self.vial("serve", "--listen", address, "--set", "allow_plain=true")
                self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
                self.assertIn("only loopback addresses", done.stderr)
        done = self.vial("serve", "--listen", "0.0.0.0:6011")
        self.assertEqual(done.returncode, cli.OURS)
        self.assertIn("write https://, or set allow_plain", done.stderr)

    def test_it_says_where_it_listens_and_how_to_try_it(self):
        daemon = Daemon()
        self.addCleanup(daemon.end)
        said = daemon.said()
        self.assertIn("vial is ready on %s\n" % daemon.socket, said)
        self.assertIn("VIAL_SOCKET=%s %s run" % (daemon.socket, cli.VIAL), said)  # as it was called
        path = os.path.dirname(cli.VIAL) + ":" + os.environ["PATH"]
        examples = [line for line in said.splitlines() if line.startswith("  ")]
        self.assertEqual(len(examples), 2)
        for line in examples:
            done = subprocess.run(["sh", "-c", line], env={**os.environ, "PATH": path}, text=True,
                                  capture_output=True, check=True)
            self.assertIn("42", done.stdout)

    def test_a_daemon_that_is_killed_is_an_error_and_no_second_run(self):
        for signals in ((signal.SIGKILL,), (signal.SIGTERM, signal.SIGTERM)):
            with self.subTest(signals):
                daemon = Daemon("--armed", "1")
                self.env["VIAL_SOCKET"] = daemon.socket
                process = self.start("run", "-l", "sh", "-c", "echo up; sleep %s" % MARKER)
                self.assertEqual(process.stdout.readline(), b"up\n")
                daemon.end(*signals)
                self.assertEqual(process.wait(cli.PATIENCE_S), cli.OURS)
                self.assertRegex(process.stderr.read(), rb"^vial: [^\n]+\n$")
                self.assertEqual(process.stdout.read(), b"")
                self.assertTrue(cli.wait_until(lambda: not cli.processes(MARKER)))

    def test_a_daemon_that_is_told_to_end_finishes_what_runs(self):
        daemon = Daemon("--armed", "1")
        self.env["VIAL_SOCKET"] = daemon.socket
        process = self.start("run", "-l", "sh", "-c", "echo up; sleep 0.5; echo done")
        self.assertEqual(process.stdout.readline(), b"up\n")
        self.assertEqual(daemon.end(), 0)
        self.assertEqual((process.wait(cli.PATIENCE_S), process.stdout.read()), (0, b"done\n"))
        self.assert_ok(self.code("sh", "echo here"), "here\n")

    def test_a_full_daemon(self):
        daemon = Daemon("--armed", "1", "--max", "1", "--queue", "1")
        self.addCleanup(daemon.end)
        self.env["VIAL_SOCKET"] = daemon.socket
        first = self.start("run", "-l", "sh", "-c", "echo up; sleep %s" % MARKER)
        self.assertEqual(first.stdout.readline(), b"up\n")
        second = self.start("run", "-l", "sh", "-c", "echo second")
        states = lambda: [run["state"] for run in json.loads(self.vial("ps", "--json").stdout)]
        self.assertTrue(cli.wait_until(lambda: sorted(states()) == ["running", "waiting"]))
        done = self.code("sh", "echo third")
        self.assertEqual((done.returncode, done.stdout), (cli.OURS, ""))
        self.assertRegex(done.stderr, r"^vial: the daemon is busy \(--no-daemon runs it here\): .*\n$")
        self.assert_ok(self.code("sh", "echo here", "--no-daemon"), "here\n")
        first.send_signal(signal.SIGINT)
        self.assertEqual(first.wait(cli.PATIENCE_S), 128 + signal.SIGINT)
        self.assertEqual(second.wait(cli.PATIENCE_S), 0)
        self.assertEqual(second.stdout.read(), b"second\n")
