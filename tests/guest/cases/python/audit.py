import os
import sys


def note(event, args):
    if event.startswith(("cpython.", "os.putenv")):
        os.write(1, event.encode() + b"\n")


sys.addaudithook(note)
os.putenv("A", "B")
