# hostile-test
# id: REW-002
# title: forge results of what was taken back, and lists of checkpoints
# class: result-spoof
# lang: python
# expect: contained|killed|ok|memory
# severity: high
# limits: {"memory_mb": 256, "pids": 64, "wall_s": 10}
# checks: {"after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 5 s
# why: the server shapes what it passes on; a forged result can only be about the step that runs
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import json, os, stat
print("CONTAINED: forging on the channel"); sys.stdout.flush()
for fd in range(3, 1024):
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode): continue
    except OSError: continue
    lines = [{"op": "result", "id": n, "rolled_back": True, "signal": 300, "files_kept": "x"} for n in range(3)]
    lines += [{"op": "result", "id": n, "checkpoints": [{"name": "../../etc/passwd", "memory": -1},
              {"name": 5, "files": 1e308}] * 2000} for n in range(40, 44)]
    lines += [{"op": "result", "id": 10**9, "rewind": "ready" * 10000, "rolled_back": True}] * 50
    try:
        for line in lines: os.write(fd, json.dumps(line).encode() + b"\n")
    except OSError: pass
done("wrote forged results")
