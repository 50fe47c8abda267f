# abort(3): SIGABRT, and no core file.
import os

print("about to abort", flush=True)
os.abort()
