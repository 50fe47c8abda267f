"""unit COMMAND... - run a command with what packaging/systemd/vial.service.in leaves to it.

Not systemd, but what its settings do, by the same system calls: ProtectSystem=strict and
ProtectHome=, the bounding set of capabilities, NoNewPrivileges=, and a umask of its own."""
import ctypes
import os
import re
import struct
import sys

UNIT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/systemd/vial.service.in")
CLONE_NEWNS, MS_BIND, MS_REC, MS_SLAVE = 0x20000, 0x1000, 0x4000, 0x80000
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY, NR_MOUNT_SETATTR = -100, 0x8000, 1, 442
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *args):
    if getattr(libc, name)(*args) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


def set_read_only(path, yes):
    attributes = struct.pack("QQQQ", yes, not yes, 0, 0)
    call("syscall", NR_MOUNT_SETATTR, AT_FDCWD, path.encode(), AT_RECURSIVE, attributes,
         len(attributes))


def main():
    with open(UNIT, encoding="utf-8") as file:
        unit = file.read()
    words = " ".join(re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.M)).split()
    for setting in ("NoNewPrivileges=yes", "ProtectSystem=strict", "ProtectHome=yes"):
        assert "\n%s\n" % setting in unit, setting
    writable = ["/run/vial", "/var/lib/vial", "/var/cache/vial", *os.environ.get("WRITABLE", "").split()]
    call("unshare", CLONE_NEWNS)
    call("mount", b"none", b"/", None, MS_SLAVE | MS_REC, None)
    for path in writable:
        os.makedirs(path, exist_ok=True)
        call("mount", path.encode(), path.encode(), None, MS_BIND | MS_REC, None)
    set_read_only("/", True)
    for path in [*writable, "/dev", "/proc", "/sys"]:
        set_read_only(path, False)
    programs = os.path.dirname(os.path.abspath(sys.argv[1]))
    kept = os.open(programs, os.O_PATH)
    for path in ("/home", "/root"):
        call("mount", b"tmpfs", path.encode(), b"tmpfs", 0, b"mode=0755")
    if not os.path.exists(programs):  # built in somebody's home, and not installed
        os.makedirs(programs)
        call("mount", b"/proc/self/fd/%d" % kept, programs.encode(), None, MS_BIND, None)
    os.umask(0o077)
    capabilities = ",".join("+" + word[4:].lower() for word in words)
    os.execvp("setpriv", ["setpriv", "--bounding-set", "-all," + capabilities, "--no-new-privs", *sys.argv[1:]])


main()
