"""A worker in a real pod: Kubernetes' kubelet, containerd, runc, and the image of `make image`."""
import base64
import os
import re
import secrets
import shutil
import unittest

import cluster
import image
import kubelet
import plane as planes
import test_dispatcher

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
PROFILE = os.path.join(ROOT, "packaging/container/seccomp.json")


@unittest.skipUnless(os.path.exists(image.ARCHIVE), "there is no image: make image")
class Kubelet(cluster.Case):
    @classmethod
    def setUpClass(cls):
        cls.node = kubelet.Node(cluster.PLANE)
        os.makedirs(cls.node.path("kubelet", "seccomp"), exist_ok=True)
        shutil.copy(PROFILE, cls.node.path("kubelet", "seccomp", "vial.json"))

    @classmethod
    def tearDownClass(cls):
        cls.node.close()

    def setUp(self):
        super().setUp()
        key = secrets.token_hex(32)
        self.key_path = self.plane.path(self.space + ".key")
        with open(self.key_path, "w", encoding="ascii") as file:
            file.write(key)
        self.plane.ask("POST", "/api/v1/namespaces/%s/secrets" % self.space, {
            "metadata": {"name": "relay"}, "data": {"relay-key": base64.b64encode(key.encode()).decode()}})

    def settings(self, **more):
        return super().settings(**{
            "VIAL_WORKER_IMAGE": image.WORKER, "VIAL_KUBERNETES_PULL_POLICY": "Never", "VIAL_WORKER_MEMORY": "1g",
            "VIAL_WORKER_ENVIRONMENT": "VIAL_ARMED=1,VIAL_MAX=4", "VIAL_WORKER_START_TIMEOUT": "5m",
            "VIAL_RELAY_KEY": self.key_path, **more})

    def container_status(self):
        """/proc/PID/status of the processes that are no pause."""
        listed = self.node.ctr("tasks", "list").stdout.splitlines()[1:]
        found = []
        for line in listed:
            try:
                with open("/proc/%s/status" % line.split()[1], encoding="ascii") as file:
                    text = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ends just now
            if not text.startswith("Name:\tpause"):
                found.append(dict(re.findall(r"^(\w+):\s+(.*)$", text, re.M)))
        return found

    def serve(self, **more):
        """A dispatcher on this host, when a pod of its making is ready."""
        made = test_dispatcher.Dispatcher(self.settings(**more))
        self.addCleanup(made.stop)
        if not planes.wait_until(made.is_ready, 300):
            raise AssertionError("not ready:\n%s\n%s" % (made.log()[-3000:], self.node.kubelet.log()[-3000:]))
        return made

    def assert_works(self, dispatcher, stdout, has_own_users=False):
        status, answer = dispatcher.run("import os; print(6 * 7, os.getpid() == 2, os.path.exists('/proc/self'))")
        self.assertEqual((status, answer["result"]["stdout"], answer["result"]["stderr"]), (200, stdout, ""), answer)
        status, answer = dispatcher.ask("POST", "/v1/sessions", {"language": "python"})
        self.assertEqual(status, 201, answer)
        steps = "/v1/sessions/%s/runs" % answer["id"]
        self.assertEqual(dispatcher.ask("POST", steps, {"code": "x = 6"})[0], 200)
        self.assertEqual(dispatcher.ask("POST", steps, {"code": "x * 7"})[1]["result"]["value"]["json"], 42)
        (status,) = self.container_status()
        ids = {int(id) for name in ("Uid", "Gid") for id in status[name].split()}
        self.assertEqual({id % 65536 for id in ids}, {1001})
        self.assertEqual({id // 65536 > 0 for id in ids}, {has_own_users})
        self.assertEqual((status["CapEff"], status["NoNewPrivs"], status["Seccomp"]), ("0" * 16, "1", "2"))

    def assert_ends(self, dispatcher):
        """Pods outlive a dispatcher; the container goes with its pod."""
        dispatcher.stop()
        (name,) = self.pods()
        self.plane.ask("DELETE", self.path(name))
        self.assertTrue(planes.wait_until(lambda: not self.container_status()))

    def test_a_pod_with_the_default_profile_runs_programs(self):
        dispatcher = self.serve()
        self.assert_works(dispatcher, "42 False True\n")
        self.assert_ends(dispatcher)

    def test_a_pod_with_the_profile_of_ours_runs_them_warm(self):
        """The pod's /proc is masked, so there is none in sandboxes."""
        dispatcher = self.serve(VIAL_KUBERNETES_SECCOMP="vial.json")
        self.assert_works(dispatcher, "42 True False\n")
        self.assert_ends(dispatcher)

    def test_a_pod_with_users_of_its_own(self):
        self.plane.kubectl("label", "--overwrite", "namespace", self.space, "pod-security.kubernetes.io/enforce=baseline")
        dispatcher = self.serve(VIAL_KUBERNETES_SECCOMP="vial.json", VIAL_KUBERNETES_USER_NAMESPACES="true")
        self.assert_works(dispatcher, "42 True True\n", has_own_users=True)
        self.assert_ends(dispatcher)
