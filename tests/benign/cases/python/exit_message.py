# sys.exit with text: the text goes to stderr and the code is 1.
import atexit
import sys

atexit.register(print, "atexit ran")
sys.exit("that is all")
