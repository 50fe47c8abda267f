# hostile-test
# id: FS-101
# title: names, counters and namespaces of others by way of /proc
# class: info-leak
# lang: python
# expect: contained
# severity: medium
# bounds: read-only
# why: /proc tells of the host, of other sandboxes and of who keeps us, unless it is kept from it
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import glob, os, re
def text(path):
    try:
        with open(path, "rb") as f: return f.read(1 << 20).decode("latin-1")
    except OSError: return ""
mine = set(glob.glob("/proc/[0-9]*"))
if len(mine) > 40: esc("%d processes in sight" % len(mine))
for pid in range(1, 4000):
    if "/proc/%d" % pid not in mine and text("/proc/%d/comm" % pid) and not os.path.exists("/proc/self/task/%d" % pid):
        esc("process %d is hidden, and can be read" % pid); break
for name in ("maps", "environ", "mem", "syscall", "stack", "auxv", "io", "pagemap", "mountinfo"):
    if text("/proc/1/" + name): esc("/proc/1/" + name)
for name in ("root", "cwd", "exe", "ns/user", "ns/mnt", "ns/pid", "fd/0", "fd/3"):
    try: esc("/proc/1/%s -> %s" % (name, os.readlink("/proc/1/" + name)))
    except OSError: pass
for name in ("keys", "key-users", "locks", "kallsyms", "timer_list", "sched_debug", "slabinfo", "vmallocinfo", "kmsg", "pagetypeinfo", "iomem"):
    lines = [l for l in text("/proc/" + name).splitlines() if not re.search(r"\b0+\b.*\b0+\b", l)]
    if lines: esc("/proc/%s: %s" % (name, lines[0][:60]))
if re.search(r"/[^ \n]+", "\n".join(l.split(":", 2)[-1] for l in text("/proc/self/cgroup").splitlines())): esc("its group's path: " + text("/proc/self/cgroup")[:80])
for line in text("/proc/self/mountinfo").splitlines():
    if re.search(r"upperdir=|workdir=|/home/|/root/|/var/lib/docker", line): esc("mount: " + line[:100])
host = {"user": "4026531837", "mnt": "4026531841", "net": "4026531840", "pid": "4026531836", "ipc": "4026531839", "uts": "4026531838", "cgroup": "4026531835"}
for name, inode in host.items():
    try:
        if inode in os.readlink("/proc/self/ns/" + name): esc("the host's %s namespace" % name)
    except OSError: pass
for path in glob.glob("/proc/sys/**", recursive=True)[:4000]:
    if os.path.isfile(path) and os.access(path, os.W_OK): esc(path + " can be written"); break
done("nothing of others")
