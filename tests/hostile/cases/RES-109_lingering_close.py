# hostile-test
# id: RES-109
# title: a socket whose last close waits for minutes, left to whoever collects it
# class: resource-cpu
# lang: python
# expect: contained
# severity: critical
# limits: {"wall_s": 20}
# checks: {"result": {"wall_ms_max": 10000}, "after": {"no_survivors_s": 2, "cleanup_ok": true}, "next_run_ok": true}
# bounds: lingers for ten seconds
# why: the kernel has one worker for files that nobody holds any more; one that waits there holds up every mount's end
import array
import os
import socket
import struct

listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(1)
one = socket.create_connection(listener.getsockname())
other, _ = listener.accept()
one.setblocking(False)
try:
    while True:
        one.send(b"x" * 65536)
except BlockingIOError:
    pass
try:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 10))
except OSError:
    pass
on, seconds = struct.unpack("ii", one.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8))
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
left.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                       array.array("i", [one.fileno(), other.fileno(), right.fileno()]))])
for each in (one, other, right, left):
    os.close(each.detach())
socket.socketpair()  # the kernel collects what refers only to itself
if on and seconds:
    print("ESCAPED: whoever closes it waits for %d s" % seconds, flush=True)
else:
    print("CONTAINED: it is closed at once", flush=True)
