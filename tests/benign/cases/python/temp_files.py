# tempfile in all its forms, below /tmp.
import os
import tempfile

print(tempfile.gettempdir())
with tempfile.TemporaryDirectory(prefix="benign-") as directory:
    path = os.path.join(directory, "note")
    with open(path, "w") as note:
        note.write("x" * 100000)
    print(os.path.getsize(path), oct(os.stat(directory).st_mode))
print(os.path.exists(directory))
with tempfile.NamedTemporaryFile("w+", suffix=".txt") as named:
    named.write("named")
    named.flush()
    print(open(named.name).read(), oct(os.stat(named.name).st_mode))
with tempfile.TemporaryFile() as nameless:
    nameless.write(b"nameless")
    nameless.seek(0)
    print(nameless.read(), os.fstat(nameless.fileno()).st_nlink)
with tempfile.SpooledTemporaryFile(max_size=10) as spooled:
    spooled.write(b"0123456789abcdef")
    spooled.seek(8)
    print(spooled.read())
handle, path = tempfile.mkstemp()
os.write(handle, b"kept")
os.close(handle)
print(os.path.getsize(path))
os.unlink(path)
