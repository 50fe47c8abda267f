# Without input there is an end of file, not a wait and not a closed descriptor.
import os
import sys

print(repr(sys.stdin.read()), os.read(0, 10))
try:
    input("prompt> ")
except EOFError as error:
    print("EOFError:", error)
