"""served - a `vial serve` of our own, and what it should have left of a run: nothing.

A sandbox of the daemon is no child of whoever asked for it, so descent says nothing about
it.  But all it may have is counted by the daemon, sandbox by sandbox, and a
process cannot outlive the pid 1 of its sandbox: one pid 1 too many is a sandbox that stayed.
A few are made ahead, and have nobody but their pid 1 in them.
"""
import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "server"))

import daemon                                                       # noqa: E402

AHEAD = 4      # slots of each environment that nobody asked for yet (keeper.h)
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
        before = self._pools()
        spaces = {}  # pid namespaces of sandboxes: who is in them
        for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
            status = _status(pid)
            if len(status.get("NSpid", "").split()) == IN_A_NEST and self._is_ours(status):
                spaces.setdefault(_space(pid), []).append(pid)
        lived_in = [pids for pids in spaces.values() if len(pids) > 1]
        empty = [pids for pids in spaces.values() if len(pids) == 1]
        after = self._pools()
        used = sum(1 for pool in after if pool["runs"] or _told([pool]))
        if len(lived_in) <= max(_told(before), _told(after)) and \
                len(spaces) <= max(_told(before), _told(after)) + AHEAD * max(used, 1):
            return {}
        return {pid: "a sandbox that is nobody's" for pids in lived_in + empty for pid in pids}

    def _pools(self):
        return [row["pool"] for row in self.ask("GET", "/v1/environments")[1]["environments"]]

    def _is_ours(self, status):
        """Of this daemon: its pid 1s are the keeper's children, and so are its guests."""
        if status["State"].startswith("Z"):
            return False
        for _ in range(64):
            if status.get("PPid") == str(self.process.pid):
                return True
            status = _status(int(status.get("PPid", 0)))
        return False


def _told(pools):
    return sum(pool["armed"] + pool["arming"] + pool["running"] for pool in pools)


def _space(pid):
    try:
        return os.readlink("/proc/%d/ns/pid" % pid)
    except OSError:
        return None


def _status(pid):
    try:
        with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
            return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError:
        return {}
