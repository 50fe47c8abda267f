import sys
print(input('name? '))
print(sys.stdin.readline())
for line in sys.stdin:
    print(repr(line))
    break
try:
    sys.stdin.tell()
except OSError as e:
    print(e)
print(sys.stdin.read())
input()
