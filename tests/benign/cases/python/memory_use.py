# A hundred and fifty megabytes, used and given back.
import tracemalloc

block = bytearray(150 * 1024 * 1024)
for offset in range(0, len(block), 4096):
    block[offset] = offset >> 12 & 255
print(len(block), sum(block[::4096]))
del block
tracemalloc.start()
rows = [list(range(50)) for _ in range(10000)]
print(sum(map(len, rows)), tracemalloc.get_traced_memory()[0] > 1_000_000)
rows.clear()
print(tracemalloc.get_traced_memory()[0] < 1_000_000)
text = "".join(chr(97 + n % 26) for n in range(1_000_000))
print(len(text), text.count("abc"), hash(text) == hash(text[:]))
