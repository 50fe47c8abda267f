"""vial - drive `vial run --json` and record what it did, from outside.

Nothing here believes the result: elapsed time, memory of the vial process and its exit
status are measured, and what does not fit together is a complaint.
"""
import json
import os
import pty
import re
import selectors
import signal
import subprocess
import sys
import time

HELLO = {
    "python": 'print("hi")',
    "bash": "echo hi",
    "ruby": 'puts "hi"',
    "javascript": 'console.log("hi")',
    "c": '#include <stdio.h>\nint main(void) { puts("hi"); return 0; }\n',
}
LANGUAGE = {"node": "javascript", "js": "javascript", "sh": "bash"}
STATUS = {"exited": "exited", "signaled": "killed", "timed_out": "timeout",
          "out_of_memory": "memory", "out_of_disk": "killed", "cancelled": "killed"}
# What a policy says to an import (docs/POLICY.md); a program that does not catch it went no further.
NOT_IMPORTED = re.compile(r"(Import '[\w.]+' not allowed|Module '[\w.]+' is blocked in this sandbox)$")
OUTPUT_MAX = 256 << 20
AS_STEP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "as_step.py")
DEFAULT_WALL_S = 30
SLACK_S = 45  # beyond its own limits a run may compile, export and clean up this long


class Run:
    """One run as seen from outside."""

    def __init__(self):
        self.line = bytearray()   # what vial printed
        self.noise = bytearray()  # what vial said on stderr
        self.result = {}          # the parsed line, {} when it is not a result
        self.code = None          # vial's exit status; negative: it died of a signal
        self.elapsed_ms = 0.0
        self.rss_mb = 0.0         # most memory the vial process itself ever held
        self.daemon_mb = 0.0      # by how much the daemon grew meanwhile
        self.why_here = ""        # what the daemon does not offer; "": nothing was asked of it
        self.has_policy = False
        self.hung = False
        self.complaints = []

    @property
    def status(self):
        if self.hung:
            return "hung"
        exception = self.result.get("exception") or {}
        if self.has_policy and (exception.get("type") == "PolicyError" or
                                NOT_IMPORTED.match(exception.get("message") or "")):
            return "refused"
        return STATUS.get(self.result.get("outcome"), "broken")

    def wall_ms(self):
        """What the caller waited, less the time in the compiler."""
        return self.elapsed_ms - (self.result.get("compile_ms") or 0)

    def says_hi(self):
        return self.status == "exited" and self.code == 0 and self.result.get("stdout") == "hi\n"

    def said(self):
        """The last line of what vial said about itself."""
        lines = self.noise.decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:200] if lines else "(nothing)"

    def refusal(self):
        """Why the daemon did not take it; "" if it did."""
        said = self.noise.decode("utf-8", "replace")
        word, _, why = said.partition("--daemon: ")
        return why.splitlines()[0] if word == "vial: " and self.code in (2, 125) else ""


def daemon_command(command):
    return command[:2] + ["--daemon"] + command[2:]


