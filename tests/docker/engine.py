"""engine - Docker's own engine, started for these tests: a socket, data and control groups of its own."""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
import patience

IMAGE = "vial:latest"
PATIENCE_S = 120  # a hang, not a measure of speed


def wait_until(condition):
    return patience.wait_until(condition, PATIENCE_S, 0.1)


def available():
    """Why not, or None."""
    if os.geteuid() != 0:
        return "dockerd needs root"
    return None if shutil.which("dockerd") else "dockerd is not installed"


class Engine:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="vial-docker-", dir="/var/tmp")
        self.socket = os.path.join(self.dir, "s")
        self.groups = os.path.basename(self.dir)
        with open(os.path.join(self.dir, "log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([
                "dockerd", "--host", "unix://" + self.socket, "--data-root", self.path("data"), "--exec-root", self.path("exec"),
                "--pidfile", self.path("pid"), "--cgroup-parent", "/" + self.groups, "--bridge", "none", "--iptables=false",
                "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--add-runtime", "another=runc"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        try:
            if not wait_until(self.answers):
                raise RuntimeError("dockerd did not start:\n" + self.log()[-3000:])
            # Nobody forwards or masquerades: this host reaches workers, and they reach this host alone.
            self.ask("POST", "/networks/create", {"Name": "workers", "Driver": "bridge", "Internal": True,
                                                  "IPAM": {"Config": [{"Subnet": "10.214.0.0/24"}]}})
        except BaseException:
            self.close()
            raise

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def log(self):
        with open(self.path("log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def answers(self):
        try:
            return self.ask("GET", "/version")
        except OSError:
            if self.process.poll() is not None:
                raise RuntimeError("dockerd ended:\n" + self.log()[-3000:]) from None
            return None

    def ask(self, method, path, body=None, kind="application/json", fine=(200, 201, 204, 304)):
        made = patience.UnixConnection(self.socket, PATIENCE_S)
        try:
            if body is not None and kind == "application/json":
                body = json.dumps(body)
            made.request(method, "/v1.41" + path, body, {"Content-Type": kind} if body is not None else {})
            response = made.getresponse()
            text = response.read()
            if response.status not in fine:
                raise RuntimeError("%s %s: %d %s" % (method, path, response.status, text[:500]))
            return json.loads(text) if text.startswith((b"{", b"[")) and text.count(b"\n") < 2 else text
        finally:
            made.close()

    def load(self, tar):
        with open(tar, "rb") as file:
            self.ask("POST", "/images/load?quiet=1", file, "application/x-tar")

    def containers(self, fleet=None):
        """Those of a fleet, or all: by name."""
        listed = self.ask("GET", "/containers/json?all=1")
        return {item["Names"][0][1:]: item for item in listed
                if fleet is None or item["Labels"].get("vial.fleet") == fleet}

    def inspect(self, name):
        return self.ask("GET", "/containers/%s/json" % name)

    def logs(self, name):
        return self.ask("GET", "/containers/%s/logs?stdout=1&stderr=1" % name).decode(errors="replace")

    def remove(self, name):
        self.ask("DELETE", "/containers/%s?force=1&v=1" % name, fine=(204, 404, 409))

    def close(self):
        if self.process.poll() is None:
            for name in self.containers():
                self.remove(name)
            self.ask("POST", "/networks/prune", fine=(200, 404, 500))
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1] for line in file]
        for path in reversed([path for path in mounts if path.startswith(self.dir + "/")]):
            subprocess.run(["umount", "-l", path], check=False)
        for group in glob.glob("/sys/fs/cgroup/*/" + self.groups) + glob.glob("/sys/fs/cgroup/" + self.groups):
            for at, _, _ in os.walk(group, topdown=False):
                try:
                    os.rmdir(at)
                except OSError:
                    pass
        shutil.rmtree(self.dir, ignore_errors=True)
