# hostile-test
# id: REW-005
# title: a thousand checkpoints that no one asked for, and memory for each
# class: resource-memory
# lang: python
# expect: contained|killed|ok|memory
# severity: high
# limits: {"memory_mb": 256, "pids": 64, "wall_s": 10}
# checks: {"after": {"no_survivors_s": 2}, "next_run_ok": true}
# bounds: 5 s
# why: copies are processes and memory of the sandbox, and bounded as such
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, os
print("CONTAINED: about to flood"); sys.stdout.flush()
made = 0
try:
    there = "rewind.so" in open("/proc/self/maps").read()
    lib = ctypes.PyDLL("/run/vial/boot/rewind.so") if there else None
    block = bytearray(4 << 20)
    for number in range(1000 if there else 0):
        for at in range(0, len(block), 4096): block[at] = number & 0xff
        name = b"n%d" % number
        lib.vial_rewind_begin.argtypes = (ctypes.c_ulonglong, ctypes.c_char_p)
        lib.vial_rewind_order.argtypes = (ctypes.c_char_p, ctypes.c_ulonglong, ctypes.c_char_p, ctypes.c_uint, ctypes.c_char_p)
        if lib.vial_rewind_order(b"checkpoint", 10**6 + number, name, 1, None): break
        made += 1
        if number % 50 == 0 and lib.vial_rewind_begin(10**7 + number, None): break
except OSError: pass
done("%d orders given" % made)
