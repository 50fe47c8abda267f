"""container - a container as Docker and Kubernetes make them by default, for a command.

Not root, no capability, no_new_privs, a read-only root, masked paths of /proc, and of Docker's
default profile all that forbids what a sandbox is usually made of: namespaces, mounts, and clone3,
whose flags no filter can see.  Made by crun, which must be started by root.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
import bundle
from bundle import LOCKED, MASKED, SAFE, mount, tmpfs

UID = 100000 + os.getpid() % 50000  # of no other such container: its processes are counted together
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNIFIED = "/sys/fs/cgroup/unified"

# What the profile allows only with a capability that such a container has not.
REFUSED = """
acct add_key bpf clock_adjtime clock_settime delete_module fanotify_init finit_module fsconfig fsmount
fsopen fspick get_mempolicy init_module io_uring_enter io_uring_register io_uring_setup ioperm iopl kcmp
kexec_file_load kexec_load keyctl lookup_dcookie mbind mount mount_setattr move_mount move_pages
open_by_handle_at open_tree perf_event_open pivot_root quotactl quotactl_fd reboot request_key
set_mempolicy sethostname setdomainname setns settimeofday swapoff swapon syslog umount2 unshare
userfaultfd vhangup
""".split()
NEW_NAMESPACES = 0x7E020000
EPERM, ENOSYS = 1, 38


def own_profile():
    """That of packaging/container, which Docker reads as it is, and OCI without its map."""
    with open(os.path.join(ROOT, "packaging/container/seccomp.json"), encoding="utf-8") as file:
        profile = json.load(file)
    del profile["archMap"]
    return {**profile, "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": [{key: value for key, value in row.items() if key != "comment"}
                         for row in profile["syscalls"]]}


def default_profile():
    deny = {"action": "SCMP_ACT_ERRNO", "errnoRet": EPERM}
    # "Not equal to zero under the mask" is what is refused; libseccomp knows only "equal".
    bits = [1 << bit for bit in range(32) if NEW_NAMESPACES >> bit & 1]
    clones = [{"names": ["clone"], **deny,
               "args": [{"index": 0, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}]}
              for bit in bits]
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64"],
            "syscalls": [{"names": REFUSED, **deny}, *clones,
                         {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS}]}


def config(command, environment, profile):
    shown = [mount(path, "bind", path, "rbind", "ro", *SAFE)
             for path in ("/usr", "/etc", ROOT) if os.path.exists(path)]
    return bundle.config(
        command, environment, UID, "/tmp", "container",
        [tmpfs("/tmp", "1g"),   # an emptyDir
         tmpfs("/data", "1g"),  # a volume
         *shown],
        {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
         "maskedPaths": [*MASKED, "/proc/interrupts"], "readonlyPaths": LOCKED, "seccomp": profile})


def available():
    """Why not, or None."""
    if not shutil.which("crun"):
        return "crun is not installed"
    return None if os.geteuid() == 0 else "crun needs root here"


def start(command, profile=None, environment=None, **popen):
    """A Popen of it, whose end takes the directory `popen.bundle` along: see run()."""
    place = tempfile.mkdtemp(prefix="vial-container-")
    root = os.path.join(place, "rootfs")
    for name in ("proc", "dev", "usr", "etc", "tmp", "data", "sys", ROOT.lstrip("/")):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):
        if os.path.islink("/" + name):
            os.symlink("usr/" + name, os.path.join(root, name))
    everything = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8",
                  **(environment or {})}
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config(command, everything, profile or default_profile()), file)
    words = ["crun", "--root", os.path.join(place, "state"), "--cgroup-manager=disabled", "run",
             "--bundle", place, os.path.basename(place)]
    if os.path.ismount(UNIFIED):  # beside v1, it confuses crun
        words = ["unshare", "--mount", "sh", "-c", f'umount {UNIFIED} && exec "$@"', "sh", *words]
    process = subprocess.Popen(words, **popen)
    process.bundle = place
    return process


def run(command, profile=None, environment=None, timeout=120, **popen):
    """Its CompletedProcess."""
    process = start(command, profile, environment, stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **popen)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        subprocess.run(["crun", "--root", os.path.join(process.bundle, "state"), "delete", "--force",
                        os.path.basename(process.bundle)], check=False)
        raise
    finally:
        process.kill()
        shutil.rmtree(process.bundle, ignore_errors=True)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


if __name__ == "__main__":
    done = run(sys.argv[1:], timeout=600)
    sys.stdout.write(done.stdout)
    sys.stderr.write(done.stderr)
    sys.exit(done.returncode)
