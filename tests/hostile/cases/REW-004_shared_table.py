# hostile-test
# id: REW-004
# title: write nonsense to the memory that copies and supervisor share
# class: process-attack
# lang: python
# expect: contained|killed|ok|memory
# severity: high
# limits: {"memory_mb": 256, "pids": 64, "wall_s": 10}
# checks: {"after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 5 s
# why: pids in it are what the supervisor signals: only those of the sandbox can be meant
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, os
hit = 0
print("CONTAINED: about to write"); sys.stdout.flush()
for fill in (0xff, 0x01, 0x7f):
    for line in open("/proc/self/maps"):
        if " rw-s " in line and "/dev/zero" in line:
            start, end = (int(part, 16) for part in line.split()[0].split("-"))
            ctypes.memset(start, fill, end - start); hit += 1
done("%d shared mappings overwritten" % hit)
os._exit(5)
