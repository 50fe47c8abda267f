# os._exit skips every handler and loses what was not flushed.
import atexit
import os
import sys

atexit.register(print, "never seen")
sys.stdout.write("flushed\n")
sys.stdout.flush()
sys.stdout.write("lost")
os._exit(7)
