"""`vial serve --backend kubernetes`: real dispatcher, real workers, real control plane; nodes are agent.py's."""
import base64
import concurrent.futures
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import time

import cluster
import plane as planes


class Connection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=planes.PATIENCE_S)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Dispatcher:
    def __init__(self, env):
        self.dir = tempfile.mkdtemp(prefix="vial-dispatcher-")
        self.path = os.path.join(self.dir, "s")
        self.process = planes.Process("dispatcher", [
            cluster.VIAL, "serve", "--backend", "kubernetes", "--socket", self.path, "--listen", "none"], self.dir,
            {**os.environ, "STATE_DIRECTORY": self.dir, **env})

    def ask(self, method, path, body=None):
        connection = Connection(self.path)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None
        finally:
            connection.close()

    def run(self, code, **more):
        return self.ask("POST", "/v1/runs", {"language": "python", "code": code, **more})

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def log(self):
        return self.process.log()

    def stop(self, how=signal.SIGTERM):
        self.process.stop(how)
        shutil.rmtree(self.dir, ignore_errors=True)


class Dispatch(cluster.Case):
    def setUp(self):
        super().setUp()
        self.key_path = self.plane.path(self.space + ".key")
        key = secrets.token_hex(32)
        with open(self.key_path, "w", encoding="ascii") as file:
            file.write(key)
        self.plane.ask("POST", "/api/v1/namespaces/%s/secrets" % self.space, {
            "metadata": {"name": "relay"}, "data": {"relay-key": base64.b64encode(key.encode()).decode()}})
        self.agent = self.node(cluster.VIAL)

    def start(self, wait=True, **more):
        made = Dispatcher(self.settings(**{
            "VIAL_RELAY_KEY": self.key_path, "VIAL_MIN_POD_POOL_SIZE": "2",
            "VIAL_MAX_POD_POOL_SIZE": "3", "VIAL_WORKER_ENVIRONMENT": "VIAL_ARMED=1,VIAL_MAX=4",
            "VIAL_WORKER_START_TIMEOUT": "5m", **more}))
        self.addCleanup(made.stop)
        if wait and not planes.wait_until(lambda: made.is_ready() and self.ready_pods() >= 2):
            raise AssertionError("not ready:\n%s\n%s" % (made.log()[-3000:], "\n".join(
                pod.log()[-1000:] for pod in self.agent.pods.values())))
        return made

    def ready_pods(self):
        return sum(bool(pod.said) for pod in list(self.agent.pods.values()))

    def uids(self):
        return {name: pod["metadata"]["uid"] for name, pod in self.pods().items()}

    def test_runs_and_sessions(self):
        dispatcher = self.start()
        self.assertEqual(sorted(self.pods()), ["codemie-executor-vial-0", "codemie-executor-vial-1"])
        status, answer = dispatcher.run("print(6 * 7)")
        self.assertEqual((status, answer["result"]["stdout"]), (200, "42\n"), answer)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda i: dispatcher.run("print(%d)" % i), range(40)))
        self.assertEqual([answer["result"]["stdout"] for _, answer in done], ["%d\n" % i for i in range(40)])
        self.assertLessEqual(len(self.pods()), 3)

    def test_a_restart_finds_workers_and_sessions(self):
        first = self.start()
        status, session = first.ask("POST", "/v1/sessions", {"language": "python"})
        self.assertIn(status, (200, 201), session)
        path = "/v1/sessions/%s/runs" % session["id"]
        self.assertEqual(first.ask("POST", path, {"code": "x = 6"})[0], 200)
        before = self.uids()
        first.stop(signal.SIGKILL)
        second = self.start()
        status, answer = second.ask("POST", path, {"code": "print(x * 7)"})
        self.assertEqual((status, answer["result"]["stdout"]), (200, "42\n"), answer)
        self.assertEqual(self.uids(), before)

    def test_two_dispatchers_make_no_more_than_one(self):
        both = [self.start(wait=False), self.start(wait=False)]
        for dispatcher in both:
            self.assertTrue(planes.wait_until(dispatcher.is_ready), dispatcher.log())
            self.assertEqual(dispatcher.run("print(1)")[0], 200)
        self.assertEqual(sorted(self.pods()), ["codemie-executor-vial-0", "codemie-executor-vial-1"])

    def test_workers_killed_while_they_run(self):
        """Whoever waited is told; the next run finds a worker."""
        dispatcher = self.start()
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(
            dispatcher.run("import time; print('begun', flush=True); time.sleep(60)", limits={"timeout": "90s"})))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(3)
        for pod in self.agent.pods.values():
            os.killpg(pod.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(planes.PATIENCE_S)
        self.assertEqual(len(answers), 4)
        for status, answer in answers:
            self.assertGreaterEqual(status, 500, answer)
            self.assertIn("worker", json.dumps(answer))
        self.assertTrue(planes.wait_until(lambda: dispatcher.run("print(1)")[0] == 200), dispatcher.log()[-3000:])
        self.assertLessEqual(len(self.pods()), 3)

    def test_no_api_server_for_a_while(self):
        """Workers that are known serve on; nothing is made twice afterwards."""
        dispatcher = self.start()
        before = self.uids()
        self.plane.parts["server"].stop(signal.SIGKILL)
        for _ in range(5):
            self.assertEqual(dispatcher.run("print(1)")[0], 200, dispatcher.log()[-2000:])
            time.sleep(1)
        self.plane.start_server()
        time.sleep(5)
        self.assertEqual(dispatcher.run("print(1)")[0], 200)
        after = self.uids()  # nodes may have seemed lost, and one more may have been made for it
        self.assertEqual({name: after.get(name) for name in before}, before)
        self.assertLessEqual(len(after), 3)

    def test_a_quota_below_what_is_wanted(self):
        self.plane.ask("POST", "/api/v1/namespaces/%s/resourcequotas" % self.space,
                       {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}})
        dispatcher = self.start(wait=False)
        self.assertTrue(planes.wait_until(dispatcher.is_ready), dispatcher.log())
        self.assertEqual(dispatcher.run("print(1)")[0], 200)
        self.assertTrue(planes.wait_until(lambda: "exceeded quota" in dispatcher.log()), dispatcher.log())
        time.sleep(5)
        self.assertEqual(len(self.pods()), 1)
        self.assertLess(dispatcher.log().count("exceeded quota"), 30)

    def test_pods_that_never_start(self):
        """S4-34: nobody runs, so that is said; and no more are made than may be."""
        self.agent.is_dead = True
        dispatcher = self.start(wait=False, VIAL_DISPATCH_TIMEOUT="5s", VIAL_WORKER_START_TIMEOUT="10s")
        self.assertTrue(planes.wait_until(lambda: len(self.pods()) >= 2))
        status, answer = dispatcher.run("print(1)")
        self.assertEqual(status, 503, answer)
        self.assertIn("Code execution is currently unavailable: executor pods are not ready.", json.dumps(answer))
        seen = set()
        for _ in range(40):
            seen.add(len(self.pods()))
            time.sleep(0.5)
        self.assertLessEqual(max(seen), 3)

    def test_a_worker_that_is_deleted_is_replaced(self):
        dispatcher = self.start()
        before = self.uids()
        self.plane.ask("DELETE", self.path("codemie-executor-vial-0"))
        self.assertTrue(planes.wait_until(lambda: len(self.uids()) >= 2 and self.ready_pods() >= 2 and
                                          self.uids().get("codemie-executor-vial-0") != before["codemie-executor-vial-0"]),
                        dispatcher.log()[-3000:])
        self.assertEqual(dispatcher.run("print(1)")[0], 200)
        self.assertLessEqual(len(self.pods()), 3)

    def test_a_worker_that_is_silent_and_removed(self):
        """Its connection says nothing, as that of a machine without power: that it is gone is known from elsewhere."""
        dispatcher = self.start(VIAL_MAX_POD_POOL_SIZE="2")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            dispatcher.run("import time; time.sleep(60)", limits={"timeout": "90s"})))
        thread.start()
        self.assertTrue(planes.wait_until(lambda: dispatcher.ask("GET", "/v1/runs")[1]["runs"]))
        self.agent.is_dead = True  # whoever would end its process
        stopped = [pod.process.pid for pod in self.agent.pods.values()]
        try:
            for pid in stopped:
                os.killpg(pid, signal.SIGSTOP)
            for name in self.pods():
                self.plane.ask("DELETE", self.path(name), {"gracePeriodSeconds": 0})
            thread.join(30)
            self.assertFalse(thread.is_alive(), dispatcher.log()[-2000:])
        finally:
            for pid in stopped:
                os.killpg(pid, signal.SIGCONT)
            self.agent.is_dead = False
        status, answer = answers[0]
        self.assertEqual((status, answer["error"]["code"]), (502, "worker_lost"), answer)

    def test_a_pod_that_is_not_ready_for_a_moment_stays(self):
        """However long it has been there: a probe that fails once is no reason to end what is in it."""
        dispatcher = self.start(VIAL_WORKER_START_TIMEOUT="10s")
        time.sleep(11)
        before = self.uids()
        pods = list(self.agent.pods.values())
        for is_ready in (False, True):
            for pod in pods:
                self.plane.patch(self.path(pod.meta["name"], "status"), {"status": self.agent.status(pod, is_ready)})
            time.sleep(3)
        self.assertEqual(self.uids(), before, dispatcher.log()[-2000:])
        self.assertEqual(dispatcher.run("print(1)")[0], 200)

    def test_old_workers_are_replaced_while_others_serve(self):
        """All are old at once, and there may be no more of them."""
        dispatcher = self.start(VIAL_MAX_POD_POOL_SIZE="2", VIAL_WORKER_LIFETIME="20s", VIAL_DISPATCH_TIMEOUT="20s")
        before = set(self.uids().values())
        statuses, deadline = [], time.monotonic() + planes.PATIENCE_S
        while before & set(self.uids().values()) and time.monotonic() < deadline:
            statuses.append(dispatcher.run("print(1)")[0])
            self.assertLessEqual(len(self.pods()), 2)
        self.assertFalse(before & set(self.uids().values()), dispatcher.log()[-2000:])
        self.assertEqual(set(statuses), {200})

    def test_a_name_that_a_pod_of_somebody_elses_has(self):
        """It is left alone and not asked for again and again; the next name does."""
        self.plane.ask("POST", self.path(), {
            "metadata": {"name": "codemie-executor-vial-0"}, "spec": {
                "nodeName": "nowhere",
                "securityContext": {"runAsNonRoot": True, "runAsUser": 1001, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{"name": "x", "image": "x", "securityContext": {
                    "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}]}})
        foreign = self.uids()["codemie-executor-vial-0"]
        dispatcher = self.start(wait=False, VIAL_MIN_POD_POOL_SIZE="1")
        self.assertTrue(planes.wait_until(dispatcher.is_ready), dispatcher.log())
        self.assertEqual(dispatcher.run("print(1)")[0], 200)
        self.assertIn("has that name", dispatcher.log())
        self.assertEqual(self.uids()["codemie-executor-vial-0"], foreign)
        self.assertIn("codemie-executor-vial-1", self.pods())
