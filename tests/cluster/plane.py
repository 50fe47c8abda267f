"""plane - a Kubernetes control plane of the tests' own: etcd, API server, controllers, scheduler.

All of it is real; its addresses, keys and files are made for one run and gone after it."""
import base64
import json
import os
import secrets
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "common"))
import patience
from patience import free_port

PROGRAM = None   # set by `run`: all parts of Kubernetes in one
PATIENCE_S = 120 # a hang, not a measure of speed
ADMIN = secrets.token_hex(16)
SERVICES = "10.99.0.0/24"
ADDRESS = "10.99.0.1"  # of the API server inside the cluster: the first of its Services


def wait_until(condition, seconds=PATIENCE_S, pause=0.1):
    return patience.wait_until(condition, seconds, pause)


class Process:
    """A program in the background, with a log, that ends with us."""

    all = []

    def __init__(self, name, words, directory, env=None):
        Process.all.append(self)
        self.name, self.log_path = name, os.path.join(directory, name + ".log")
        with open(self.log_path, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env=env, start_new_session=True)

    def is_up(self):
        return self.process.poll() is None

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self, how=signal.SIGTERM):
        if self.is_up():
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


class Refused(Exception):
    def __init__(self, status, answer):
        super().__init__("%d %s" % (status, answer))
        self.status, self.answer = status, answer


