"""served - a `vial serve` of our own, and what it should have left of a run: nothing.

A sandbox of the daemon is no child of whoever asked for it, so descent says nothing about
it.  But all it may have is counted by the daemon, sandbox by sandbox, and a
process cannot outlive the pid 1 of its sandbox: one pid 1 too many is a sandbox that stayed.
"""
import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "server"))

import daemon                                                       # noqa: E402

IN_A_NEST = 3  # pid namespaces that a sandbox's process is in: the host's, the nest's, its own


class Served(daemon.Daemon):
    def __init__(self, vial):
        daemon.VIAL = vial
        super().__init__("--listen", "none")
        self.pids = (self.process.pid, self.server_pid())

    def memory_mb(self):
        """What keeper and server hold now."""
        return sum(int(_status(pid).get("VmRSS", "0").split()[0]) for pid in self.pids) / 1024

    def is_well(self):
        return self.process.poll() is None and self.answers()

    def wait_no_surplus(self, limit_s):
        """Wait until no sandbox is left but those it tells of: (seconds it took, who stayed)."""
        start = time.monotonic()
        while True:
            left = self._surplus()
            taken = time.monotonic() - start
            if not left or taken > limit_s:
                return taken, left
            time.sleep(0.05)

    def _surplus(self):
        before = self._told()
        inits = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
                 if self._is_init(_status(pid))]
        if len(inits) <= max(before, self._told()):
            return {}
        return {pid: "a sandbox that is nobody's" for pid in inits}

    def _told(self):
        pools = [row["pool"] for row in self.ask("GET", "/v1/environments")[1]["environments"]]
        return sum(pool["armed"] + pool["arming"] + pool["running"] for pool in pools)

    def _is_init(self, status):
        pids = status.get("NSpid", "").split()
        return (status.get("PPid") == str(self.process.pid) and len(pids) == IN_A_NEST
                and pids[-1] == "1" and not status["State"].startswith("Z"))


def _status(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}
