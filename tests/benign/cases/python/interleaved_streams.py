# Both streams, flushed in turns, from the parent and from children.
import os
import subprocess
import sys

for number in range(5):
    print("out", number, flush=True)
    print("err", number, file=sys.stderr, flush=True)
    subprocess.run(["sh", "-c", f"echo child {number}; echo child err {number} >&2"])
os.write(1, b"raw out\n")
os.write(2, b"raw err\n")
sys.stdout.write("no newline at the end")
