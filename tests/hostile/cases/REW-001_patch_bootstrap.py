# hostile-test
# id: REW-001
# title: patch what takes steps back: objects, functions and code of the driver
# class: process-attack
# lang: python
# expect: contained|killed|ok|memory
# severity: high
# limits: {"memory_mb": 256, "pids": 64, "wall_s": 10}
# checks: {"after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 5 s
# why: a copy that runs patched code must not have more rights than the program
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, gc, os
hit = 0
for found in gc.get_objects():
    try:
        if type(found).__module__.startswith("session") or type(found).__name__ in ("Rewind", "Channel", "Session"):
            for name in ("begin", "done", "trim", "order", "send_bytes", "adopt"):
                if hasattr(found, name): setattr(found, name, lambda *a, **k: None); hit += 1
    except Exception: pass
print("CONTAINED: %d methods replaced; now the code" % hit); sys.stdout.flush()
libc = ctypes.CDLL(None, use_errno=True)
for line in open("/proc/self/maps"):
    if "rewind.so" in line and " r-xp " in line:
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 7) == 0:
            ctypes.memset(start, 0xcc, end - start); hit += 1
done("patched %d things of its own process" % hit)
os._exit(7)
