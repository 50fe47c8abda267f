"""bundle - what a container of the tests' own is made by: the config.json of an OCI bundle."""

SAFE = ("nosuid", "nodev")
MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list"]
LOCKED = ["/proc/sys", "/proc/bus", "/proc/irq"]


def mount(target, kind, source, *options):
    return {"destination": target, "type": kind, "source": source, "options": list(options)}


def tmpfs(target, size):
    return mount(target, "tmpfs", "tmpfs", *SAFE, "mode=1777", "size=" + size)


def config(command, environment, uid, cwd, hostname, mounts, linux):
    """A command without any power, in a read-only root; `mounts` come on top of what all have."""
    return {
        "ociVersion": "1.0.0",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": uid},
            "args": command,
            "env": ["%s=%s" % pair for pair in environment.items()],
            "cwd": cwd,
            "capabilities": {},
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": hostname,
        "mounts": [
            mount("/proc", "proc", "proc"),
            mount("/dev", "tmpfs", "tmpfs", "nosuid", "mode=755", "size=64k"),
            mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance",
                  "ptmxmode=0666", "mode=0620"),
            mount("/dev/shm", "tmpfs", "shm", *SAFE, "mode=1777", "size=100m"),
            *mounts,
        ],
        "linux": linux,
    }
