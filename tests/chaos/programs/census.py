"""What a program can find out about where it is, as one JSON object.  Nothing random, no times."""
import ctypes
import glob
import json
import os
import re
import resource
import signal
import sys

libc = ctypes.CDLL(None, use_errno=True)


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as why:
        return why.strerror


def tree(top):
    found = {}
    for directory, names, files in os.walk(top):
        for name in names + files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            found[path] = [oct(st.st_mode), st.st_uid, st.st_gid, st.st_size]
    return found


def room(path):
    st = os.statvfs(path)
    return [st.f_blocks, st.f_bfree, st.f_files, st.f_ffree, st.f_flag]


def mounts():
    """Without what is a number of the kernel's own."""
    rows = []
    for line in read("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        words = left.split()
        rows.append(re.sub(r"[ug]id=\d+", "ID", " ".join(words[3:6] + right.split())))
    return rows


def status():
    keep = ("Name Umask State Tgid Ngid Pid PPid TracerPid Uid Gid FDSize Groups NStgid NSpid NSpgid NSsid "
            "Kthread Threads SigQ SigPnd ShdPnd SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd "
            "CapAmb NoNewPrivs Seccomp Cpus_allowed_list Mems_allowed_list "
            "CoreDumping THP_enabled").split()
    rows = dict(line.split(":\t", 1) for line in read("/proc/self/status").splitlines() if ":\t" in line)
    rows["SigQ"] = rows["SigQ"].split("/")[0]
    return {name: rows.get(name) for name in keep}


def descriptors():
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = re.sub(r"\d+", "N", os.readlink("/proc/self/fd/" + name))
        except OSError:
            pass  # the listing's own
    return found


def network():
    names = ("unix tcp tcp6 udp udp6 raw raw6 icmp packet netlink sockstat sockstat6 dev snmp snmp6 "
             "netstat igmp igmp6 route ipv6_route arp if_inet6 dev_mcast mcfilter mcfilter6 "
             "ip6_flowlabel xfrm_stat protocols wireless fib_trie fib_triestat").split()
    # Addresses in the kernel and numbers of inodes; and what is counted over all of the host.
    numbers = r"(?m)^[0-9a-f]{16}:?|\d{6,} ?$|(mem|alloc|orphan) -?\d+"
    found = {name: re.sub(numbers, "", read("/proc/net/" + name)) for name in names}
    found["protocols"] = [line.split()[0] for line in found["protocols"].splitlines()]
    return found


def ipc():
    found = {kind: read("/proc/sysvipc/" + kind) for kind in ("shm", "sem", "msg")}
    found["keys"] = [line.split()[6:] for line in read("/proc/keys").splitlines()]
    found["mqueue"] = sorted(glob.glob("/dev/mqueue/*"))
    return found


def numbers():
    get = lambda option: libc.prctl(option, 0, 0, 0, 0)  # noqa: E731
    return {
        "pid": os.getpid(), "ppid": os.getppid(), "pgrp": os.getpgrp(), "sid": os.getsid(0),
        "ids": [os.getresuid(), os.getresgid(), os.getgroups()], "nice": os.nice(0),
        "scheduler": [os.sched_getscheduler(0), sorted(os.sched_getaffinity(0))],
        "limits": {name: resource.getrlimit(getattr(resource, name))
                   for name in dir(resource) if name.startswith("RLIMIT_")},
        "prctl": {"dumpable": get(3), "keepcaps": get(7), "securebits": get(27), "timing": get(13),
                  "slack": get(30), "thp": get(42)},
        "personality": libc.personality(0xffffffff), "itimer": [signal.getitimer(n) for n in range(3)],
        "handlers": {n: str(signal.getsignal(n)) for n in range(1, 65)},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    }


def own():
    files = ("cmdline comm cgroup oom_score_adj loginuid sessionid uid_map gid_map setgroups projid_map "
             "limits coredump_filter autogroup timens_offsets attr/current").split()
    # In the maps of ids the ranges before and after its own are as long as its place in them says.
    return {name: re.sub(r" *([2-9]|\d{2,})\b" if name.endswith("_map") else r"\d{6,}", "N", read("/proc/self/" + name))
            for name in files}


def proc():
    return sorted(name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid())


def python():
    return {"argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "flags": str(sys.flags),
            "executable": sys.executable, "main": sorted(sys.modules["__main__"].__dict__),
            "hooks": len(sys.path_hooks), "meta": len(sys.meta_path),
            "streams": [[s.encoding, s.errors, s.line_buffering, s.isatty()]
                        for s in (sys.stdin, sys.stdout, sys.stderr)]}


print(json.dumps({
    "tmp": tree("/tmp"), "shm": tree("/dev/shm"), "workspace": tree("."), "var": tree("/var/tmp"),
    "room": {path: room(path) for path in ("/tmp", "/dev/shm", ".", "/")},
    "mounts": mounts(), "status": status(), "descriptors": descriptors(), "network": network(),
    "ipc": ipc(), "numbers": numbers(), "own": own(), "proc": proc(),
    "environment": dict(os.environ), "python": python(), "cwd": os.getcwd(), "host": list(os.uname()),
    "root": sorted(os.listdir("/")), "dev": sorted(os.listdir("/dev")), "stdin": sys.stdin.read(),
}, sort_keys=True))
