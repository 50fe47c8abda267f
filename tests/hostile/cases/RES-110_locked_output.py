# hostile-test
# id: RES-110
# title: an output whose reader has to wait as long as its writer likes
# class: resource-cpu
# lang: python
# expect: contained
# severity: critical
# limits: {"wall_s": 10}
# checks: {"result": {"wall_ms_max": 9000}, "after": {"no_survivors_s": 2, "cleanup_ok": true}, "next_run_ok": true}
# bounds: holds its output for five seconds
# why: copies inside of the kernel wait for their source with the pipe locked; whoever reads the pipe cannot even be killed meanwhile
import os
import signal
import socket

SO_RCVLOWAT = 18

print("held", flush=True)
held = []
for name in ("splice", "sendfile"):
    source, other = socket.socketpair()
    source.setsockopt(socket.SOL_SOCKET, SO_RCVLOWAT, 3000)
    other.send(b"x" * 100)
    pid = os.fork()
    if pid == 0:
        signal.alarm(5)
        try:
            if name == "splice":
                os.splice(source.fileno(), 1, 4096)
            else:
                os.sendfile(1, source.fileno(), None, 4096)
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != 1:
        held.append(name)
if held:
    print("ESCAPED: locked by %s" % " and ".join(held), flush=True)
else:
    print("CONTAINED: neither copies into a pipe", flush=True)
