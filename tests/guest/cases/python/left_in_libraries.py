# What a program leaves in modules that were there before it, and nowhere else.
import builtins
import os
import sys


def shout(text):
    os.write(1, text.upper().encode() + b"\n")


sys.displayhook = shout
builtins.shout = shout
os.environ["LATE"] = "1"
sys.path.append(str(len(sys.argv)))
shout("done")
