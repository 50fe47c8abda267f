# An allocation that no machine can meet is an exception, not the end.
try:
    bytearray(1 << 60)
except MemoryError:
    print("MemoryError")
try:
    [0] * (1 << 58)
except MemoryError:
    print("MemoryError again")
print("still here")
