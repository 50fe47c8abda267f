"""Who and where a program is inside a sandbox."""
import getpass
import os
import platform

print(f"hello from Python {platform.python_version()}")
print(f"I am {getpass.getuser()}, process {os.getpid()} of host {platform.node()}, in {os.getcwd()}")
