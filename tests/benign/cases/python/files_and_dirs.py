# The everyday of files: make, list, rename, copy, append, seek, remove.
import os
import pathlib
import shutil

root = pathlib.Path("tree")
for name in ("a/b/c", "a/d", "e"):
    (root / name).mkdir(parents=True)
for number, path in enumerate(sorted(p for p in root.rglob("*") if p.is_dir())):
    (path / f"file {number}.txt").write_text(f"line of {path.as_posix()}\n" * (number + 1))
(root / "e").rename(root / "renamed")
shutil.copytree(root / "a", root / "copy")
shutil.move(root / "copy" / "d", root / "moved")
for path in sorted(root.rglob("*")):
    print(path.as_posix(), path.stat().st_size if path.is_file() else "dir")
with open(root / "log", "w+b") as log:
    log.write(b"0123456789")
    log.seek(-3, os.SEEK_END)
    log.write(b"xyz!")
    log.truncate(12)
    log.seek(0)
    print(log.read())
with open(root / "log", "a") as log:
    log.write("appended")
print((root / "log").read_bytes())
try:
    os.rmdir(root)
except OSError as error:
    print(error.strerror)
try:
    open(root / "log", "x")
except FileExistsError as error:
    print(error.strerror, error.filename)
shutil.rmtree(root)
print(root.exists(), sorted(p for p in os.listdir() if not p.endswith(".py")))
