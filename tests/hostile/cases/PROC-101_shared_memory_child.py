# hostile-test
# id: PROC-101
# title: children that share memory with their parent outlive it, and its exit
# class: process-survive
# lang: python
# expect: contained|ok|killed
# severity: high
# limits: {"wall_s": 8, "pids": 64}
# checks: {"after": {"no_survivors_s": 5}, "next_run_ok": true}
# bounds: 20 children, 60 s
# why: CLONE_VM without CLONE_THREAD: no thread that is counted as such, no copy that is noticed
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, os
c = ctypes.CDLL(None, use_errno=True)
CLONE_VM, CLONE_FS, CLONE_FILES, CLONE_SIGHAND, CLONE_UNTRACED, CLONE_PARENT = 0x100, 0x200, 0x400, 0x800, 0x800000, 0x8000
sleep = ctypes.cast(c.sleep, ctypes.c_void_p)
keep, made, siblings = [], 0, 0
for flags in (CLONE_VM, CLONE_VM | CLONE_FILES, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND, CLONE_VM | CLONE_UNTRACED):
    for signal in (0, 17, 9, 19):
        stack = ctypes.create_string_buffer(1 << 16); keep.append(stack)
        top = (ctypes.addressof(stack) + (1 << 16)) & ~15
        if c.clone(sleep, ctypes.c_void_p(top), flags | signal, ctypes.c_void_p(60)) > 0: made += 1
stack = ctypes.create_string_buffer(1 << 16)
if c.clone(sleep, ctypes.c_void_p((ctypes.addressof(stack) + (1 << 16)) & ~15), CLONE_VM | CLONE_PARENT, ctypes.c_void_p(60)) > 0: siblings += 1
if siblings: esc("a sibling of its own: a child of whoever waits for the guest")
print("DONE: %d children with the memory of their parent" % made)
done("%d children" % made)
os._exit(0)
