"""The server over HTTP, by wrk, beside the pool without it; and one tenant's sleepers beside another's hello."""
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import time
import urllib.request

import peers

ADDED_BAR = 0.3     # ms at p50 that HTTP adds to an armed run
SUSTAINED_BAR = 0.9  # runs/s of POST /execute at eight clients, the pool's own = 1
DELAY_BAR = 2.0     # p95 of a hello beside the sleepers of another tenant, quiet = 1
WIDTHS = (1, 8)
ROUNDS = 5          # of all, in turn, so that what the machine does meanwhile falls on all alike
SLEEPERS = 100
POST = ('wrk.method = "POST"\nwrk.body = [[%s]]\nwrk.headers["Content-Type"] = "application/json"\n'
        'function response(status, headers, body)\n'
        '  if status ~= 200 or not body:find("%s", 1, true) then wrk.thread:stop() end\nend\n')
PAUSE = "function delay() return 20 end\n"  # ms: what one client asks for is armed, as in pool.c
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60000.0}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# ---- without HTTP -----------------------------------------------------------------------------

def in_process(vial, scratch, seconds):
    """{clients: (p50, p99, runs/s)} of the pool, by a program that stands in for the server."""
    folder = os.path.join(scratch, "pool")
    os.makedirs(folder, exist_ok=True)
    shutil.copy2(vial, folder)
    shutil.copy2(os.path.join(os.path.dirname(vial), "bench-pool"), os.path.join(folder, "vial-server"))
    config = os.path.join(folder, "vial.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"# {int(seconds * 1000)}\nserver:\n  armed: {peers.ARMED}\n  max: 64\n")
    done = subprocess.run([os.path.join(folder, "vial"), "serve", "--config", config, "--listen", "none",
                           "--socket", os.path.join(folder, "s")], stdin=subprocess.DEVNULL, check=False,
                          capture_output=True, text=True, timeout=120 + 4 * seconds)
    found = {}
    for line in done.stdout.splitlines():
        if re.fullmatch(r"\d+ \d+ \d+ \d+ \d+", line):
            width, runs, micros, p50, p99 = map(int, line.split())
            found[width] = (p50 / 1000, p99 / 1000, runs / micros * 1e6)
    if set(found) != set(WIDTHS):
        raise RuntimeError((done.stderr.strip().splitlines() or ["no figures"])[-1])
    return found


# ---- with it ----------------------------------------------------------------------------------

def wrk(url, width, seconds, script=None):
    """(p50, p99, requests/s); what is wrong with an answer is an error."""
    words = ["wrk", "-t1", f"-c{width}", f"-d{seconds}s", "--latency", "--timeout", "30s"]
    done = subprocess.run([*words, *(["-s", script] if script else []), url], check=True,
                          capture_output=True, text=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        raise RuntimeError(done.stdout.strip().splitlines()[-3])
    times = {percent: float(value) * UNITS[unit] for percent, value, unit in
             re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s|m)\s*$", done.stdout, re.M)}
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1))
    return times["50"], times["99"], rate


