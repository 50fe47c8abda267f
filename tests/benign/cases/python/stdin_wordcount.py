# Standard input, line by line.
import collections
import sys

words = collections.Counter()
lines = 0
for line in sys.stdin:
    lines += 1
    words.update(line.lower().replace(",", "").replace(".", "").split())
print(lines, sum(words.values()), len(words))
for word, count in sorted(words.items(), key=lambda item: (-item[1], item[0]))[:8]:
    print(f"{count:3} {word}")