class Vial:
    """
    The program under test with the arguments and environment of every run.  With a daemon
    every run goes there, alone or as a step of a session; one that it refuses is run here, and
    says so.
    """

    def __init__(self, path, environment, arguments=(), served=None, policy=None,
                 resets=False, rewinds=False, forks=False):
        self.path = path
        self.environment = dict(environment, VIAL_NO_DAEMON="1")  # unless we say --daemon
        self.arguments = list(arguments)
        self.served = served
        self.policy = policy  # of sessions ("": none), or None: runs
        self.resets = resets  # a session of two parts: the second comes after a reset
        self.rewinds = rewinds  # sessions whose steps can be taken back
        self.forks = forks  # sessions that are branches of others
        if served:
            self.environment["VIAL_SOCKET"] = served.path

    def command(self, language, arguments, source=None, code=None):
        command = [self.path, "run", "--json", "-l", LANGUAGE.get(language, language)]
        return command + self.arguments + arguments + (["-c", code] if source is None else [source])

    def served_command(self, command):
        if self.policy is None:
            return daemon_command(command)
        policy = ["--policy", self.policy] if self.policy else []
        rewind = ["--rewind"] if self.rewinds else []
        fork = ["--fork"] if self.forks else []
        return [sys.executable, AS_STEP, *policy, *rewind, *fork, *command[2:]]

    def hello(self, directory, language="python"):
        language = LANGUAGE.get(language, language)
        return self.run(self.command(language, [], code=HELLO[language]), directory)

    def run(self, command, directory, wall_s=DEFAULT_WALL_S, terminal=False):
        """Run to the end in an empty directory of its own, which is also its TMPDIR."""
        os.makedirs(directory, exist_ok=True)
        why_here = ""
        if self.served:
            run = self._run_once(self.served_command(command), directory, wall_s, terminal)
            why_here = run.refusal()
        if not self.served or why_here:
            run = self._run_once(_without_passing(command), directory, wall_s, terminal)
            run.why_here = why_here
        return run

    def _run_once(self, command, directory, wall_s, terminal):
        run = Run()
        run.has_policy = bool(self.policy)
        start = time.monotonic()
        memory = self.served.memory_mb if self.served else lambda: 0.0
        memory_before = memory()
        master, process = self._start(command, directory, terminal)
        try:
            for _ in _collect(run, process, start + wall_s + SLACK_S):
                run.daemon_mb = max(run.daemon_mb, memory() - memory_before)
            if self.policy is not None:
                run.rss_mb = 0.0  # of whoever asked, which is nothing of ours
        finally:
            if master is not None:
                os.close(master)
        run.elapsed_ms = (time.monotonic() - start) * 1000
        _parse(run)
        run.complaints += ["left %s in its TMPDIR" % name for name in sorted(os.listdir(directory))]
        return run

    def _start(self, command, directory, terminal):
        environment = dict(self.environment, TMPDIR=directory)
        master, stdin = pty.openpty() if terminal else (None, subprocess.DEVNULL)
        process = subprocess.Popen(command, cwd=directory, env=environment, stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True,
                                   preexec_fn=_take_terminal if terminal else None)
        if terminal:
            os.close(stdin)
        return master, process


def _without_passing(command):
    """That is for as_step.py."""
    if "--passing" not in command:
        return command
    at = command.index("--passing")
    return command[:at] + command[at + 2:]


def _take_terminal():
    """In the child, after setsid(): opening a terminal makes it the controlling one."""
    os.close(os.open(os.ttyname(0), os.O_RDWR))


def _collect(run, process, deadline):
    """Until its end; yields now and then, for whoever has something to look at."""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, "line")
        selector.register(process.stderr, selectors.EVENT_READ, "noise")
        gone_since = None
        while selector.get_map():
            yield
            run.rss_mb = max(run.rss_mb, _peak_rss_mb(process.pid))
            for key, _ in selector.select(0.02 if not run.line else 0.2):
                if key.data == "line" and not run.line:
                    run.rss_mb = max(run.rss_mb, _peak_rss_mb(process.pid))
                _take(run, key, selector)
            now = time.monotonic()
            if process.poll() is not None:
                gone_since = gone_since or now
                if now - gone_since > 1:
                    run.complaints.append("somebody holds its output open after it ended")
                    break
            elif now > deadline and not run.hung:
                run.hung = True
                run.complaints.append("had to be killed: no answer in time")
                process.send_signal(signal.SIGKILL)
    run.code = process.wait()
    process.stdout.close()
    process.stderr.close()


def _take(run, key, selector):
    chunk = os.read(key.fd, 1 << 20)
    if not chunk:
        selector.unregister(key.fileobj)
    elif len(getattr(run, key.data)) < OUTPUT_MAX:
        getattr(run, key.data).extend(chunk)


def _peak_rss_mb(pid):
    """Peak since exec.  Not from wait4(): that counts the guests it has reaped, too."""
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def _parse(run):
    if run.hung:
        return
    try:
        text = run.line.decode("utf-8")
        if not text.endswith("\n") or "\n" in text[:-1]:
            raise ValueError("not exactly one line")
        result = json.loads(text)
        json.dumps(result, ensure_ascii=False).encode("utf-8")  # no half characters
        if result.get("outcome") not in STATUS:
            raise ValueError("outcome %r" % result.get("outcome"))
    except (ValueError, AttributeError) as error:
        run.complaints.append("no result (%s); exit %s: %s" % (error, run.code, run.said()))
        return
    run.result = result
    if run.code != exit_status(result):
        run.complaints.append("exit status %s does not go with its result" % run.code)


def exit_status(result):
    """The exit status that goes with a result."""
    if result.get("timed_out"):
        return 124
    if result.get("exit_code") is not None:
        return result["exit_code"]
    return 128 + (result.get("signal") or signal.SIGKILL)
