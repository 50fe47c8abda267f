"""The rows of the table: what is compared, each with the isolation that vial has by default.

A row is a command that prints "hi" from a fresh Python 3, or a question to a daemon that does
(spawn.c).  `missing` says why a row cannot be had on this host.
"""
import collections
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
import bundle
from bundle import LOCKED, MASKED, SAFE, mount, tmpfs

PYTHON = "/usr/bin/python3"
CODE = 'print("hi")'
# Of all rows, so that none has more to read than another
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8"}
UNIFIED = "/sys/fs/cgroup/unified"
IMAGE = os.environ.get("VIAL_BENCH_IMAGE", "python:3.11-slim")
KEYS = ("plain", "bare", "bwrap", "crun", "crun-cgroup", "docker-run", "docker-exec", "vial",
        "vial-nocgroup", "armed", "on-demand", "data", "step", "reset", "callback", "jupyter", "fork",
        "echo")
WARM = ("armed", "on-demand", "data", "step", "jupyter", "fork", "echo")  # questions to a daemon
SINGLE = ("@after", "@call")  # questions of one client
LASTING = ("step", "callback", "jupyter", "echo")  # nothing has to be made between two of these
ARMED = 16
WIDEST = 8  # clients at once

Row = collections.namedtuple("Row", "key title command missing", defaults=(None,))


def all_rows(vial, scratch, stack):
    """In the order of the table.  What must be undone afterwards goes on the stack."""
    return [
        Row("plain", "python3 -c, no isolation", [PYTHON, "-c", CODE]),
        Row("bare", "python3 -I -S -c, no isolation", [PYTHON, "-I", "-S", "-c", CODE]),
        bubblewrap(),
        crun("crun", "crun, no cgroup", "disabled", scratch),
        crun("crun-cgroup", "crun, cgroup", "cgroupfs", scratch),
        *docker(stack),
        own("vial", "vial run, all layers", vial, []),
        own("vial-nocgroup", "vial run, no cgroup", vial, ["cgroup"]),
        *daemon(vial, scratch, stack),
        jupyter(scratch, stack),
        *floors(scratch, stack),
    ]


def own(key, title, vial, without):
    """An ordinary user has but one uid: there that layer is always missing."""
    weak = without if os.geteuid() == 0 else ["uid", *without]
    options = ["--allow-weak", ",".join(weak)] if weak else []
    return Row(key, title, [vial, "run", "--no-daemon", *options, "-l", "python", "-c", CODE])


def links():
    """What a merged /usr leaves in the root directory."""
    return [name for name in ("bin", "sbin", "lib", "lib64") if os.path.islink("/" + name)]


# ---- bubblewrap ------------------------------------------------------------------------------

def bubblewrap():
    """All namespaces, own ids, no capabilities; it has no cgroup and here no seccomp filter."""
    title = "bubblewrap (no cgroup, seccomp)"
    tool = shutil.which("bwrap")
    if not tool:
        return Row("bwrap", title, [], "not installed")
    words = [tool, "--unshare-all", "--unshare-user", "--uid", "1000", "--gid", "1000",
             "--cap-drop", "ALL", "--hostname", "vial", "--die-with-parent", "--new-session",
             "--clearenv"]
    for name, value in ENVIRONMENT.items():
        words += ["--setenv", name, value]
    words += ["--ro-bind", "/usr", "/usr"]
    for name in links():
        words += ["--symlink", f"usr/{name}", f"/{name}"]
    for path in ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"):
        words += ["--ro-bind-try", path, path]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/sandbox",
              "--remount-ro", "/", "--chdir", "/sandbox", PYTHON, "-c", CODE]
    return Row("bwrap", title, words)


# ---- crun ------------------------------------------------------------------------------------

