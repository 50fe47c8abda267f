# Arguments arrive whole: blanks, quotes, globs, empty, unicode.
import sys

print(len(sys.argv) - 1)
for number, arg in enumerate(sys.argv[1:], 1):
    print(number, repr(arg))
