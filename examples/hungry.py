"""Takes memory until there is none left."""
blocks = []
try:
    while True:
        blocks.append(bytearray(1 << 20))
except MemoryError:
    taken = len(blocks)
    blocks.clear()
    print(f"MemoryError after {taken} MiB, and still alive")
