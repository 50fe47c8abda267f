"""A worker in a real pod: Kubernetes' kubelet, containerd, runc."""
import base64
import os
import re
import secrets
import shutil
import urllib.request

import cluster
import image
import kubelet
import plane as planes

PROFILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../packaging/container/seccomp.json")


class Kubelet(cluster.Case):
    @classmethod
    def setUpClass(cls):
        cls.node = kubelet.Node(cluster.PLANE, cluster.VIAL)
        os.makedirs(cls.node.path("kubelet", "seccomp"), exist_ok=True)
        shutil.copy(PROFILE, cls.node.path("kubelet", "seccomp", "vial.json"))

    @classmethod
    def tearDownClass(cls):
        cls.node.close()

    def setUp(self):
        super().setUp()
        key = secrets.token_hex(32)
        self.plane.ask("POST", "/api/v1/namespaces/%s/secrets" % self.space, {
            "metadata": {"name": "relay"}, "data": {"relay-key": base64.b64encode(key.encode()).decode()}})

    def settings(self, **more):
        return super().settings(**{
            "VIAL_WORKER_IMAGE": image.WORKER, "VIAL_KUBERNETES_PULL_POLICY": "Never", "VIAL_WORKER_MEMORY": "2g",
            "VIAL_KUBERNETES_SECCOMP": "vial.json", "VIAL_WORKER_ENVIRONMENT": "VIAL_ARMED=1,VIAL_MAX=4", **more})

    def container_status(self):
        """/proc/PID/status of the processes that are no pause."""
        listed = self.node.ctr("tasks", "list").stdout.splitlines()[1:]
        found = []
        for line in listed:
            with open("/proc/%s/status" % line.split()[1], encoding="ascii") as file:
                text = file.read()
            if not text.startswith("Name:\tpause"):
                found.append(dict(re.findall(r"^(\w+):\s+(.*)$", text, re.M)))
        return found

    def answers(self):
        """Whether the worker does, at the address that its pod has."""
        address = self.pods().get("w-0", {}).get("status", {}).get("podIP")
        try:
            with urllib.request.urlopen("http://%s:6000/healthz" % address, timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def test_what_a_worker_is_in_its_pod(self):
        """containerd 1.6 has no user namespaces for pods, so it finds no /proc for its sandboxes, and says that it is not ready."""
        drive = self.drive()
        drive.do("create w-0", "made w-0")
        drive.wait(r"worker w-0 pending http://10\.213\.0\.\d+:6000 not ready.*")
        self.assertTrue(planes.wait_until(self.answers), self.node.kubelet.log()[-3000:])
        (status,) = self.container_status()
        self.assertEqual(status["Uid"].split(), ["1001"] * 4)
        self.assertEqual(status["Gid"].split(), ["1001"] * 4)
        self.assertEqual(status["CapEff"], "0" * 16)
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        drive.do("remove w-0 3000", "removed w-0")
        drive.wait("gone w-0")
        self.assertTrue(planes.wait_until(lambda: not self.container_status()))
