"""vial top: frames of a daemon's metrics, and a terminal that is given back."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time

import cli

PAGE = """# HELP vial_build_info x
# TYPE vial_build_info gauge
vial_build_info{{version="9.8.7"}} 1
vial_ready {ready}
process_start_time_seconds {start}
vial_runs_total{{kind="run",outcome="exited",environment="python"}} {runs}
vial_runs_total{{kind="step",outcome="timed_out",environment="python"}} 2
vial_queue_length 7
vial_queue_limit 256
vial_pool_sandboxes{{environment="python",state="armed"}} 4
vial_pool_sandboxes{{environment="python",state="running"}} 3
vial_pool_admitted_total{{environment="python"}} {runs}
vial_pool_hits_total{{environment="python"}} {runs}
vial_http_refused_total{{reason="busy"}} 5
vial_run_wait_seconds_bucket{{environment="python",le="0.5"}} {runs}
vial_run_wait_seconds_bucket{{environment="python",le="1"}} {runs}
vial_run_wait_seconds_bucket{{environment="python",le="+Inf"}} {runs}
vial_run_wait_seconds_count{{environment="python"}} {runs}
vial_pool_admitted_total{{environment="evil\\n\x1b[2J"}} 1
"""


class Metrics(threading.Thread):
    """A daemon that has nothing but metrics; each page has 100 runs more."""

    def __init__(self, path, answer=None):
        super().__init__(daemon=True)
        self.answer, self.runs = answer, 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(path)
        self.server.listen()
        self.start()

    def run(self):
        while True:
            try:
                link, _ = self.server.accept()
            except OSError:
                return
            with link:
                link.recv(65536)
                self.runs += 100
                page = PAGE.format(runs=self.runs, start=time.time() - 100, ready=1)
                link.sendall(self.answer or b"HTTP/1.1 200 OK\r\n\r\n" + page.encode())

    def close(self):
        if self.server.fileno() >= 0:
            self.server.shutdown(socket.SHUT_RDWR)
            self.server.close()


class Top(cli.Case):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "s")
        self.env = {**os.environ, "VIAL_SOCKET": self.path, "TERM": "xterm", "NO_COLOR": ""}

    def daemon(self, answer=None):
        made = Metrics(self.path, answer)
        self.addCleanup(made.close)
        return made

    def top(self, *args):
        return subprocess.run([cli.VIAL, "top", *args], env=self.env, capture_output=True, text=True,
                              timeout=cli.PATIENCE_S, check=False)

    def test_one_frame(self):
        self.daemon()
        done = self.top("--once")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"^vial 9\.8\.7  up 1m 4\ds  ready  \(rates since its start\)\n")
        self.assertIn("exited 100, timed_out 2\n", done.stdout)
        self.assertIn("queue      7 of 256\n", done.stdout)
        self.assertIn("running 3  armed 4", done.stdout)
        self.assertIn("refused: busy 5\n", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^python +1\.0 +3 +4 +0 +100%")
        self.assertRegex(done.stdout, r"(?m)^wait +python +250\.0 ms +475\.0 ms$")
        self.assertNotIn("\x1b", done.stdout)
        self.assertIn("evil\\n\\x1b[2J", done.stdout)

    def test_json(self):
        self.daemon()
        frame = json.loads(self.top("--once", "--json").stdout)
        self.assertEqual((frame["version"], frame["ready"], frame["queue"]), ("9.8.7", True, 7))
        self.assertEqual(frame["outcomes"], {"exited": 100, "timed_out": 2})
        self.assertEqual(frame["slowest"][0], {"phase": "wait", "of": "python", "p50_ms": 250,
                                               "p95_ms": 475})

    def test_frames_follow_one_another_in_a_pipe(self):
        self.daemon()
        process = subprocess.Popen([cli.VIAL, "top", "--json", "-i", "100ms"], env=self.env,
                                   stdout=subprocess.PIPE, text=True)
        frames = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.stdout.close()
        self.assertEqual([f["outcomes"]["exited"] for f in frames], [100, 200, 300])
        self.assertGreater(frames[2]["runs_per_second"], 10)  # 100 in a tenth of a second, or a bit more
        self.assertEqual(process.wait(cli.PATIENCE_S), -signal.SIGPIPE)

    def test_no_daemon_or_none_that_is_one(self):
        self.assertEqual(self.top("--once").returncode, 125)
        self.assertIn("no daemon is running here", self.top().stderr)
        self.daemon(b"HTTP/1.1 200 OK\r\n\r\nvial_x{ 1\n")
        self.assertIn("cannot be read", self.top("--once").stderr)

    def test_bad_options(self):
        for args in (("--interval", "1ms"), ("--interval", "x"), ("operand",)):
            self.assertEqual(self.top(*args).returncode, 2, args)

    # ---- on a terminal ----

    def start(self, *args, size=(24, 80)):
        pid, master = pty.fork()
        if pid == 0:
            os.execve(cli.VIAL, [cli.VIAL, "top", "-i", "100ms", *args], self.env)
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        self.addCleanup(os.close, master)
        return pid, master

    def read_until(self, master, pattern):
        seen = b""
        deadline = time.monotonic() + cli.PATIENCE_S
        while not re.search(pattern, seen):
            self.assertLess(time.monotonic(), deadline, seen)
            if select.select([master], [], [], 0.1)[0]:
                seen += os.read(master, 65536)
        return seen

    def finish(self, pid, master):
        """(wait status, the rest of what was drawn)."""
        rest = b""
        try:
            while select.select([master], [], [], cli.PATIENCE_S)[0]:
                rest += os.read(master, 65536)
        except OSError:
            pass
        return os.waitpid(pid, 0)[1], rest

    def test_q_leaves_and_gives_the_terminal_back(self):
        self.daemon()
        pid, master = self.start()
        seen = self.read_until(master, rb"exited [34]00")
        self.assertIn(b"\x1b[?1049h\x1b[?25l", seen)
        self.assertFalse(termios.tcgetattr(master)[3] & termios.ECHO)
        os.write(master, b"q")
        status, rest = self.finish(pid, master)
        self.assertEqual(status, 0)
        self.assertTrue(rest.endswith(b"\x1b[?25h\x1b[?1049l"), rest[-40:])

    def test_so_does_a_signal(self):
        for signo in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
            with self.subTest(signo):
                if os.path.exists(self.path):
                    os.unlink(self.path)
                self.daemon()
                pid, master = self.start()
                self.read_until(master, rb"exited")
                os.kill(pid, signo)
                status, rest = self.finish(pid, master)
                self.assertEqual(os.WTERMSIG(status), signo)
                self.assertIn(b"\x1b[?25h\x1b[?1049l", rest)

    def test_nothing_is_wider_or_longer_than_the_screen(self):
        self.daemon()
        pid, master = self.start(size=(5, 30))
        self.read_until(master, rb"\x1b\[J")
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 4, 20, 0, 0))
        os.kill(pid, signal.SIGWINCH)
        self.read_until(master, rb"\x1b\[J")
        seen = self.read_until(master, rb"\x1b\[H(?s:.*)\x1b\[J")
        frame = re.findall(rb"\x1b\[H((?s:.*?))\x1b\[J", seen)[-1]
        rows = re.sub(rb"\x1b\[[0-9;]*[a-zA-Z]", b"", frame).replace(b"\r", b"").split(b"\n")
        self.assertLessEqual(len(rows), 4)
        self.assertLessEqual(max(map(len, rows)), 20)
        os.write(master, b"q")
        self.finish(pid, master)

    def test_a_daemon_that_goes_may_come_back(self):
        first = self.daemon()
        pid, master = self.start()
        self.read_until(master, rb"exited")
        first.close()
        os.unlink(self.path)
        self.read_until(master, rb"no daemon is running here")
        self.daemon()
        self.read_until(master, rb"exited 100")
        os.write(master, b"q")
        self.assertEqual(self.finish(pid, master)[0], 0)

    def test_a_dumb_terminal_gets_lines(self):
        self.daemon()
        self.env["TERM"] = "dumb"
        pid, master = self.start()
        seen = self.read_until(master, rb"exited 200")
        self.assertNotIn(b"\x1b", seen)
        os.kill(pid, signal.SIGTERM)
        self.finish(pid, master)
