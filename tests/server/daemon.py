"""daemon - a `vial serve` for tests, and clients of it."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import contract

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
from patience import PATIENCE_S, UnixConnection, free_port, wait_until

VIAL = None      # set by `run`
WORKERS = 0      # likewise: so many stand behind a dispatcher that is asked instead
PROGRESS = ("queued", "started", "heartbeat")  # events that depend on how busy a server is


class Worker:
    """A `vial serve` that only dispatchers ask, those who know `key`."""

    def __init__(self, name, key, *options, port=None, state=None):
        self.name = name
        self.key = key
        self.port = port or free_port()
        self.dir = tempfile.mkdtemp(prefix="vial-worker-")
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [VIAL, "serve", "--socket", "none", "--listen", "127.0.0.1:%d" % self.port, *options,
                 "--set", "node=" + name, "--set", "relay_key=" + key],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "STATE_DIRECTORY": state or os.path.join(self.dir, "state")})

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.port

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def close(self):
        self.end()
        shutil.rmtree(self.dir, ignore_errors=True)


def make_key(directory):
    path = os.path.join(directory, "relay-key")
    with open(path, "w", encoding="ascii") as file:
        file.write(os.urandom(24).hex() + "\n")
    return path


class Daemon:
    """One `vial serve` with sockets of its own, or where another one was."""

    def __init__(self, *options, path=None, state=None):
        self.dir = tempfile.mkdtemp(prefix="vial-server-")
        self.path = path or os.path.join(self.dir, "s")
        self.port = free_port()
        self.workers = []
        if WORKERS:
            key = make_key(self.dir)
            self.workers = [Worker("w%d" % i, key, *options) for i in range(WORKERS)]
            options += ("--backend", "null", "--set", "relay_key=" + key,
                        "--set", "workers=" + ",".join(worker.url for worker in self.workers))
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [VIAL, "serve", "--socket", self.path, "--listen", "127.0.0.1:%d" % self.port,
                 *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "STATE_DIRECTORY": state or os.path.join(self.dir, "state")})
        if not wait_until(lambda: self.answers() or self.process.poll() is not None) or \
                self.process.poll() is not None:
            log = self.log() + "".join(worker.log() for worker in self.workers)
            self.close()
            raise RuntimeError("vial serve did not start: " + log)

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def answers(self):
        try:
            return self.ask("GET", "/healthz")[0] == 200 and self.well() == len(self.workers)
        except OSError:
            return False

    def well(self):
        """How many workers get requests."""
        if not self.workers:
            return 0
        made = self.connect()
        made.request("GET", "/metrics")
        text = made.getresponse().read().decode()
        made.close()
        return int(re.search(r"^vial_fleet_workers_well (\d+)", text, re.M)[1])

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for worker in self.workers:
            worker.close()
        wait_until(self.is_removed)

    def is_removed(self):
        shutil.rmtree(self.dir, ignore_errors=True)  # who keeps the history may be about to go
        return not os.path.exists(self.dir)

    def server_pid(self):
        return server_of(self.process.pid)

    # ---- clients ----

    def connect(self):
        return UnixConnection(self.path)

    def raw(self, tcp=False):
        """A socket without any manners."""
        made = socket.socket() if tcp else socket.socket(socket.AF_UNIX)
        made.settimeout(PATIENCE_S)
        made.connect(("127.0.0.1", self.port) if tcp else self.path)
        return made

    def ask(self, method, path, body=None, headers=None, connection=None):
        """(status, answer as an object, headers)."""
        made = connection or self.connect()
        headers = dict(headers or {})
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
            body = body if isinstance(body, (bytes, str)) else json.dumps(body)
        try:
            made.request(method, path, body, headers)
            response = made.getresponse()
            text = response.read()
            answer = json.loads(text) if text else None
            if text and response.getheader("Content-Type") == "application/json":
                contract.check_answer(method, path, response.status, answer)
            return response.status, answer, dict(response.getheaders())
        finally:
            if not connection:
                made.close()

    def runs(self):
        return self.ask("GET", "/v1/runs")[1]["runs"]


def inside(test):
    """For what looks into one daemon: its processes, files, log, figures.  Where workers do the work, it has none of that."""
    return unittest.skipIf(WORKERS, "it looks into one daemon")(test)


def run_of(code, language="python", **more):
    return {"language": language, "code": code, **more}


class Case(unittest.TestCase):
    """Tests that share one daemon."""
    options = ()

    @classmethod
    def setUpClass(cls):
        cls.daemon = Daemon(*cls.options)

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()

    def run_ok(self, code, language="python", **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of(code, language, **more))
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def stream(self, code, language="python", connection=None, **more):
        """The response of a run whose output comes line by line."""
        made = connection or self.daemon.connect()
        if not connection:
            self.addCleanup(made.close)
        made.request("POST", "/v1/runs", json.dumps(run_of(code, language, **more)),
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        response = made.getresponse()
        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("Content-Type"), "application/x-ndjson")
        return response

    def assert_refused(self, answer, status, code, field=None, words=""):
        self.assertEqual(answer[0], status, answer)
        self.assertEqual(set(answer[1]), {"error"})
        error = answer[1]["error"]
        self.assertEqual(set(error), {"code", "message", "field", "hint"})
        self.assertEqual((error["code"], error["field"]), (code, field), error)
        self.assertIn(words, error["message"])

    def assert_no_runs(self):
        self.assertTrue(wait_until(lambda: not self.daemon.runs()), "runs are left")


def server_of(keeper):
    """The unprivileged half."""
    with open("/proc/%d/task/%d/children" % (keeper, keeper), encoding="ascii") as file:
        for pid in file.read().split():
            with open("/proc/%s/comm" % pid, encoding="ascii") as name:
                if name.read().strip() in ("vial-server", "vial-dispatcher"):
                    return int(pid)
    return None


def read_all(sock):
    """What comes until the other side closes."""
    got = b""
    try:
        while True:
            piece = sock.recv(65536)
            if not piece:
                return got
            got += piece
    except (ConnectionResetError, BrokenPipeError):
        return got
