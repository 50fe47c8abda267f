# flock and lockf between processes.
import fcntl
import os
import struct

file = open("locked", "w+")
fcntl.flock(file, fcntl.LOCK_EX)
child = os.fork()
if child == 0:
    other = open("locked")
    try:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os._exit(1)
    except BlockingIOError:
        os._exit(5)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
fcntl.flock(file, fcntl.LOCK_UN)
fcntl.lockf(file, fcntl.LOCK_EX, 10, 5)
child = os.fork()
if child == 0:
    query = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    kind, _, start, length, _ = struct.unpack("hhqqi4x", query)
    print(kind == fcntl.F_WRLCK, start, length, flush=True)
    os._exit(0)
os.waitpid(child, 0)
flags = fcntl.fcntl(file, fcntl.F_GETFL)
print(flags & os.O_ACCMODE == os.O_RDWR, fcntl.fcntl(file, fcntl.F_GETFD))
reader, writer = os.pipe()
print(fcntl.fcntl(writer, fcntl.F_GETPIPE_SZ) >= 4096)
