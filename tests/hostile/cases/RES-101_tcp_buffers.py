# hostile-test
# id: RES-101
# title: TCP buffers of many connections: memory that is not counted as such
# class: resource-memory
# lang: python
# expect: memory|killed|contained
# severity: high
# limits: {"memory_mb": 256, "pids": 96, "wall_s": 20}
# checks: {"after": {"no_survivors_s": 5}, "next_run_ok": true}
# bounds: 12 s, 1 GB of socket buffers
# why: over its limit a group's TCP is asked to slow down, but every connection may go on a little; the host has one budget for all
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import os, socket, time
LIMIT, END = 256 << 20, time.time() + 12
def fill():
    held, keep, some = 0, [], bytes(1 << 18)
    listener = socket.socket(); listener.bind(("127.0.0.1", 0)); listener.listen(1000)
    try:
        while time.time() < END:
            near = socket.create_connection(listener.getsockname()); near.setblocking(False)
            keep += [near, listener.accept()[0]]
            try:
                while True: held += near.send(some)
            except BlockingIOError: pass
    except OSError: pass
    return held, keep
ends, far = os.pipe()
for _ in range(40):
    try: pid = os.fork()
    except OSError: break
    if pid == 0:
        held, keep = fill(); os.write(far, b"%16d" % held)
        time.sleep(max(0, END + 1 - time.time())); os._exit(0)
os.close(far)
total = 0
while (word := os.read(ends, 16)): total += int(word)
if total > 2 * LIMIT: esc("%d MB in sockets with a limit of %d MB" % (total >> 20, LIMIT >> 20))
done("%d MB in sockets" % (total >> 20))
