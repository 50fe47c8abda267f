# More input than a pipe holds, read slowly and answered meanwhile.
import sys

total = 0
for number, line in enumerate(sys.stdin, 1):
    total += int(line)
    if number % 5000 == 0:
        print(number, total, flush=True)
print(total)
