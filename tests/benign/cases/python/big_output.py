# Half a megabyte on stdout, a fair amount on stderr, in order and whole.
import sys

for number in range(10000):
    sys.stdout.write(f"{number:06} {'=' * (number % 90)}\n")
for number in range(2000):
    print(f"warning {number}", file=sys.stderr)
print("done")
