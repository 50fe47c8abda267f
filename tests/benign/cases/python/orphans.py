# A grandchild that outlives its parent still reports, and is no zombie of ours.
import os

reader, writer = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:
        os.close(reader)
        os.setsid()
        os.write(writer, b"orphan reporting")
        os._exit(0)
    os._exit(3)
os.close(writer)
_, status = os.wait()
print(os.waitstatus_to_exitcode(status))
print(os.read(reader, 100), os.read(reader, 100))
