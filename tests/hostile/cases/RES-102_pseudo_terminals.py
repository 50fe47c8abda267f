# hostile-test
# id: RES-102
# title: take all pseudo terminals of the host
# class: resource-shared-uid
# lang: python
# expect: contained
# severity: medium
# limits: {"wall_s": 10, "nofile": 4096}
# checks: {"next_run_ok": true}
# bounds: 4000 terminals, freed at once
# why: kernel.pty.max counts the terminals of all instances of devpts together
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import os
most = []
try:
    while len(most) < 2000: most.append(os.openpty())
except OSError: pass
if len(most) > 256: esc("%d pseudo terminals in one sandbox" % len(most))
done("%d pseudo terminals" % len(most))
