# Time stamps: set, read back to the nanosecond, touched by writing.
import os
import time

path = "stamped"
open(path, "w").close()
os.utime(path, ns=(1_000_000_000_123_456_789, 1_100_000_000_987_654_321))
info = os.stat(path)
print(info.st_atime_ns, info.st_mtime_ns)
with open(path, "a") as file:
    file.write("later")
print(os.stat(path).st_mtime > 1_100_000_001, abs(os.stat(path).st_mtime - time.time()) < 60)
os.utime(path, (0, 0))
print(time.strftime("%Y-%m-%d", time.gmtime(os.path.getmtime(path))))