class Plane:
    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="vial-plane-")
        self.parts = {}
        self.etcd_port, self.peer_port, self.port = free_port(), free_port(), free_port()
        self.server = "https://127.0.0.1:%d" % self.port
        try:
            self.make_keys()
            self.start_all()
        except BaseException:
            self.close()
            raise

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def make_keys(self):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=plane", "-addext", "subjectAltName=IP:127.0.0.1,IP:" + ADDRESS,
                        "-keyout", self.path("server.key"), "-out", self.path("server.crt")],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "genrsa", "-out", self.path("account.key"), "2048"], check=True,
                       capture_output=True)
        with open(self.path("tokens"), "w", encoding="ascii") as file:
            file.write('%s,admin,0,"system:masters"\n' % ADMIN)
        self.context = ssl.create_default_context(cafile=self.path("server.crt"))
        self.write_kubeconfig("admin.conf", ADMIN)

    def write_kubeconfig(self, name, token, server=None, token_file=None):
        with open(self.path("server.crt"), "rb") as file:
            authority = base64.b64encode(file.read()).decode()
        user = {"tokenFile": token_file} if token_file else {"token": token}
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                  "clusters": [{"name": "c", "cluster": {"server": server or self.server,
                                                         "certificate-authority-data": authority}}],
                  "users": [{"name": "u", "user": user}]}
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)  # which is YAML
        return path

    def kubectl(self, *words):
        return subprocess.run([PROGRAM, "kubectl", "--kubeconfig", self.path("admin.conf"), *words],
                              capture_output=True, text=True, check=False)

    # ---- processes ----

    def start(self, name, *words):
        self.parts[name] = Process(name, list(words), self.dir)

    def start_all(self):
        etcd = "http://127.0.0.1:%d" % self.etcd_port
        peer = "http://127.0.0.1:%d" % self.peer_port
        self.start("etcd", "etcd", "--data-dir", self.path("etcd"), "--listen-client-urls", etcd,
                   "--advertise-client-urls", etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                   "--initial-cluster", "default=" + peer, "--unsafe-no-fsync")
        self.start_server()
        config = "--kubeconfig=" + self.path("admin.conf")
        self.start("controllers", PROGRAM, "kube-controller-manager", config, "--leader-elect=false",
                   "--service-account-private-key-file=" + self.path("account.key"),
                   "--root-ca-file=" + self.path("server.crt"), "--use-service-account-credentials=false",
                   "--node-monitor-period=1s", "--node-monitor-grace-period=10s",
                   "--node-eviction-rate=10", "--horizontal-pod-autoscaler-sync-period=2s",
                   "--secure-port=%d" % free_port(), "--cert-dir=" + self.path("controllers"))
        self.start("scheduler", PROGRAM, "kube-scheduler", config, "--leader-elect=false",
                   "--secure-port=%d" % free_port(), "--cert-dir=" + self.path("scheduler"))

    def start_server(self):
        self.start("server", PROGRAM, "kube-apiserver", "--etcd-servers=http://127.0.0.1:%d" % self.etcd_port,
                   "--secure-port=%d" % self.port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
                   "--tls-cert-file=" + self.path("server.crt"), "--tls-private-key-file=" + self.path("server.key"),
                   "--token-auth-file=" + self.path("tokens"), "--authorization-mode=RBAC",
                   "--service-account-issuer=https://plane.test",
                   "--service-account-key-file=" + self.path("account.key"),
                   "--service-account-signing-key-file=" + self.path("account.key"),
                   "--service-cluster-ip-range=" + SERVICES, "--endpoint-reconciler-type=none",
                   "--default-not-ready-toleration-seconds=3", "--default-unreachable-toleration-seconds=3",
                   "--anonymous-auth=false", "--profiling=false", "--cert-dir=" + self.path("server"))
        if not wait_until(lambda: self.is_ready() or not self.parts["server"].is_up()) or not self.is_ready():
            raise RuntimeError("the API server did not start:\n" + self.parts["server"].log()[-3000:])

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz", raw=True) == b"ok"
        except (OSError, Refused):
            return False

    def close(self):
        for name in ("scheduler", "controllers", "server", "etcd"):
            if name in self.parts:
                self.parts[name].stop(signal.SIGKILL)  # there is nothing that they should keep
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- requests ----

    def ask(self, method, path, body=None, token=ADMIN, kind="application/json", raw=False):
        request = urllib.request.Request(self.server + path, method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Authorization": "Bearer " + token, "Content-Type": kind})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=60) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            raise Refused(error.code, error.read().decode(errors="replace")) from None
        return text if raw else json.loads(text)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, kind="application/merge-patch+json")

    # ---- what tests need of it ----

    def make_namespace(self, name):
        """With a service account that has the rights of a dispatcher, and no more."""
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        space = "/api/v1/namespaces/" + name
        self.make_account(name)
        rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + name
        self.ask("POST", rights + "/roles", {
            "metadata": {"name": "dispatcher"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch", "create", "delete"]}]})
        self.ask("POST", rights + "/rolebindings", {
            "metadata": {"name": "dispatcher"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dispatcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "dispatcher", "namespace": name}]})

        def has_default():  # without it no pod is admitted
            try:
                return self.ask("GET", space + "/serviceaccounts/default")
            except Refused:
                return None
        if not wait_until(has_default):
            raise RuntimeError("no default service account:\n" + self.parts["controllers"].log()[-2000:])

    def make_account(self, namespace):
        self.ask("POST", "/api/v1/namespaces/%s/serviceaccounts" % namespace, {"metadata": {"name": "dispatcher"}})

    def remove_account(self, namespace):
        self.ask("DELETE", "/api/v1/namespaces/%s/serviceaccounts/dispatcher" % namespace)

    def token(self, namespace, account="dispatcher"):
        path = "/api/v1/namespaces/%s/serviceaccounts/%s/token" % (namespace, account)
        return self.ask("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]

    def short_token(self, namespace, seconds, account="dispatcher"):
        """One that the API server would not give for less than ten minutes, signed with its own key."""
        head, claims, _ = self.token(namespace, account).split(".")

        def decode(text):
            return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

        def encode(data):
            return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
        said = decode(claims)
        said["exp"] = int(time.time()) + seconds
        text = head + "." + encode(json.dumps(said).encode())
        signed = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.path("account.key")],
                                input=text.encode(), capture_output=True, check=True).stdout
        return text + "." + encode(signed)

    def put_endpoint(self, namespace, service, name, address, port):
        """Who answers for a Service that selects no pods."""
        self.ask("POST", "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices" % namespace, {
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}}, "addressType": "IPv4",
            "ports": [{"name": name, "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}]})

    def remove_endpoint(self, namespace, service):
        self.ask("DELETE", "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices/%s" % (namespace, service))

    def pods(self, namespace):
        return {pod["metadata"]["name"]: pod
                for pod in self.ask("GET", "/api/v1/namespaces/%s/pods" % namespace)["items"]}
