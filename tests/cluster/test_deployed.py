"""deploy/ as it is, on a real node: dispatchers in pods, with their service account, through a Service."""
import http.client
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import adapter
import cluster
import image
import kubelet
import plane as planes

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
SPACE = "codemie-runtime"
PODS = "/api/v1/namespaces/%s/pods" % SPACE
DISPATCHERS = {"app.kubernetes.io/name": "vial", "app.kubernetes.io/component": "dispatcher"}
WORKERS = {"vial/fleet": "vial"}


def make_token(place, *words):
    """As docs/CLUSTER.md has it."""
    made = subprocess.run([cluster.VIAL, "token", "create", *words], capture_output=True, text=True, check=True,
                          env={**os.environ, "VIAL_TOKENS": os.path.join(place, "tokens.yaml")})
    return made.stdout.split()[-1]


@unittest.skipUnless(os.path.exists(image.ARCHIVE), "there is no image: make image")
class Deployed(unittest.TestCase):
    """One deployment for all: what one test kills is well again before the next."""

    @classmethod
    def setUpClass(cls):
        cls.plane = cluster.PLANE
        cls.node = kubelet.Node(cls.plane)
        cls.addClassCleanup(cls.node.close)
        cls.node.start_proxy()
        profiles = cls.node.path("kubelet", "seccomp", "profiles")
        os.makedirs(profiles)
        shutil.copy(os.path.join(ROOT, "deploy/seccomp/vial.json"), profiles)
        cls.place = cls.plane.path("deploy")
        shutil.copytree(os.path.join(ROOT, "deploy"), cls.place)
        with open(os.path.join(cls.place, "relay-key"), "w", encoding="ascii") as file:
            file.write(secrets.token_hex(32))
        cls.token = make_token(cls.place, "--tenant", "demo")
        cls.monitor = make_token(cls.place, "--tenant", "monitor", "--scopes", "metrics")
        cls.applied = cls.plane.kubectl("apply", "-k", cls.place)
        cls.addClassCleanup(cls.remove)

    @classmethod
    def remove(cls):
        """Whoever makes pods first; then those."""
        cls.plane.kubectl("delete", "--wait=false", "-k", cls.place)
        for name in cls.plane.pods(SPACE):
            cls.plane.kubectl("delete", "pod", "-n", SPACE, "--grace-period=0", "--force", name)

    def setUp(self):
        self.assertEqual(self.applied.returncode, 0, self.applied.stderr)
        service = self.plane.ask("GET", "/api/v1/namespaces/%s/services/vial" % SPACE)
        self.address = service["spec"]["clusterIP"]
        if not planes.wait_until(lambda: len(self.ready(DISPATCHERS)) == 2 and self.ready(WORKERS), 300, 0.5):
            self.fail(self.account_of_it())

    def account_of_it(self):
        """What people would look at."""
        return "%s\n%s\n%s" % (self.plane.kubectl("get", "pods", "-n", SPACE, "-o", "wide").stdout,
                               self.plane.kubectl("get", "events", "-n", SPACE).stdout[-3000:],
                               "".join(self.log(name)[-3000:] for name in self.plane.pods(SPACE)))

    def log(self, pod):
        text = ""
        for folder, _, files in os.walk(self.node.path("logs")):
            if "_%s_" % pod in folder:
                for name in sorted(files):
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                        text += "--- %s %s\n%s" % (pod, name, file.read())
        return text

    # ---- what there is ----

    def pods(self, labels):
        return {name: pod for name, pod in self.plane.pods(SPACE).items()
                if labels.items() <= pod["metadata"]["labels"].items()}

    def ready(self, labels):
        """Names of those that are, and their uids."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods(labels).items()
                if "deletionTimestamp" not in pod["metadata"] and any(
                    item["type"] == "Ready" and item["status"] == "True"
                    for item in pod["status"].get("conditions", []))}

    # ---- clients ----

    def ask(self, method, path, body=None, token=None, address=None):
        connection = http.client.HTTPConnection(address or self.address, 6000 if address else 80,
                                                timeout=planes.PATIENCE_S)
        # What is ready was told the API server; kube-proxy has it a moment later.
        planes.wait_until(lambda: self.connects(connection), 30)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {
                "Host": "vial", "Content-Type": "application/json", "Authorization": "Bearer " + (token or self.token)})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()
        finally:
            connection.close()

    @staticmethod
    def connects(connection):
        try:
            connection.connect()
        except ConnectionRefusedError:
            return False
        return True

    def run_code(self, code, **more):
        return self.ask("POST", "/v1/runs", {"language": "python", "code": code, **more})

    def session(self):
        status, answer = self.ask("POST", "/v1/sessions", {"language": "python"})
        self.assertEqual(status, 201, answer)
        return "/v1/sessions/%s/runs" % answer["id"]

    # ---- tests ----

    def test_all_of_it_is_taken_and_nothing_is_warned_of(self):
        self.assertNotIn("Warning", self.applied.stderr)
        for kind in ("deployment", "service/", "networkpolicy", "horizontalpodautoscaler", "poddisruptionbudget", "role",
                     "resourcequota"):
            self.assertIn(kind, self.applied.stdout)

    def test_runs_and_sessions_through_the_service(self):
        status, answer = self.run_code("print(6 * 7)")
        self.assertEqual((status, answer["result"]["stdout"]), (200, "42\n"), answer)
        steps = self.session()
        for _ in range(8):  # whichever dispatcher is asked
            status, answer = self.ask("POST", steps, {"code": "x = globals().get('x', 0) + 1; x"})
            self.assertEqual(status, 200, answer)
        self.assertEqual(answer["result"]["value"]["json"], 8)
        self.assertEqual(self.ask("GET", "/v1/sessions", token="nobody")[0], 401)

    def test_a_session_outlives_all_dispatchers(self):
        """They are killed at once; the next ones find the workers, and make none."""
        steps = self.session()
        self.assertEqual(self.ask("POST", steps, {"code": "x = 6"})[0], 200)
        workers, before = self.ready(WORKERS), self.ready(DISPATCHERS)
        for name in before:
            self.plane.kubectl("delete", "pod", "-n", SPACE, "--grace-period=0", "--force", name)
        self.assertTrue(planes.wait_until(lambda: len(self.ready(DISPATCHERS).keys() - before) == 2, 300),
                        self.account_of_it())
        status, answer = self.ask("POST", steps, {"code": "x * 7"})
        self.assertEqual((status, answer["result"]["value"]["json"]), (200, 42), answer)
        self.assertEqual(self.ready(WORKERS), workers)
        self.assertEqual(self.pods(WORKERS).keys(), workers.keys())

    def test_a_dispatcher_that_crashes_is_started_again_in_its_pod(self):
        steps = self.session()
        self.assertEqual(self.ask("POST", steps, {"code": "x = 6"})[0], 200)
        workers = self.ready(WORKERS)
        for line in self.node.ctr("tasks", "list").stdout.splitlines()[1:]:
            pid = int(line.split()[1])
            with open("/proc/%d/cmdline" % pid, "rb") as file:
                if b"/etc/vial/vial.yaml" in file.read():
                    os.kill(pid, signal.SIGKILL)

        def are_back():
            status = [pod["status"] for pod in self.pods(DISPATCHERS).values()]
            return len(self.ready(DISPATCHERS)) == 2 and all(
                item["containerStatuses"][0]["restartCount"] for item in status)
        self.assertTrue(planes.wait_until(are_back, 300, 0.5), self.account_of_it())
        status, answer = self.ask("POST", steps, {"code": "x * 7"})
        self.assertEqual((status, answer["result"]["value"]["json"]), (200, 42), answer)
        self.assertEqual(self.ready(WORKERS), workers)

    def test_a_worker_that_is_killed_in_a_run(self):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            self.run_code("import time; time.sleep(60)", limits={"timeout": "90s"})))
        thread.start()
        time.sleep(3)
        gone = self.ready(WORKERS)
        for name in gone:
            self.plane.kubectl("delete", "pod", "-n", SPACE, "--grace-period=0", "--force", name)
        thread.join(planes.PATIENCE_S)
        ((status, answer),) = answers
        self.assertEqual((status, answer["error"]["code"]), (502, "worker_lost"), answer)
        self.assertTrue(planes.wait_until(lambda: self.ready(WORKERS) and not
                                          set(self.ready(WORKERS).values()) & set(gone.values()), 300), self.account_of_it())
        self.assertTrue(planes.wait_until(lambda: self.run_code("print(1)")[0] == 200, 60), self.account_of_it())
        self.assertLessEqual(len(self.pods(WORKERS)), 5)

    def test_an_api_server_that_is_not_reached_for_a_while(self):
        """From pods, that is: the network is cut.  Workers that are known serve on; nothing is made or removed."""
        workers = self.ready(WORKERS)
        self.node.way_in.is_closed = True
        self.node.way_in.cut()
        for _ in range(10):
            self.assertEqual(self.run_code("print(1)")[0], 200)
            time.sleep(0.5)
        self.node.way_in.is_closed = False
        time.sleep(5)
        self.assertEqual(self.run_code("print(1)")[0], 200)
        self.assertEqual(self.ready(WORKERS), workers)

    def test_a_token_that_is_renewed(self):
        """As a kubelet does: a new folder, and a link that is moved to it.  The old one has ended by then."""
        names, over = sorted(self.ready(DISPATCHERS)), self.plane.short_token(SPACE, 1, "vial-dispatcher")

        def are_refused():
            self.put_tokens(names, over)  # again and again: the kubelet puts its own back once a minute
            self.node.way_in.cut()        # a watch that was let in stays, whatever becomes of its token
            return all("Unauthorized" in self.log(name) for name in names)
        self.assertTrue(planes.wait_until(are_refused, pause=3), self.account_of_it())
        self.put_tokens(names, self.plane.token(SPACE, "vial-dispatcher"))
        before = self.ready(WORKERS)
        for name in before:  # to see that, and to make others, it must be believed
            self.plane.kubectl("delete", "pod", "-n", SPACE, "--grace-period=1", name)
        self.assertTrue(planes.wait_until(lambda: set(self.ready(WORKERS).values()) - set(before.values()), 300),
                        self.account_of_it())
        self.assertEqual(sorted(self.pods(DISPATCHERS)), names)

    def put_tokens(self, names, text):
        for name in names:
            self.put_token(self.pods(DISPATCHERS)[name]["metadata"]["uid"], text)

    def put_token(self, uid, text):
        volumes = self.node.path("kubelet", "pods", uid, "volumes", "kubernetes.io~projected")
        (name,) = [name for name in os.listdir(volumes) if name.startswith("kube-api-access")]
        volume = os.path.join(volumes, name)
        old = os.path.realpath(os.path.join(volume, "..data"))
        new = os.path.join(volume, "..%s" % secrets.token_hex(4))
        shutil.copytree(old, new)
        os.chmod(new, 0o755)
        with open(os.path.join(new, "token"), "w", encoding="ascii") as file:
            file.write(text)
        os.symlink(os.path.basename(new), os.path.join(volume, "..data_tmp"))
        os.rename(os.path.join(volume, "..data_tmp"), os.path.join(volume, "..data"))
        shutil.rmtree(old)

    def test_rights_are_those_and_no_others(self):
        who = "--as=system:serviceaccount:%s:vial-dispatcher" % SPACE
        for verb, what, space, expected in (
                ("list", "pods", SPACE, "yes"), ("watch", "pods", SPACE, "yes"), ("create", "pods", SPACE, "yes"),
                ("delete", "pods", SPACE, "yes"), ("deletecollection", "pods", SPACE, "no"),
                ("create", "pods --subresource=exec", SPACE, "no"), ("get", "pods --subresource=log", SPACE, "no"),
                ("get", "pods", SPACE, "no"), ("get", "secrets", SPACE, "no"),
                ("list", "configmaps", SPACE, "no"), ("patch", "pods", SPACE, "no"), ("create", "pods", "default", "no"),
                ("list", "nodes", "default", "no")):
            said = self.plane.kubectl("auth", "can-i", verb, *what.split(), "-n", space, who).stdout.split()
            self.assertEqual(said[-1:], [expected], (verb, what, space))

    def test_policies_and_budget_are_about_these_very_pods(self):
        """Nobody enforces them here; that what they select is what runs can be seen."""
        def policy(name):
            return self.plane.ask("GET", "/apis/networking.k8s.io/v1/namespaces/%s/networkpolicies/%s" % (SPACE, name))["spec"]
        everything = set(self.plane.pods(SPACE))
        chosen = {name: set(self.pods(policy(name)["podSelector"].get("matchLabels", {})))
                  for name in ("vial-nothing", "vial-dispatcher", "vial-worker")}
        self.assertEqual(chosen["vial-nothing"], everything)
        self.assertEqual(chosen["vial-dispatcher"], set(self.pods(DISPATCHERS)))
        self.assertEqual(chosen["vial-worker"], everything - chosen["vial-dispatcher"])
        (way_in,) = policy("vial-worker")["ingress"]
        self.assertEqual(set(self.pods(way_in["from"][0]["podSelector"]["matchLabels"])), chosen["vial-dispatcher"])
        self.assertNotIn("egress", policy("vial-worker"))
        (way_there,) = [rule for rule in policy("vial-dispatcher")["egress"] if "podSelector" in rule.get("to", [{}])[0]]
        self.assertEqual(set(self.pods(way_there["to"][0]["podSelector"]["matchLabels"])), chosen["vial-worker"])
        for rule, pods in ((way_in, WORKERS), (way_there, WORKERS), (policy("vial-dispatcher")["ingress"][0], DISPATCHERS)):
            ports = {pod["spec"]["containers"][0]["ports"][0]["containerPort"] for pod in self.pods(pods).values()}
            self.assertEqual({port["port"] for port in rule["ports"]}, ports)

        def budget():
            return self.plane.ask("GET", "/apis/policy/v1/namespaces/%s/poddisruptionbudgets/vial-dispatcher" % SPACE)["status"]
        self.assertTrue(planes.wait_until(lambda: budget().get("disruptionsAllowed") == 1), budget())
        names = sorted(self.ready(DISPATCHERS))
        self.evict(names[0])
        with self.assertRaises(planes.Refused) as refused:
            self.evict(names[1])
        self.assertEqual(refused.exception.status, 429)

    def figure(self, address, name):
        """What a Prometheus would read there: one sample, without labels, which is what the autoscaler's shape asks for."""
        status, text = self.ask("GET", "/metrics", token=self.monitor, address=address)
        self.assertEqual(status, 200, text)
        self.assertEqual(re.findall(r"^# TYPE %s (\w+)$" % name, text, re.M), ["gauge"])
        (sample,) = re.findall(r"^%s\S* .*$" % name, text, re.M)
        self.assertRegex(sample, r"^\w+ \d+$")
        return int(sample.split()[1])

    def test_the_autoscaler_goes_by_our_figure(self):
        """Its last word stays for minutes, so this is the last test."""
        path = "/apis/autoscaling/v2/namespaces/%s/horizontalpodautoscalers/vial-dispatcher" % SPACE
        (wanted,) = self.plane.ask("GET", path)["spec"]["metrics"]
        name = wanted["pods"]["metric"]["name"]
        most = int(wanted["pods"]["target"]["averageValue"])

        def figures(_):
            return {pod: self.figure(item["status"]["podIP"], name) for pod, item in self.pods(DISPATCHERS).items()
                    if pod in self.ready(DISPATCHERS)}

        def condition(kind):
            said = {item["type"]: item for item in self.plane.ask("GET", path).get("status", {}).get("conditions", [])}
            return said.get(kind, {}).get("status")
        made = adapter.Adapter(self.plane, kubelet.ADDRESS, name, figures)
        self.addCleanup(made.close)
        self.assertTrue(planes.wait_until(lambda: condition("ScalingActive") == "True"),
                        (self.plane.ask("GET", path).get("status"), made.asked[-1:]))
        self.assertEqual(self.plane.ask("GET", path)["status"]["desiredReplicas"], 2)  # there is next to nothing to do
        head = b"POST /v1/runs HTTP/1.1\r\nHost: vial\r\nAuthorization: Bearer %s\r\nContent-Length: 9\r\n\r\n"
        for item in self.pods(DISPATCHERS).values():
            for _ in range(most + 36):  # requests that are begun
                busy = socket.create_connection((item["status"]["podIP"], 6000), planes.PATIENCE_S)
                self.addCleanup(busy.close)
                busy.sendall(head % self.token.encode())
        self.assertTrue(planes.wait_until(lambda: self.plane.ask(
            "GET", "/apis/apps/v1/namespaces/%s/deployments/vial-dispatcher" % SPACE)["spec"]["replicas"] > 2),
            (self.plane.ask("GET", path).get("status"), figures(SPACE), made.asked[-1:]))
        self.assertIn("pods metric %s above target" % name, self.plane.kubectl("get", "events", "-n", SPACE).stdout)

    def evict(self, name):
        self.plane.ask("POST", "%s/%s/eviction" % (PODS, name), {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": SPACE}})
