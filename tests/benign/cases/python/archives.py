# tar and zip archives, written and read back.
import io
import os
import shutil
import tarfile
import zipfile

os.makedirs("pack/inner")
for name, text in (("a.txt", "alpha"), ("inner/b.txt", "beta" * 1000), ("ž.txt", "ž")):
    with open(os.path.join("pack", name), "w") as file:
        file.write(text)
os.symlink("a.txt", "pack/link")
for mode, name in (("w", "p.tar"), ("w:gz", "p.tar.gz"), ("w:bz2", "p.tar.bz2"), ("w:xz", "p.tar.xz")):
    with tarfile.open(name, mode) as archive:
        archive.add("pack")
    with tarfile.open(name) as archive:
        print(name, sorted((m.name, m.size, m.issym()) for m in archive))
        archive.extractall("out-" + name)
    print(open(f"out-{name}/pack/link").read())
with zipfile.ZipFile("p.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    for root, dirs, files in os.walk("pack"):
        dirs.sort()
        for name in sorted(files):
            archive.write(os.path.join(root, name))
    archive.writestr("memo", "from memory")
with zipfile.ZipFile("p.zip") as archive:
    print(archive.testzip(), [(i.filename, i.file_size) for i in archive.infolist()])
    print(archive.read("memo"))
shutil.make_archive("made", "zip", "pack")
shutil.unpack_archive("made.zip", "unpacked")
print(sorted(os.listdir("unpacked")))
memory = io.BytesIO()
with tarfile.open(fileobj=memory, mode="w") as archive:
    info = tarfile.TarInfo("virtual")
    info.size = 5
    archive.addfile(info, io.BytesIO(b"12345"))
print(len(memory.getvalue()))
