# The devices every program expects.
import os
import stat

for name in ("null", "zero", "full", "random", "urandom"):
    print(name, stat.S_ISCHR(os.stat("/dev/" + name).st_mode))
with open("/dev/null", "wb") as null:
    print(null.write(b"gone"), open("/dev/null").read() == "")
with open("/dev/zero", "rb") as zero:
    print(zero.read(5))
with open("/dev/urandom", "rb") as source:
    print(len(source.read(100)), source.read(8) != source.read(8))
try:
    with open("/dev/full", "w") as full:
        full.write("x")
except OSError as error:
    print(error.strerror)
with open("/dev/stdout", "w") as out:
    out.write("by name\n")
print(os.path.isdir("/dev/shm"), os.path.isdir("/dev/fd"), os.path.exists("/dev/stdin"))
with open("/dev/shm/benign", "w") as shared:
    shared.write("shared")
print(open("/dev/shm/benign").read())
os.unlink("/dev/shm/benign")
