# hostile-test
# id: RES-111
# title: a memory policy for each page of a file, which no memory limit counts
# class: resource-memory
# lang: python
# expect: contained
# severity: high
# bounds: 2000 pages of a sparse memory file
# why: policies stay with the inode after munmap; 780,000 of them were 265 MB of the host's memory
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.syscall.restype = ctypes.c_long
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
MBIND, GET = {"x86_64": (237, 239), "aarch64": (235, 236)}.get(platform.machine(), (-1, -1))
fd = os.memfd_create("m"); os.truncate(fd, 2000 * 4096)
mask, mode = ctypes.c_ulong(1), ctypes.c_int(0)
def call(nr, *args): return libc.syscall(ctypes.c_long(nr), *[ctypes.c_long(a) for a in args])
kept = 0
for i in range(2000):
    at = libc.mmap(None, 4096, 3, 1, fd, i * 4096)
    call(MBIND, at, 4096, 2, ctypes.addressof(mask), 64, 0)
    if call(GET, ctypes.addressof(mode), 0, 0, at, 2) == 0 and mode.value == 2: kept += 1
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(4096))
if kept: esc("%d pages have a policy of their own" % kept)
done()
