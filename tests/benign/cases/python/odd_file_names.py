# Names with blanks, brackets, quotes, unicode, newlines and bytes that are no UTF-8.
import os

for name in sorted(os.listdir("given")):
    with open(os.path.join("given", name)) as file:
        print(repr(name), file.read().strip())
names = ["a b", "[x]{y}", "quo'te\"d", "new\nline", "žížala", "-rf", "日本", b"\xff\xfe"]
os.mkdir("made")
for name in names:
    path = os.path.join(b"made", os.fsencode(name))
    with open(path, "wb") as file:
        file.write(os.fsencode(name))
for name in sorted(os.listdir(b"made")):
    with open(os.path.join(b"made", name), "rb") as file:
        print(name, file.read() == name)
print(ascii(sorted(os.listdir("made"))))
