"""The Kubernetes backend alone, against a real API server."""
import json
import signal
import time
import urllib.request

import cluster
import plane as planes


class Backend(cluster.Case):
    def test_a_pod_from_order_to_end(self):
        self.node()
        drive = self.drive()
        drive.do("create w-0", "made w-0")
        drive.wait(r"worker w-0 pending - .*")
        drive.wait(r"worker w-0 running http://127\.77\.\d+\.\d+:6000 -")
        self.assertEqual(list(self.pods()), ["w-0"])
        drive.do("remove w-0 1000", "removed w-0")
        drive.wait("worker w-0 ended .*")
        drive.wait("gone w-0")
        self.assertEqual(self.pods(), {})
        self.assertEqual(drive.close(), 0)

    def test_what_the_api_server_has_of_it(self):
        """Nothing was dropped on the way: the fields are those of this version."""
        drive = self.drive(VIAL_WORKER_ENVIRONMENT="A=1,B=2", CODE_EXECUTOR_RUN_AS_USER="1001")
        drive.do("create w-0", "made w-0")
        pod = self.pods()["w-0"]
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        self.assertEqual(pod["metadata"]["labels"], {
            "app": "codemie-executor", "component": "code-executor", "app.kubernetes.io/managed-by": "vial",
            "vial/fleet": "vial"})
        self.assertEqual((spec["automountServiceAccountToken"], spec["enableServiceLinks"]), (False, False))
        self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & {key for key in spec if spec[key]})
        self.assertEqual(spec["securityContext"], {
            "runAsNonRoot": True, "runAsUser": 1001, "runAsGroup": 1001, "fsGroup": 1001,
            "seccompProfile": {"type": "RuntimeDefault"}})
        self.assertEqual(container["securityContext"], {
            "privileged": False, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}})
        self.assertEqual(container["resources"]["requests"],
                         {"cpu": "500m", "memory": "134217728", "ephemeral-storage": "1073741824"})
        names = [item["name"] for item in container["env"]]
        self.assertEqual(names[-2:], ["A", "B"])
        self.assertEqual([volume["name"] for volume in spec["volumes"]],  # and no token of a service account
                         ["tmp", "work", "relay"])

    def test_an_order_given_twice_makes_one_pod(self):
        drive = self.drive()
        for _ in range(3):
            drive.do("create w-0", "made w-0")
        self.assertEqual(list(self.pods()), ["w-0"])

    def test_an_order_whose_answer_is_lost(self):
        drive = self.drive()
        drive.do("create w-1", "made w-1")  # its connection is kept, so the next needs no handshake
        self.proxy.is_silent = True
        since = drive.mark()
        drive.say("create w-0")
        self.assertTrue(planes.wait_until(lambda: "w-0" in self.pods()))
        self.proxy.cut()
        self.proxy.is_silent = False
        drive.wait("made w-0 .+", since)  # it is not known whether there is one
        drive.wait("worker w-0 pending .*")
        drive.do("create w-0", "made w-0")
        self.assertEqual(list(self.pods()), ["w-0", "w-1"])

    def test_others_pods_are_left_alone(self):
        def add(name, labels):
            self.plane.ask("POST", self.path(), {
                "metadata": {"name": name, "labels": labels},
                "spec": json.loads(json.dumps(self.pods()["w-0"]["spec"]))})
        self.drive().do("create w-0", "made w-0")
        ours = self.pods()["w-0"]["metadata"]["labels"]
        add("other-fleet", {**ours, "vial/fleet": "other"})
        add("other-app", {**ours, "app": "other"})
        drive = self.drive()
        self.assertFalse([line for line in drive.lines if "other" in line])
        drive.do("remove other-fleet 0", "removed other-fleet")  # which is not known here
        self.assertIn("other-fleet", self.pods())

    def test_pods_are_adopted_after_a_restart(self):
        self.node()
        first = self.drive()
        for i in range(3):
            first.do("create w-%d" % i, "made w-%d" % i)
            first.wait("worker w-%d running .*" % i)
        first.process.send_signal(signal.SIGKILL)
        second = self.drive()
        self.assertEqual(sum(line.startswith("worker w-") and " running " in line for line in second.lines), 3)
        second.do("remove w-1 1000", "removed w-1")
        second.wait("gone w-1")

    def test_more_than_a_page_of_them(self):
        self.drive().do("create w-0", "made w-0")
        pod = self.pods()["w-0"]
        for i in range(1, 120):
            self.plane.ask("POST", self.path(), {"metadata": {"name": "w-%d" % i, "labels": pod["metadata"]["labels"]},
                                                 "spec": pod["spec"]})
        drive = self.drive()
        told = {line.split()[1] for line in drive.lines if line.startswith("worker ")}
        self.assertEqual(len(told), 120)

    # ---- the API server and the way to it ----

    def test_api_server_killed_and_started(self):
        node = self.node()
        drive = self.drive()
        drive.do("create w-0", "made w-0")
        drive.wait("worker w-0 running .*")
        self.plane.parts["server"].stop(signal.SIGKILL)
        since = drive.mark()
        drive.wait("trouble .*", since)
        drive.do("create w-1", "made w-1 .+")
        self.assertFalse([line for line in drive.lines[since:] if line.startswith(("gone", "worker"))])
        self.plane.start_server()
        since = drive.mark()
        self.plane.ask("DELETE", self.path("w-0"), {"gracePeriodSeconds": 0})
        drive.wait("gone w-0|synced", since)
        drive.do("create w-1", "made w-1")
        drive.wait("worker w-1 running .*", since)
        self.assertEqual(list(self.pods()), ["w-1"])
        self.assertTrue(planes.wait_until(lambda: len(node.pods) == 1))

    def test_a_watch_that_is_cut(self):
        self.node()
        drive = self.drive()
        for _ in range(3):
            self.proxy.is_closed = True
            self.proxy.cut()
            since = drive.mark()
            self.plane.ask("POST", self.path(), self.order("by-hand"))
            time.sleep(1)
            self.proxy.is_closed = False
            drive.wait("worker by-hand running .*", since)
            self.plane.ask("DELETE", self.path("by-hand"), {"gracePeriodSeconds": 0})
            drive.wait("gone by-hand", since)

    def order(self, name):
        """A pod like ours, that somebody else makes."""
        labels = {"app": "codemie-executor", "component": "code-executor", "vial/fleet": "vial"}
        return {"metadata": {"name": name, "labels": labels}, "spec": {
            "securityContext": {"runAsNonRoot": True, "runAsUser": 1001, "seccompProfile": {"type": "RuntimeDefault"}},
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "vial", "image": "vial", "securityContext": {
                "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}}

    def test_a_version_that_is_too_old(self):
        """410: the books of that time are gone, so all is listed again, and what went meanwhile is noticed."""
        drive = self.drive()
        for name in ("w-0", "w-1"):
            drive.do("create " + name, "made " + name)
            drive.wait("worker %s pending .*" % name)
        self.proxy.is_closed = True
        self.proxy.cut()
        since = drive.mark()
        for name in ("w-0", "w-1"):
            self.plane.ask("DELETE", self.path(name), {"gracePeriodSeconds": 0})
        for name in ("by-hand", "w-1"):  # the second has a name that was another's
            self.plane.ask("POST", self.path(), self.order(name))
        self.compact()
        self.plane.parts["server"].stop(signal.SIGKILL)
        self.plane.start_server()
        self.proxy.is_closed = False
        drive.wait("synced", since)
        self.assertIn("worker by-hand pending", "\n".join(drive.lines[since:]))
        self.assertIn("gone w-0", drive.lines[since:])
        said = drive.lines[since:]
        self.assertLess(said.index("gone w-1"), next(i for i, line in enumerate(said) if line.startswith("worker w-1")))
        drive.do("remove w-0 0", "removed w-0")  # it knows that there is none

    def compact(self):
        """All that etcd knows of the past is forgotten."""
        def ask(path, body):
            request = urllib.request.Request("http://127.0.0.1:%d%s" % (self.plane.etcd_port, path),
                                             data=json.dumps(body).encode())
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        revision = ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        ask("/v3/kv/compaction", {"revision": revision, "physical": True})

    def test_a_slow_api_server(self):
        self.node()
        drive = self.drive()
        self.proxy.delay_s = 1
        drive.do("create w-0", "made w-0")
        drive.wait("worker w-0 running .*")
        drive.do("remove w-0 1000", "removed w-0")
        drive.wait("gone w-0")
        self.assertEqual(self.pods(), {})

    # ---- refusals ----

    def test_quota(self):
        self.plane.ask("POST", "/api/v1/namespaces/%s/resourcequotas" % self.space,
                       {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
        self.assertTrue(planes.wait_until(lambda: self.plane.ask(
            "GET", "/api/v1/namespaces/%s/resourcequotas/small" % self.space).get("status", {}).get("used")))
        drive = self.drive()
        drive.do("create w-0", "made w-0")
        said = drive.do("create w-1", "made w-1 .*")
        self.assertRegex(said, "^made w-1 limit: .*exceeded quota: small.*HTTP 403")
        self.assertEqual(list(self.pods()), ["w-0"])
        self.plane.patch("/api/v1/namespaces/%s/resourcequotas/small" % self.space, {"spec": {"hard": {"pods": "2"}}})
        self.assertTrue(planes.wait_until(lambda: drive.do("create w-1", "made w-1.*") == "made w-1"))

    def test_no_right(self):
        self.plane.ask("DELETE", "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings/dispatcher" % self.space)
        drive = cluster.drive.Drive(self.settings())
        self.addCleanup(drive.close)
        drive.wait("trouble denied: list of pods: pods is forbidden: .*cannot list resource.*")
        said = drive.do("create w-0", "made w-0 .*")
        self.assertRegex(said, "^made w-0 invalid: pods is forbidden")

    def test_a_namespace_that_is_not_there(self):
        drive = self.drive()
        other = cluster.drive.Drive(self.settings(VIAL_KUBERNETES_NAMESPACE="nowhere"))
        self.addCleanup(other.close)
        other.wait("trouble .*")
        drive.do("create w-0", "made w-0")  # nobody is disturbed by the other's

    def test_a_token_that_expires(self):
        """It is refused, and the next one from the file is taken without a word from anybody."""
        self.put_token(self.plane.short_token(self.space, 8))
        drive = self.drive()
        drive.do("create w-0", "made w-0")

        def is_refused():
            return "HTTP 401" in drive.do("create w-1", "made w-1.*")
        self.assertTrue(planes.wait_until(is_refused, pause=1))
        self.put_token(self.plane.token(self.space))
        drive.do("create w-1", "made w-1.*")  # whatever of it: the refusal made it look
        self.assertTrue(planes.wait_until(lambda: drive.do("create w-2", "made w-2.*") == "made w-2"))
        self.plane.ask("DELETE", self.path("w-0"), {"gracePeriodSeconds": 0})
        drive.wait("gone w-0")

    def test_an_account_that_is_removed(self):
        drive = self.drive()
        self.plane.remove_account(self.space)
        self.assertTrue(planes.wait_until(lambda: "HTTP 401" in drive.do("create w-0", "made w-0.*"), pause=1))
        self.assertLessEqual(len(self.pods()), 1)  # it was believed for some seconds more

    # ---- nodes ----

    def test_pods_that_find_no_node(self):
        drive = self.drive(VIAL_WORKER_CPU_REQUEST="1000", VIAL_WORKER_CPUS="1000")
        self.node()
        drive.do("create w-0", "made w-0")
        drive.wait("worker w-0 pending - Unschedulable: 0/1 nodes are available.*")
        drive.do("remove w-0 0", "removed w-0")
        drive.wait("gone w-0")

    def test_a_node_that_is_gone(self):
        """Its pods are told as ended, and after their time they can be removed although nobody confirms it."""
        nodes = [self.node() for _ in range(3)]  # when most are lost, Kubernetes suspects itself and does nothing
        drive = self.drive(VIAL_DRAIN_GRACE="0")
        drive.do("create w-0", "made w-0")
        drive.wait("worker w-0 running .*")
        next(node for node in nodes if node.find("w-0")).is_dead = True
        since = drive.mark()
        drive.wait("worker w-0 (pending|ended) .*", since)
        drive.wait(r"worker w-0 ended \S+ it is being deleted", since)
        drive.do("remove w-0 1000", "removed w-0")
        self.assertIn("w-0", self.pods())  # it has its time
        self.assertTrue(planes.wait_until(lambda: drive.do("remove w-0 1000", "removed w-0") and
                                          "w-0" not in self.pods(), pause=2))
        drive.wait("gone w-0", since)

    def test_a_name_that_is_another_ones_by_now(self):
        """What is removed is the pod that was meant, by its uid."""
        drive = self.drive()
        drive.do("create w-0", "made w-0")
        drive.wait("worker w-0 pending .*")
        self.proxy.is_silent = True
        self.plane.ask("DELETE", self.path("w-0"), {"gracePeriodSeconds": 0})
        self.plane.ask("POST", self.path(), self.order("w-0"))
        uid = self.pods()["w-0"]["metadata"]["uid"]
        drive.say("remove w-0 0")
        time.sleep(2)
        self.proxy.is_silent = False
        drive.wait("removed w-0")
        time.sleep(1)
        self.assertEqual(self.pods()["w-0"]["metadata"]["uid"], uid)
        self.assertNotIn("deletionTimestamp", self.pods()["w-0"]["metadata"])
