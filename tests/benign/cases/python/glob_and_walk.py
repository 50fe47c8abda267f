# Files given with the program are where they belong.
import glob
import os

for root, dirs, files in os.walk("data"):
    dirs.sort()
    print(root, dirs, sorted(files))
print(sorted(glob.glob("data/**/*.txt", recursive=True)))
print(sorted(glob.glob("data/*/[ab]*")))
for path in sorted(glob.glob("data/**/*.txt", recursive=True)):
    with open(path, encoding="utf-8") as file:
        print(repr(file.read()))
