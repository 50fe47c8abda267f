"""agent - a node of the tests' own, which plays kubelet.

It registers, sends heartbeats and takes the pods that the real scheduler gave it.  With `vial` given it starts a real
`vial serve` for each, with the variables that the pod's container has and the Secrets that it mounts, on
an address of its own from 127/8 (there is no container: no image, no security context); without, a pod is ready as soon as it is
seen.  What it writes to the API server is what a kubelet writes."""
import base64
import datetime
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request

import plane as planes


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Pod:
    """One that was taken: its process, if there is one, and its address."""

    def __init__(self, object_, address, directory):
        self.meta, self.spec = object_["metadata"], object_["spec"]
        self.address, self.dir = address, directory
        self.process = None
        self.is_ready = self.is_ending = False
        self.said = None

    def start(self, vial, secrets):
        container = self.spec["containers"][0]
        env = {item["name"]: item["value"] for item in container["env"]}
        port = env["VIAL_LISTEN"].rsplit(":", 1)[1]
        for name in ("HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "TMPDIR"):
            env[name] = self.dir
        env.update(VIAL_LISTEN="%s:%s" % (self.address, port), STATE_DIRECTORY=self.dir)
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        for volume in self.spec["volumes"]:
            if "secret" in volume:
                self.unpack(volume["secret"]["secretName"], mounts[volume["name"]], secrets, env)
        with open(os.path.join(self.dir, "log"), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([vial, "serve"], env=env, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)

    def unpack(self, name, path, secrets, env):
        """Where variables point to it, they do so still."""
        for key, value in secrets(name).items():
            file = os.path.join(self.dir, key)
            with open(file, "wb") as out:
                out.write(base64.b64decode(value))
            os.chmod(file, 0o400)
            for variable in env:
                env[variable] = env[variable].replace(os.path.join(path, key), file)

    def log(self):
        with open(os.path.join(self.dir, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()

    def looks_ready(self):
        if not self.process:
            return True
        port = self.spec["containers"][0]["ports"][0]["containerPort"]
        try:
            with urllib.request.urlopen("http://%s:%d/readyz" % (self.address, port), timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def has_ended(self):
        return self.process and self.process.poll() is not None

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)

    def done(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Agent:
    count = 0
    all = []

    def __init__(self, plane, vial=None):
        Agent.all.append(self)
        Agent.count += 1
        self.plane, self.vial = plane, vial
        self.name, self.number = "node-%d" % Agent.count, Agent.count
        self.next_address = 1
        self.pods = {}
        self.is_over = self.is_dead = False
        self.register()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def conditions(self):
        return [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(),
                 "lastTransitionTime": now()}]

    def register(self):
        room = {"cpu": "64", "memory": "64Gi", "pods": "200", "ephemeral-storage": "500Gi"}
        self.plane.ask("POST", "/api/v1/nodes", {"metadata": {"name": self.name}})
        self.plane.patch("/api/v1/nodes/%s/status" % self.name, {
            "status": {"capacity": room, "allocatable": room, "conditions": self.conditions()}})

    def work(self):
        beat = 0
        while not self.is_over:
            try:
                if not self.is_dead:
                    if beat % 20 == 0:
                        self.plane.patch("/api/v1/nodes/%s/status" % self.name,
                                         {"status": {"conditions": self.conditions()}})
                    self.look()
                beat += 1
            except (OSError, planes.Refused):
                pass  # the API server is away, as it may be
            self.plane_pause()

    @staticmethod
    def plane_pause():
        threading.Event().wait(0.1)

    def look(self):
        answer = self.plane.ask("GET", "/api/v1/pods?fieldSelector=spec.nodeName%3D" + self.name)
        seen = {item["metadata"]["uid"]: item for item in answer["items"]}
        for uid, item in seen.items():
            if uid not in self.pods:
                self.take(uid, item)
            self.tend(self.pods[uid], item)
        for uid in [uid for uid in self.pods if uid not in seen]:
            self.pods.pop(uid).done()  # it was deleted by force

    def take(self, uid, item):
        address = "127.77.%d.%d" % (self.number, self.next_address)
        self.next_address += 1
        pod = self.pods[uid] = Pod(item, address, tempfile.mkdtemp(prefix="vial-pod-"))
        if self.vial:
            pod.start(self.vial, lambda name: self.plane.ask(
                "GET", "/api/v1/namespaces/%s/secrets/%s" % (pod.meta["namespace"], name))["data"])

    def tend(self, pod, item):
        path = "/api/v1/namespaces/%s/pods/%s" % (pod.meta["namespace"], pod.meta["name"])
        if item["metadata"].get("deletionTimestamp"):
            if not pod.is_ending:
                pod.end()
            pod.is_ending = True
            if not pod.process or pod.has_ended():
                self.plane.ask("DELETE", path, {"gracePeriodSeconds": 0,
                                                "preconditions": {"uid": pod.meta["uid"]}})
            return
        if pod.has_ended() and self.vial:  # restartPolicy: Always
            pod.start(self.vial, lambda name: self.plane.ask(
                "GET", "/api/v1/namespaces/%s/secrets/%s" % (pod.meta["namespace"], name))["data"])
        is_ready = not pod.has_ended() and pod.looks_ready()
        if pod.said != is_ready:
            self.plane.patch(path + "/status", {"status": self.status(pod, is_ready)})
            pod.said = is_ready

    @staticmethod
    def status(pod, is_ready):
        word = "True" if is_ready else "False"
        return {"phase": "Running", "podIP": pod.address, "podIPs": [{"ip": pod.address}],
                "conditions": [{"type": "Ready", "status": word}, {"type": "ContainersReady", "status": word}],
                "containerStatuses": [{"name": "vial", "ready": is_ready, "restartCount": 0,
                                       "image": "vial", "imageID": "vial",
                                       "state": {"running": {"startedAt": now()}}}]}

    def find(self, name):
        for pod in self.pods.values():
            if pod.meta["name"] == name:
                return pod
        return None

    def close(self):
        Agent.all.remove(self)
        self.is_over = True
        self.thread.join()
        for pod in self.pods.values():
            pod.done()
        try:
            self.plane.ask("DELETE", "/api/v1/nodes/" + self.name)
        except (OSError, planes.Refused):
            pass