def bundle_config():
    everyone = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    return bundle.config(
        [PYTHON, "-c", CODE], ENVIRONMENT, 1000, "/sandbox", "vial",
        [mount("/usr", "bind", "/usr", "bind", "ro", *SAFE), tmpfs("/tmp", "100m"), tmpfs("/sandbox", "256m")],
        {
            "namespaces": [{"type": kind} for kind in (
                "pid", "network", "ipc", "uts", "mount", "user", "cgroup")],
            "uidMappings": everyone,
            "gidMappings": everyone,
            "resources": {
                "memory": {"limit": 512 << 20},
                "pids": {"limit": 128},
                "cpu": {"quota": 100000, "period": 100000},
            },
            "maskedPaths": MASKED,
            "readonlyPaths": LOCKED,
        })


def crun(key, title, manager, scratch):
    """An OCI bundle of the host's /usr; no seccomp filter, as bubblewrap."""
    tool = shutil.which("crun")
    if not tool:
        return Row(key, title, [], "not installed")
    if os.geteuid() != 0:
        return Row(key, title, [], "needs root for its id mapping")
    place = os.path.join(scratch, key)
    root = os.path.join(place, "rootfs")
    for name in ("proc", "dev", "usr", "tmp", "sandbox", "sys"):
        os.makedirs(os.path.join(root, name))
    for name in links():
        os.symlink(f"usr/{name}", os.path.join(root, name))
    config = bundle_config()
    if manager == "disabled":
        del config["linux"]["resources"]
    with open(os.path.join(place, "config.json"), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return Row(key, title, [tool, "--root", os.path.join(scratch, "crun-state"),
                            f"--cgroup-manager={manager}", "run", "--bundle", place, "%n"])


def hide_unified(rows):
    """A prefix for commands that takes a cgroup2 mount beside v1's out of their sight."""
    if not any(key.startswith("crun") for key in rows) or not os.path.ismount(UNIFIED):
        return []
    return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", f'umount {UNIFIED} && exec "$@"', "sh"]


# ---- docker ----------------------------------------------------------------------------------

def ask(*words):
    """What docker answers, or None with the last line of its complaint."""
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=30,
                                stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, "no answer within 30 s"
    if answer.returncode == 0:
        return answer.stdout.strip(), None
    return None, (answer.stderr.strip().splitlines() or ["it failed"])[-1]


def docker_tool():
    """Its command, and why that is of no use here, or None."""
    tool = [shutil.which("docker")]
    if os.environ.get("DOCKER_HOST"):  # the rows run with an environment of their own
        tool += ["--host", os.environ["DOCKER_HOST"]]
    reason = None if tool[0] else "not installed"
    if not reason:
        _, reason = ask(*tool, "version", "--format", "{{.Server.Version}}")
    if not reason and ask(*tool, "image", "inspect", IMAGE)[0] is None:
        reason = f"no image {IMAGE} here (VIAL_BENCH_IMAGE names another)"
    return tool, reason


def docker(stack):
    titles = {"docker-run": "docker run", "docker-exec": "docker exec"}
    tool, reason = docker_tool()
    limits = ["--network", "none", "--memory", "512m", "--pids-limit", "128", "--cpus", "1",
              "--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--user", "1000"]
    container = None
    if not reason:
        container, reason = ask(*tool, "run", "-d", "--rm", *limits, IMAGE, "sleep", "3600")
    if reason:
        return [Row(key, title, [], reason) for key, title in titles.items()]
    stack.callback(ask, *tool, "rm", "-f", container)
    return [
        Row("docker-run", titles["docker-run"],
            [*tool, "run", "--rm", *limits, IMAGE, "python3", "-c", CODE]),
        Row("docker-exec", titles["docker-exec"],
            [*tool, "exec", container, "python3", "-c", CODE]),
    ]


# ---- daemons ---------------------------------------------------------------------------------

def start(words, path, stack, patience=120):
    """A daemon that listens at `path` before we go on; why it does not, or None."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE,
                               env={**os.environ, **ENVIRONMENT, "STATE_DIRECTORY": os.path.dirname(path)})
    stack.callback(process.wait)
    stack.callback(process.terminate)
    end = time.monotonic() + patience
    while time.monotonic() < end and process.poll() is None:
        with socket.socket(socket.AF_UNIX) as probe:
            if os.path.exists(path) and probe.connect_ex(path) == 0:
                return None
        time.sleep(0.02)
    process.terminate()
    return (process.stderr.read().decode(errors="replace").strip().splitlines() or ["no answer"])[-1]


def http(body, path="/v1/runs", accept="application/json"):
    text = json.dumps(body)
    return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Accept: {accept}\r\nContent-Length: {len(text)}\r\n\r\n{text}")


def exchange(path, request):
    """One question outside the clock: to warm up, and to see whether it works."""
    with socket.socket(socket.AF_UNIX) as talk:
        talk.settimeout(60)
        talk.connect(path)
        talk.sendall(request.encode())
        return talk.recv(65536)


def daemon(vial, scratch, stack):
    titles = {"armed": "vial daemon, armed", "on-demand": "vial daemon, fork on demand",
              "data": "vial daemon, numpy and pandas"}
    path = os.path.join(scratch, "vial.sock")
    reason = start([vial, "serve", "--socket", path, "--listen", "none", "--armed", str(ARMED),
                    "--max", "64"], path, stack)
    if reason:
        return [Row(key, title, [], reason) for key, title in titles.items()]
    # Limits that no armed sandbox has: one is made for each run.
    requests = {"armed": {"language": "python", "code": CODE},
                "on-demand": {"language": "python", "code": CODE, "limits": {"memory": "500m"}},
                "data": {"environment": "python-data", "code": "import numpy, pandas\n" + CODE}}
    rows = []
    for key, body in requests.items():
        answer = exchange(path, http(body))
        missing = None if b'"hi' in answer else answer.split(b"\r\n\r\n")[-1].decode()[:120]
        rows.append(Row(key, titles[key], ["@ask", path, "hi", http(body)], missing))
    rows += sessions(path)
    time.sleep(2)  # for the pool to fill
    return rows


def session(path):
    answer = exchange(path, http({"language": "python"}, "/v1/sessions"))
    return "/v1/sessions/" + json.loads(answer.split(b"\r\n\r\n")[-1]).get("id", "none")


def sessions(path):
    """A session for each client."""
    requests = [http({"code": CODE}, session(path) + "/runs") for _ in range(WIDEST)]
    answer = exchange(path, requests[0])
    missing = None if b'"hi' in answer else answer.split(b"\r\n\r\n")[-1].decode()[:120]
    name = session(path)
    reset = [http({"code": CODE}, name + "/runs"),
             f"POST {name}/reset HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"]
    call = http({"code": "f(1)", "callbacks": ["f"]}, session(path) + "/runs",
                "application/x-ndjson")
    return [Row("step", "vial session, a step", ["@ask", path, "hi", *requests], missing),
            Row("reset", "vial session, reset", ["@after", path, "HTTP/1.1 200", *reset], missing),
            Row("callback", "vial session, step + callback", ["@call", path, "result", call],
                missing)]


def jupyter(scratch, stack):
    """A live interpreter as notebooks have it: ipykernel, asked through its own client."""
    path = os.path.join(scratch, "jupyter.sock")
    here = pathlib.Path(__file__).resolve().parent
    reason = start([PYTHON, str(here / "jupyter.py"), path], path, stack)
    return Row("jupyter", "ipykernel, a cell", ["@ask", path, "hi", "hi\n"], reason)


def floors(scratch, stack):
    here = pathlib.Path(__file__).resolve().parent
    rows = []
    for key, title in (("fork", "floor: bare fork, same modules"), ("echo", "floor: socket echo")):
        path = os.path.join(scratch, key + ".sock")
        reason = start([PYTHON, str(here / "floor.py"), key, path], path, stack)
        rows.append(Row(key, title, ["@ask", path, "hi", "hi\n"], reason))
    return rows


def guest_memory():
    """Proportional memory of each guest, in MiB: those that sit in a pid namespace of their own."""
    sizes = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or (entry / "comm").read_text() != "python3\n":
                continue
            status = (entry / "status").read_text()
            if len(status.split("NSpid:")[1].split("\n")[0].split()) != 3:
                continue
            pss = (entry / "smaps_rollup").read_text().split("Pss:")[1].split()[0]
            sizes.append(int(pss) / 1024)
        except (OSError, IndexError):
            continue
    return sizes
