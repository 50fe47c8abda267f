"""What is counted from one in a fresh sandbox; and then some of each, for the next one to find."""
import ctypes
import json
import os
import pty
import tempfile

libc = ctypes.CDLL(None, use_errno=True)


def inodes(place):
    with tempfile.TemporaryFile(dir=place) as nameless:
        found = [os.fstat(nameless.fileno()).st_ino]
    path = os.path.join(place, "number")
    with open(path, "w") as file:
        found.append(os.fstat(file.fileno()).st_ino)
    os.unlink(path)
    return found


def terminal():
    ours, theirs = pty.openpty()
    return os.ttyname(theirs)


def last_pid():
    with open("/proc/loadavg") as file:
        return int(file.read().split()[4])


found = {
    "pid": os.getpid(), "last": last_pid(), "terminal": terminal(),
    "inodes": [os.stat(place).st_ino for place in (".", "main.py", "/tmp", "/dev/shm", "/dev/pts")],
    "next": {place: inodes(place) for place in (".", "/tmp", "/dev/shm")},
    "objects": [libc.shmget(0, 4096, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600)],
    "times": [os.stat(place).st_atime_ns == os.stat(place).st_mtime_ns for place in ("/dev/pts/ptmx", "/tmp")],
}
print(json.dumps(found, sort_keys=True))
for identifier, remove in zip(found["objects"], (libc.shmctl, libc.semctl, libc.msgctl)):
    remove(identifier, 0, 0)