def wait_ready(port, patience=60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        talk = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        talk.request("GET", "/readyz")
        if talk.getresponse().status == 200:
            return
        talk.close()
        time.sleep(0.1)
    raise RuntimeError("it does not become ready")


def warm_up(base, scratch):
    """Its environment is made when somebody first asks for it.  The scripts of wrk."""
    script, paced = (os.path.join(scratch, name) for name in ("execute.lua", "paced.lua"))
    body = json.dumps({"generated_code": "print('hi')", "language": "python", "timeout": 10})
    for _ in range(2 * peers.ARMED):
        urllib.request.urlopen(urllib.request.Request(
            base + "/execute", body.encode(), {"Content-Type": "application/json"}), timeout=120).close()
    for path, pause in ((script, ""), (paced, PAUSE)):
        with open(path, "w", encoding="utf-8") as file:
            file.write(POST % (body, "hi") + pause)
    wrk(base + "/execute", max(WIDTHS), 3, script)
    return script, paced


def typical(rounds):
    """Of several of what in_process() gives, the medians."""
    return {width: tuple(statistics.median(found[width][i] for found in rounds) for i in range(3)) for width in WIDTHS}


def side_by_side(vial, base, scratch, seconds):
    """The pool, POST /execute and GET /, as in_process() has it; and what HTTP adds at p50, in ms."""
    script, paced = warm_up(base, scratch)
    pools, executes = [], []
    for _ in range(ROUNDS):
        pools.append(in_process(vial, scratch, seconds))
        executes.append({width: wrk(base + "/execute", width, seconds, paced if width == 1 else script)
                         for width in WIDTHS})
    added = statistics.median(execute[1][0] - pool[1][0] for execute, pool in zip(executes, pools))
    return typical(pools), typical(executes), {width: wrk(base + "/", width, seconds) for width in WIDTHS}, added


# ---- two tenants ------------------------------------------------------------------------------

class Client:
    """One connection that asks the same again and again."""

    def __init__(self, port, token, code):
        body = json.dumps({"language": "python", "code": code})
        self.request = (f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode()
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=60)

    def ask(self):
        start = time.perf_counter()
        self.sock.sendall(self.request)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.sock.recv(65536)
        head, _, body = got.partition(b"\r\n\r\n")
        left = int(head.lower().split(b"content-length:")[1].split()[0]) - len(body)
        while left > 0:
            left -= len(self.sock.recv(65536))
        return (time.perf_counter() - start) * 1000 if head.startswith(b"HTTP/1.1 200") else None


def hellos(port, token, count):
    client = Client(port, token, "print('hi')")
    times = []
    for _ in range(count):
        times.append(client.ask())
        time.sleep(0.02)
    client.sock.close()
    if None in times:
        raise RuntimeError(f"{times.count(None)} hellos were refused")
    return times


@contextlib.contextmanager
def sleepers(port, token, scratch):
    """A crowd in a process of its own: what it takes of ours would be counted as the server's."""
    script = os.path.join(scratch, "sleep.lua")
    with open(script, "w", encoding="utf-8") as file:
        body = json.dumps({"language": "python", "code": "import time; time.sleep(0.1)"})
        file.write(f'wrk.method = "POST"\nwrk.body = [[{body}]]\n'
                   f'wrk.headers["Content-Type"] = "application/json"\n'
                   f'wrk.headers["Authorization"] = "Bearer {token}"\n')
    crowd = subprocess.Popen(["wrk", "-t1", f"-c{SLEEPERS}", "-d1h", "--timeout", "60s", "-s", script,
                              f"http://127.0.0.1:{port}/v1/runs"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(1)
        yield
        if crowd.poll() is not None:
            raise RuntimeError("the sleepers went away")
    finally:
        crowd.kill()
        crowd.wait()


def two_tenants(port, tokens, scratch, count):
    """p95 of a hello when it is quiet, and beside the sleepers of another tenant."""
    quiet, beside = [], []
    for _ in range(ROUNDS):
        quiet += hellos(port, tokens[0], count // ROUNDS)
        with sleepers(port, tokens[1], scratch):
            beside += hellos(port, tokens[0], count // ROUNDS)
        time.sleep(1)  # until the last of them are gone
    return [sorted(times)[int(len(times) * 0.95)] for times in (quiet, beside)]


# ---- all of it --------------------------------------------------------------------------------

def say(met, text):
    return f"{'met' if met else 'NOT MET'}: {text}"


def line(title, found):
    return "  ".join([f"{title:34}"] + [f"{width} client{'s' * (width > 1)}: p50 {p50:.2f} ms, p99 {p99:.2f} ms, "
                                        f"{rate:.0f}/s" for width, (p50, p99, rate) in found.items()])


def measure(vial, scratch, seconds):
    """Lines: the rows, then their bars."""
    if not shutil.which("wrk"):
        return ["left out: the server over HTTP: wrk is not installed"]
    folder, port = os.path.join(scratch, "web"), free_port()
    os.mkdir(folder)
    path, config = os.path.join(folder, "s"), os.path.join(folder, "vial.yaml")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"server:\n  listen: ['127.0.0.1:{port}']\n  armed: {peers.ARMED}\n  max: 64\n"
                   f"  tokens: {folder}/tokens\n  anonymous: always\n  log_level: error\n")
    try:
        tokens = [subprocess.run([vial, "token", "create", "--config", config, "--tenant", name], check=True,
                                 capture_output=True, text=True).stdout.split()[-1]
                  for name in ("one", "two")]
        with contextlib.ExitStack() as stack:
            reason = peers.start([vial, "serve", "--config", config, "--socket", path], path, stack)
            if reason:
                return [f"left out: the server over HTTP: {reason}"]
            wait_ready(port)
            pool, execute, front, added = side_by_side(vial, f"http://127.0.0.1:{port}", scratch,
                                                       max(2, round(seconds / 3)))
            quiet, beside = two_tenants(port, tokens, scratch, int(seconds * 30))
    except (RuntimeError, OSError, subprocess.SubprocessError) as why:
        return [f"left out: the server over HTTP: {why}"]
    kept = execute[8][2] / pool[8][2]
    return [line("the pool, in process", pool), line("POST /execute", execute), line("GET /", front),
            say(added <= ADDED_BAR, f"HTTP adds {added:.2f} ms at p50 to an armed run, bar at most {ADDED_BAR:g}"),
            say(kept >= SUSTAINED_BAR, f"POST /execute, runs/s at 8 at once, the pool's own = 1: {kept:.2f}, "
                f"bar at least {SUSTAINED_BAR:g}"),
            say(beside <= DELAY_BAR * quiet, f"a hello beside {SLEEPERS} sleepers of another tenant: p95 "
                f"{beside:.1f} ms, quiet {quiet:.1f} ms, bar at most {DELAY_BAR:g} times that")]
