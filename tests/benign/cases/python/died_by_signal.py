# A signal that the program sends to itself ends it.
import os
import signal

print("going", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
