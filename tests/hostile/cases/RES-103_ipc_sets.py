# hostile-test
# id: RES-103
# title: System V sets of the largest size: kernel memory that belongs to nobody
# class: resource-ipc
# lang: python
# expect: contained|memory|killed
# severity: high
# limits: {"memory_mb": 128, "wall_s": 15}
# checks: {"after": {"no_survivors_s": 5, "no_sysv_ipc": true}, "next_run_ok": true}
# bounds: 1 GB of semaphores, given back
# why: semaphores, undo lists and messages live in the kernel until somebody removes them
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, struct
c = ctypes.CDLL(None, use_errno=True); sets = []; undone = queued = 0
while len(sets) < 500:
    s = c.semget(0, 32000, 0o600)
    if s < 0: break
    sets.append(s)
for s in sets[:50]:
    if c.semop(s, struct.pack("Hhh", 31999, 1, 0x1000), 1) == 0: undone += 1
queues = [q for q in (c.msgget(0, 0o600) for _ in range(32000)) if q >= 0]
text = struct.pack("q", 1) + b"x" * 8192
for q in queues:
    while queued < 40000 and c.msgsnd(q, text, 8192, 0o4000) == 0: queued += 1
size = (len(sets) * 32000 * 64 + queued * 8192) >> 20
if size > 256: esc("%d MB of kernel memory with a limit of 128 MB" % size)
done("%d sets, %d messages" % (len(sets), queued))
