# A file mapped, searched, changed through the map, grown and shared with a child.
import mmap
import os

with open("mapped", "w+b") as file:
    file.write(b"abc" * 5000)
    file.flush()
    with mmap.mmap(file.fileno(), 0) as view:
        print(len(view), view.find(b"ca"), view[2998:3004])
        view[0:3] = b"XYZ"
        view.flush()
        view.resize(20000)
        print(view.size(), view[14999:15002])
    print(os.fstat(file.fileno()).st_size)
with open("mapped", "rb") as file:
    print(file.read(6))
with mmap.mmap(-1, mmap.PAGESIZE) as shared:
    if os.fork() == 0:
        shared.write(b"from the child")
        os._exit(0)
    os.wait()
    print(shared.read(14))
private = mmap.mmap(-1, 1 << 16, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
private.madvise(mmap.MADV_DONTNEED)
print(private[:4])
