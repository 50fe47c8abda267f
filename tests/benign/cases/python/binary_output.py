# Output that is no text: every byte value, NULs, broken UTF-8, no newline at the end.
import os
import sys

sys.stdout.buffer.write(bytes(range(256)) * 4)
sys.stdout.buffer.write(b"\xf0\x9f\x00\xc3\xed\xa0\x80")
sys.stdout.flush()
os.write(2, b"\xff\xfe stderr too \x00")
