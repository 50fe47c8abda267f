# A program that closes its own streams, and one that writes to a closed pipe.
import os
import subprocess
import sys

done = subprocess.run("yes | head -n 2; echo ${PIPESTATUS[@]}", shell=True,
                      executable="/bin/bash", capture_output=True, text=True)
print(done.stdout.split())
reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"nobody listens")
except BrokenPipeError as error:
    print(error.strerror)
sys.stdout.flush()
os.close(1)
try:
    print("into the void", flush=True)
except OSError as error:
    print(error.strerror, file=sys.stderr)
os._exit(0)
