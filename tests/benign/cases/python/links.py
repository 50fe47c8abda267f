# Symbolic and hard links, replacing, and what stat says of them.
import os

with open("target", "w") as target:
    target.write("content")
os.symlink("target", "soft")
os.link("target", "hard")
os.symlink("nowhere", "dangling")
os.symlink("loop", "loop")
print(os.readlink("soft"), os.stat("hard").st_nlink, os.path.samefile("soft", "hard"))
print(os.path.lexists("dangling"), os.path.exists("dangling"))
try:
    open("loop")
except OSError as error:
    print(error.strerror)
with open("new", "w") as new:
    new.write("newer")
os.replace("new", "target")
print(open("soft").read(), open("hard").read(), os.stat("hard").st_nlink)
for entry in sorted(os.scandir("."), key=lambda e: e.name):
    if not entry.name.endswith(".py"):
        print(entry.name, entry.is_symlink(), entry.is_file(follow_symlinks=False))
os.mkfifo("pipe")
print(oct(os.stat("pipe").st_mode))
