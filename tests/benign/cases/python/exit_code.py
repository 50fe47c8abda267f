# The exit code is the program's own.
import sys

print("before")
sys.exit(42)
