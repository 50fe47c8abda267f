"""Workers in real containers, made by a dispatcher: runs, sessions, limits, and what becomes of them."""
import os
import re
import threading

import daemon
from daemon import run_of
from engine import IMAGE, wait_until

ENGINE = None  # set by `run`
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROFILE = "seccomp=" + os.path.join(ROOT, "packaging/container/seccomp.json")


class Dispatcher(daemon.Daemon):
    """One whose workers are containers; they stay when it ends."""

    def __init__(self, fleet, key, **settings):
        self.fleet = fleet
        pairs = {"fleet": fleet, "relay_key": key, "docker_socket": ENGINE.socket, "worker_image": IMAGE, "worker_network": "workers",
                 "worker_prefix": "t-", "worker_memory": "1g", "worker_cpus": "1", "worker_environment": "VIAL_ARMED=1,VIAL_MAX=4",
                 "max_pod_pool_size": 2, "worker_start_timeout": "5m", **settings}
        words = [word for pair in pairs.items() for word in ("--set", "%s=%s" % pair)]
        super().__init__("--backend", "docker", *words)

    def answers(self):
        try:
            return self.ask("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def figure(self, name):
        made = self.connect()
        made.request("GET", "/metrics")
        text = made.getresponse().read().decode()
        made.close()
        return int(re.search(r"^vial_fleet_%s (\d+)" % name, text, re.M)[1])


class Case(daemon.Case):
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.key_dir = daemon.tempfile.mkdtemp(prefix="vial-key-")
        cls.key = daemon.make_key(cls.key_dir)
        cls.fleet = cls.__name__.lower()
        cls.daemon = Dispatcher(cls.fleet, cls.key, **cls.settings)
        if not wait_until(lambda: cls.daemon.figure("workers_well") > 0):
            logs = [cls.daemon.log(), *(ENGINE.logs(name) for name in ENGINE.containers(cls.fleet))]
            cls.tearDownClass()
            raise RuntimeError("no worker is well: %s" % "\n".join(logs))

    @classmethod
    def tearDownClass(cls):
        cls.daemon.close()
        for name in ENGINE.containers(cls.fleet):
            ENGINE.remove(name)
        daemon.shutil.rmtree(cls.key_dir)

    def own(self):
        return ENGINE.containers(self.fleet)

    def ids(self):
        return {item["Id"] for item in self.own().values() if item["State"] == "running"}

    def session(self, **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python", **more})
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def step(self, session, code):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": code})
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def in_background(self, code, **more):
        """(thread, answers): one that is asked for meanwhile."""
        answers = []
        thread = threading.Thread(target=lambda: answers.append(self.daemon.ask("POST", "/v1/runs", run_of(code, **more))))
        thread.start()
        self.addCleanup(thread.join)
        return thread, answers


class Plain(Case):
    """Docker's own profile: no namespaces in there."""
    settings = {"worker_labels": "team=blue", "worker_pids": 200, "worker_memory": "300m", "worker_cpus": "500m"}

    def test_a_container_is_what_was_asked_for(self):
        (name,) = self.own()
        made = ENGINE.inspect(name)
        host, config = made["HostConfig"], made["Config"]
        self.assertEqual((config["User"], config["Image"]), ("1001:1001", IMAGE))
        self.assertEqual((config["Labels"]["vial.fleet"], config["Labels"]["team"]), (self.fleet, "blue"))
        self.assertEqual((host["Memory"], host["MemorySwap"], host["NanoCpus"], host["PidsLimit"]), (300 << 20, 300 << 20, 500000000, 200))
        self.assertEqual((host["ReadonlyRootfs"], host["CapDrop"], host["Privileged"]), (True, ["ALL"], False))
        self.assertEqual((host["SecurityOpt"], host["NetworkMode"]), (["no-new-privileges"], "workers"))
        self.assertEqual([pair.split("=")[0] for pair in config["Env"] if os.environ.get(pair.split("=")[0]) == pair.partition("=")[2]
                          and pair.split("=")[0] not in ("PATH", "HOME")], [])
        with open("/proc/%d/status" % made["State"]["Pid"], encoding="ascii") as file:
            status = dict(line.split(":", 1) for line in file)
        self.assertEqual((status["Uid"].split(), status["CapEff"].strip()), (["1001"] * 4, "0" * 16))
        self.assertEqual((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))

    def test_runs(self):
        result = self.run_ok("import os; print(6 * 7, os.getuid()); open('a', 'w').write('x')")
        self.assertEqual((result["stdout"], result["stderr"], result["outcome"]), ("42 1001\n", "", "exited"))
        self.assertEqual([file["path"] for file in result["files_changed"]], ["a"])
        self.assertEqual(self.run_ok("echo $((6 * 7))", "bash")["stdout"], "42\n")
        self.assertEqual(self.run_ok("raise ValueError('no')")["exception"]["type"], "ValueError")

    def test_sessions(self):
        session = self.session()
        self.step(session, "x = 6")
        self.assertEqual(self.step(session, "x * 7")["value"]["json"], 42)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/" + session)[0], 200)

    def test_limits_of_a_run(self):
        for code, limits, limit in (("while True: pass", {"timeout": 1}, "timeout"), ("x = bytearray(1 << 30)", {"memory": "100m"}, "memory")):
            self.assertEqual(self.run_ok(code, limits=limits)["limit"], limit)

    def test_what_breaks_the_containers_limit_is_not_the_worker(self):
        """Each of these may have that much, but not all of them together."""
        hogs = ("import os, time\nfor i in range(6):\n  if os.fork() == 0:\n    x = b'x' * (70 << 20); time.sleep(60); os._exit(0)\n"
                "for i in range(6): print(os.wait()[1], flush=True)")
        before = self.ids()
        result = self.run_ok(hogs, limits={"timeout": 10})
        self.assertTrue("9\n" in result["stdout"] or result["outcome"] != "exited", result)
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
        self.assertEqual(self.ids(), before)

    def test_nothing_can_be_written_or_reached(self):
        code = ("import os, socket\nfor path in ('/x', '/etc/x', '/usr/x', '/tmp/x', '/run/vial/x', '/run/secrets/vial-relay-key'):\n"
                "  for mode in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):\n"
                "    try: os.open(path, mode); print(path)\n    except OSError: pass\n"
                "try: socket.create_connection(('10.214.0.1', 80), 1); print('connected')\nexcept OSError: pass")
        self.assertEqual(self.run_ok(code)["stdout"], "")

    def test_what_takes_namespaces_is_refused(self):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python", "rewind": True})
        self.assertEqual(status, 400, answer)
        self.assertIn("takes the namespaces layer", answer["error"]["message"])


class Profiled(Case):
    """With the profile of ours: user namespaces, warm interpreters, no /proc."""
    settings = {"worker_security": PROFILE}

    def test_runs_are_warm_and_alone(self):
        result = self.run_ok("import os; print(os.getpid(), os.listdir('/proc'))")
        self.assertEqual((result["stdout"], result["stderr"]), ("2 []\n", ""))
        (name,) = self.own()
        self.assertNotIn("warm interpreter", ENGINE.logs(name))  # that it died

    def test_guests_have_no_network(self):
        code = "import socket\ntry: socket.create_connection(('10.214.0.1', 80), 1)\nexcept OSError as e: print(e.errno)"
        self.assertEqual(self.run_ok(code)["stdout"], "101\n")

    def test_sessions_and_rewind(self):
        session = self.session(rewind=True)
        self.step(session, "x = 6")
        self.step(session, "x = 0; import os; os._exit(1)")
        self.assertEqual(self.step(session, "x * 7")["value"]["json"], 42)


class Unconfined(Case):
    """The same with a /proc that is not masked, as the docker command has it."""
    settings = {"worker_security": PROFILE + ",systempaths=unconfined"}

    def test_guests_have_a_proc_of_their_own(self):
        self.assertEqual(self.run_ok("import os; print(sorted(n for n in os.listdir('/proc') if n.isdigit()))")["stdout"], "['2']\n")


class Named(Case):
    """A runtime that is not the engine's default."""
    settings = {"worker_security": PROFILE, "worker_runtime": "another"}

    def test_runs(self):
        (name,) = self.own()
        self.assertEqual(ENGINE.inspect(name)["HostConfig"]["Runtime"], "another")
        self.assertEqual(self.run_ok("print(6 * 7)")["stdout"], "42\n")


class Life(Case):
    """How many there are, and for how long."""
    settings = {"worker_environment": "VIAL_ARMED=0,VIAL_MAX=1", "worker_idle_timeout": "3s", "worker_lifetime": "20m"}

    def test_a_second_one_while_somebody_waits_and_none_when_nobody_does(self):
        first = self.in_background("import time; time.sleep(20); print(1)")
        self.assertTrue(wait_until(self.daemon.runs))
        second = self.in_background("print(2)")
        for thread, answers in (first, second):
            thread.join()
            self.assertEqual(answers[0][0], 200, answers)
        self.assertGreaterEqual(self.daemon.figure("made_total"), 2)
        self.assertTrue(wait_until(lambda: len(self.own()) == 1), self.own())

    def test_others_are_left_alone(self):
        for name, labels in (("t-%s-9" % self.fleet, {}), ("stranger", {"vial.fleet": "another"})):
            ENGINE.ask("POST", "/containers/create?name=" + name, {"Image": IMAGE, "Labels": labels, "Cmd": ["--version"]})
            self.addCleanup(ENGINE.remove, name)
        removed = self.daemon.figure("removed_total")
        self.test_a_second_one_while_somebody_waits_and_none_when_nobody_does()
        self.assertGreater(self.daemon.figure("removed_total"), removed)
        self.assertLessEqual({"t-%s-9" % self.fleet, "stranger"}, set(ENGINE.containers()))

    def test_a_killed_container_is_told_and_replaced(self):
        before = self.ids()
        thread, answers = self.in_background("import time; time.sleep(300)", limits={"timeout": 400})
        self.assertTrue(wait_until(self.daemon.runs))
        for name in self.own():
            ENGINE.ask("POST", "/containers/%s/kill" % name, fine=(204, 409))
        thread.join()
        self.assertEqual((answers[0][0], answers[0][1]["error"]["code"]), (502, "worker_lost"))
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
        self.assertFalse(self.ids() & before)


class Foreign(Case):
    settings = {"worker_environment": "VIAL_ARMED=0,VIAL_MAX=1"}

    def test_a_name_of_ours_that_is_somebody_elses(self):
        """It is not started, and not removed: it has no label of ours."""
        self.assertTrue(wait_until(lambda: len(self.own()) == 1), self.own())
        (name,) = {"t-%s-%d" % (self.fleet, i) for i in range(2)} - set(self.own())
        ENGINE.ask("POST", "/containers/create?name=" + name, {"Image": IMAGE, "Cmd": ["--version"]})
        self.addCleanup(ENGINE.remove, name)
        first = self.in_background("import time; time.sleep(45)", limits={"timeout": 60})
        self.assertTrue(wait_until(self.daemon.runs))
        self.in_background("print(2)")
        self.assertTrue(wait_until(lambda: "has that name" in self.daemon.log()), self.daemon.log())
        self.assertEqual(ENGINE.inspect(name)["State"]["Status"], "created")
        self.assertLess(self.daemon.figure("made_total"), 8)  # nor asked for again and again
        first[0].join()


class Several(Case):
    """Dispatchers come, go, and stand side by side."""
    settings = {"worker_environment": "VIAL_ARMED=0,VIAL_MAX=4"}

    def again(self):
        return Dispatcher(self.fleet, self.key, **self.settings)

    def test_those_that_run_are_adopted(self):
        session, before = self.session(), self.ids()
        self.step(session, "x = 6")
        self.daemon.close()
        self.assertEqual(self.ids(), before)
        type(self).daemon = self.again()
        self.assertTrue(wait_until(lambda: self.daemon.figure("workers_well") > 0))
        self.assertEqual((self.ids(), self.daemon.figure("made_total")), (before, 0))
        self.assertEqual(self.step(session, "x * 7")["value"]["json"], 42)

    def test_two_use_the_same_and_make_no_more(self):
        other = self.again()
        self.addCleanup(other.close)
        self.assertTrue(wait_until(lambda: other.figure("workers_well") > 0))
        session = self.session()
        self.step(session, "x = 6")
        status, answer, _ = other.ask("POST", "/v1/sessions/%s/runs" % session, {"code": "x * 7"})
        self.assertEqual((status, answer["result"]["value"]["json"]), (200, 42))
        self.assertEqual(len(self.own()), 1)


class Aged(Case):
    settings = {"worker_environment": "VIAL_ARMED=0,VIAL_MAX=1", "worker_lifetime": "20s"}

    def test_an_old_one_is_replaced(self):
        before = self.ids()
        self.assertTrue(wait_until(lambda: self.ids() and not self.ids() & before), before)
        self.assertTrue(wait_until(lambda: self.daemon.figure("workers_well") > 0))
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
