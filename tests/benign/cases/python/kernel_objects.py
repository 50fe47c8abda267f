# eventfd, memfd, pidfd, inotify and timerfd by way of libc: what newer programs lean on.
import ctypes
import os
import select
import signal
import struct

libc = ctypes.CDLL(None, use_errno=True)
counter = os.eventfd(3)
os.eventfd_write(counter, 4)
print(os.eventfd_read(counter))
memory = os.memfd_create("scratch", os.MFD_CLOEXEC)
os.write(memory, b"in memory only")
print(os.pread(memory, 20, 3))
child = os.fork()
if child == 0:
    signal.pause()
handle = os.pidfd_open(child)
signal.pidfd_send_signal(handle, signal.SIGTERM)
print(select.select([handle], [], [], 10)[0] == [handle])
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
watch = libc.inotify_init1(os.O_CLOEXEC)
libc.inotify_add_watch(watch, b".", 0x100)  # IN_CREATE
open("appeared", "w").close()
event = os.read(watch, 4096)
print(struct.unpack_from("iIII", event)[1] == 0x100, event[16:].rstrip(b"\0"))
timer = libc.timerfd_create(1, os.O_CLOEXEC)  # CLOCK_MONOTONIC
libc.timerfd_settime(timer, 0, struct.pack("4q", 0, 5_000_000, 0, 5_000_000), None)
print(struct.unpack("Q", os.read(timer, 8))[0] >= 1)
print(len(os.getrandom(16)), os.get_inheritable(counter))
