"""kubelet - a real node: Kubernetes' own kubelet and kube-proxy, with containerd and runc of today, and Debian's network plugins."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile

import image
import plane as planes
import proxy

CONTAINERD = """version = 2
root = "%(dir)s/containerd"
state = "%(run)s/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = "%(run)s/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%(pause)s"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "%(dir)s/cni"
"""
NETWORKS = "/run/netns/cni-"
ADDRESS = "10.213.0.1"  # the node's own
NETWORK = {"cniVersion": "0.4.0", "name": "vial-test", "plugins": [
    {"type": "bridge", "bridge": "vialtest0", "isGateway": True, "ipMasq": False,
     "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.213.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
    {"type": "loopback"}]}


def left_behind():
    return {*glob.glob(NETWORKS + "*"), *glob.glob("/sys/fs/cgroup/*/kubepods")}


class Node:
    name = "real-node"
    all = []

    def __init__(self, plane):
        Node.all.append(self)
        self.plane = plane
        self.dir = tempfile.mkdtemp(prefix="vial-node-", dir="/var/tmp")
        self.run = tempfile.mkdtemp(prefix="vial-node-", dir="/run")
        for path in (self.dir, self.run):
            os.chmod(path, 0o711)  # containers of other users are below
        self.parts = []
        self.proxy = self.way_in = None
        self.others = left_behind()
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def start(self):
        os.makedirs(self.path("cni"))
        network = {**NETWORK, "plugins": [dict(plugin) for plugin in NETWORK["plugins"]]}
        network["plugins"][0]["ipam"] = {**network["plugins"][0]["ipam"], "dataDir": self.path("networks")}
        with open(self.path("cni", "10-vial.conflist"), "w", encoding="utf-8") as file:
            json.dump(network, file)
        with open(self.path("containerd.toml"), "w", encoding="utf-8") as file:
            file.write(CONTAINERD % {"dir": self.dir, "run": self.run, "pause": image.PAUSE})
        self.containerd = planes.Process("containerd", ["containerd", "--config", self.path("containerd.toml")], self.dir)
        self.parts.append(self.containerd)
        if not planes.wait_until(lambda: self.ctr("version", check=False).returncode == 0, 60):
            raise RuntimeError("containerd did not start:\n" + self.containerd.log()[-2000:])
        for archive in (image.make_pause(self.dir), image.ARCHIVE):
            self.ctr("images", "import", archive)
        # The plugin would make it with the first pod; the node itself has its address before.  A Service that kube-proxy
        # does not know yet leads nowhere: not out of this host, to whoever has that address there.
        for words in ("link add vialtest0 type bridge", "address add %s/24 dev vialtest0" % ADDRESS, "link set vialtest0 up",
                      "route add %s dev vialtest0" % planes.SERVICES):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
        self.start_kubelet()

    def start_kubelet(self):
        config = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
                  "failCgroupV1": False, "cgroupDriver": "cgroupfs", "failSwapOn": False,
                  "containerRuntimeEndpoint": "unix://%s/containerd.sock" % self.run,
                  "enableServer": False, "healthzPort": 0, "makeIPTablesUtilChains": False,
                  "cgroupsPerQOS": True, "enforceNodeAllocatable": [], "cgroupRoot": "/",
                  "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"},
                  "imageGCHighThresholdPercent": 100, "nodeStatusUpdateFrequency": "2s",
                  "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
                  "authorization": {"mode": "AlwaysAllow"}, "resolvConf": "/dev/null",
                  "podLogsDir": self.path("logs"), "registerNode": True}
        with open(self.path("kubelet.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.kubelet = planes.Process("kubelet", [
            planes.PROGRAM, "kubelet", "--config=" + self.path("kubelet.json"), "--root-dir=" + self.path("kubelet"),
            "--kubeconfig=" + self.plane.path("admin.conf"), "--hostname-override=" + self.name,
            "--cert-dir=" + self.path("certificates"), "--node-ip=" + ADDRESS], self.dir)
        self.parts.append(self.kubelet)

        def is_ready():
            if not self.kubelet.is_up():
                raise RuntimeError("kubelet ended:\n" + self.kubelet.log()[-3000:])
            try:
                status = self.plane.ask("GET", "/api/v1/nodes/" + self.name)["status"]
            except planes.Refused:
                return False
            return any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions", []))
        if not planes.wait_until(is_ready, 120, 0.5):
            raise RuntimeError("the node did not become ready:\n" + self.kubelet.log()[-3000:])

    def start_proxy(self):
        """kube-proxy, and what it has to know: where the API server is for those who ask its Service."""
        self.way_in = proxy.Proxy(self.plane.port, ADDRESS)
        self.plane.put_endpoint("default", "kubernetes", "https", ADDRESS, self.way_in.port)
        config = {"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "iptables",
                  "clientConnection": {"kubeconfig": self.plane.path("admin.conf")}, "hostnameOverride": self.name,
                  "conntrack": {"maxPerCore": 0, "min": 0}, "iptables": {"localhostNodePorts": False},
                  "healthzBindAddress": "", "metricsBindAddress": "127.0.0.1:%d" % planes.free_port()}
        with open(self.path("proxy.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        self.proxy = planes.Process("kube-proxy", [planes.PROGRAM, "kube-proxy", "--config=" + self.path("proxy.json")],
                                    self.dir)
        self.parts.append(self.proxy)

    def stop_proxy(self):
        """Its rules stay when it ends; it has a word for that."""
        self.proxy.stop()
        planes.Process("kube-proxy", [planes.PROGRAM, "kube-proxy", "--cleanup"], self.dir).process.wait()
        for words in ("-D INPUT -j", "-D OUTPUT -j", "-F", "-X"):  # which it leaves to a kubelet that shares it
            subprocess.run(["iptables", "-w", *words.split(), "KUBE-FIREWALL"], capture_output=True, check=False)
        self.way_in.close()
        self.plane.remove_endpoint("default", "kubernetes")

    def ctr(self, *words, check=True):
        return subprocess.run(["ctr", "--address", self.run + "/containerd.sock", "--namespace", "k8s.io", *words],
                              capture_output=True, text=True, check=check)

    def close(self):
        Node.all.remove(self)
        if self.proxy:
            self.stop_proxy()
        for part in reversed(self.parts[1:]):
            part.stop()
        if self.parts:
            self.remove_containers()
            self.containerd.stop()
        self.remove_links()
        self.unmount()
        self.remove_remains()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.run, ignore_errors=True)

    def remove_containers(self):
        tasks = self.ctr("tasks", "list", "-q", check=False).stdout.split()
        for task in tasks:
            self.ctr("tasks", "delete", "--force", task, check=False)
        for container in self.ctr("containers", "list", "-q", check=False).stdout.split():
            self.ctr("containers", "delete", container, check=False)

    @staticmethod
    def remove_links():
        """Pods' ends of them as well: a sandbox of somebody else's may hold a network that was there when it began."""
        listed = subprocess.run(["ip", "-o", "link", "show", "master", "vialtest0"], capture_output=True, text=True,
                                check=False).stdout
        for name in [line.split()[1].split("@")[0].rstrip(":") for line in listed.splitlines()] + ["vialtest0"]:
            subprocess.run(["ip", "link", "delete", name], capture_output=True, check=False)

    def remove_remains(self):
        """Networks and groups of pods that nobody was there to end: no kubelet does it when it stops."""
        for path in sorted(left_behind() - self.others):
            if path.startswith(NETWORKS):
                subprocess.run(["ip", "netns", "delete", os.path.basename(path)], check=False)
                continue
            for folder, _, _ in os.walk(path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)

    def unmount(self):
        """What is mounted below our directories, the last first."""
        with open("/proc/self/mounts", encoding="utf-8") as file:
            mounts = [line.split()[1] for line in file]
        for path in reversed([path for path in mounts if path.startswith((self.dir + "/", self.run + "/"))]):
            subprocess.run(["umount", "-l", path], check=False)

    def kill(self):
        """The machine is gone, all at once."""
        for part in self.parts:
            part.stop(signal.SIGKILL)
