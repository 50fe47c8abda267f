# Permissions of an ordinary user: umask, chmod, access, refusal.
import os
import stat


def mode(path):
    return stat.filemode(os.stat(path).st_mode)


open("plain", "w").close()
os.mkdir("folder")
print(mode("plain"), mode("folder"))
os.umask(0o077)
open("private", "w").close()
print(mode("private"))
os.chmod("plain", 0o000)
try:
    open("plain").read()
except PermissionError as error:
    print(error.strerror, error.filename)
print(os.access("plain", os.R_OK), os.access("private", os.R_OK | os.W_OK))
os.chmod("plain", 0o640)
print(mode("plain"))
os.chmod("folder", 0o500)
try:
    open("folder/new", "w")
except PermissionError as error:
    print(error.strerror)
os.chmod("folder", 0o1777)
print(mode("folder"))
print([os.access(path, os.W_OK) for path in ("/", "/usr/bin", "/etc/hosts", "/tmp")])
