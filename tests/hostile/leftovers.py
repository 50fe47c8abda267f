"""leftovers - what a run left on the host: processes, mounts, cgroups, files, IPC objects.

Processes are found by descent: whoever measures is a child subreaper, so whatever a
sandbox loses ends up below it, whichever parent, session or name the process chose.
"""
import ctypes
import fcntl
import glob
import os
import re
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
STATE_PATTERNS = ("/run/vial", "/run/user/*/vial", "/tmp/vial-[0-9]*")
FILE_PATTERNS = ("/dev/shm/vial*", "/dev/shm/sem.*", "/dev/mqueue/*")  # each run has its own TMPDIR
STAYS = re.compile(r"(leases|root-[0-9a-f]{16})$")  # made once and kept: locks, skeletons of a root
CORE_PATTERNS = ("/core*", "/tmp/core*", "/var/crash/*", "/var/lib/systemd/coredump/*")


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Snapshot:
    """What of ours is on the host now.  Compare two with `since`."""

    def __init__(self):
        self.kinds = {"mount": _mounts(), "cgroup": _cgroups(), "file": _state() | _files(FILE_PATTERNS)}

    def since(self, before):
        """Lines about what is here and was not there before."""
        return ["%s %s" % (kind, name) for kind, names in self.kinds.items()
                for name in sorted(names - before.kinds[kind])]


def wait_clean(before, limit_s):
    """
    Wait until nothing is left.  Returns (seconds it took, lines about what stayed): all the
    time, for what comes and goes belongs to somebody else's run.
    """
    start = time.monotonic()
    left = None
    while True:
        now = Snapshot().since(before)
        left = now if left is None else [line for line in left if line in now]
        taken = time.monotonic() - start
        if not left or taken > limit_s:
            return taken, left
        time.sleep(0.1)


def survivors():
    """Processes below the caller, as {pid: name}; zombies are reaped and not counted."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                break
        except ChildProcessError:
            break
    parents, names = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            stat = _read("/proc/%s/stat" % entry)
            if stat:
                name, _, rest = stat.partition("(")[2].rpartition(")")
                if rest.split()[0] != "Z":
                    parents[int(entry)], names[int(entry)] = int(rest.split()[1]), name
    return {pid: names[pid] for pid in parents if _descends(pid, os.getpid(), parents)}


def wait_no_survivors(limit_s):
    """Wait until no process is left.  Returns (seconds it took, who stayed)."""
    start = time.monotonic()
    while True:
        left = survivors()
        taken = time.monotonic() - start
        if not left or taken > limit_s:
            return taken, left
        time.sleep(0.05)


def end(pids):
    """End processes that descend from the caller."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def ipc_objects():
    """System V objects of the host's own IPC namespace."""
    return sum(max(0, len(_read("/proc/sysvipc/" + kind).splitlines()) - 1)
               for kind in ("shm", "sem", "msg"))


def core_files():
    return _files(CORE_PATTERNS)


def _descends(pid, ancestor, parents):
    for _ in range(len(parents)):
        pid = parents.get(pid, 0)
        if pid == ancestor:
            return True
    return False


def _mounts():
    """Mount points, without the ids that a remount changes."""
    return {" ".join(line.split()[2:5]) for line in _read("/proc/self/mountinfo").splitlines()}


def _is_held(directory):
    """Somebody who lives has it, and its lock: it is empty for the moment."""
    try:
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(fd)


def _cgroups():
    """Cgroups of ours that nobody is in: those of runs that are under way are not left over."""
    found = set()
    for line in _read("/proc/self/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        if kind.startswith("cgroup"):
            for directory, _, _ in os.walk(fields.split()[4]):
                ours = any(part.startswith("vial") for part in directory.split("/"))
                if ours and not _read(directory + "/cgroup.procs") and not _is_held(directory):
                    found.add(directory)
    return found


def _files(patterns):
    return {path for pattern in patterns for path in glob.glob(pattern)}


def _state():
    """What vial keeps between runs, and more."""
    found = set()
    for top in (path for pattern in STATE_PATTERNS for path in glob.glob(pattern)):
        for directory, names, files in os.walk(top):
            if directory == top:
                names[:] = [name for name in names if not STAYS.match(name)]
                files = [name for name in files if not STAYS.match(name)]
            found.update(os.path.join(directory, name) for name in names + files)
    return found


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
