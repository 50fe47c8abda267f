"""A dispatcher and two workers: where requests go, and what becomes of them when a worker does not."""
import http.client
import json
import os
import signal
import threading
import time

import daemon
from daemon import Worker, run_of, wait_until


class Dispatched(daemon.Case):
    options = ("--armed", "1")

    def session(self):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})
        self.assertEqual(status, 201, answer)
        return answer["id"]

    def step(self, session, code):
        return self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": code})


class Ways(Dispatched):
    """Nothing fails here."""

    def test_sessions_are_spread_and_found_again(self):
        ids = [self.session() for _ in range(4)]
        self.assertEqual(len({name[:8] for name in ids}), 2)
        for number, name in enumerate(ids):
            self.assertEqual(self.step(name, "x = %d" % number)[0], 200)
        for number, name in enumerate(ids):
            self.assertEqual(self.step(name, "x")[1]["result"]["value"]["json"], number)
        listed = {row["id"] for row in self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]}
        self.assertLessEqual(set(ids), listed)
        for name in ids:
            self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/" + name)[0], 200)

    def test_history_is_one(self):
        made = [self.run_ok("print(%d)" % i) and i for i in range(6)]
        pages, cursor = [], ""
        while cursor is not None:
            answer = self.daemon.ask("GET", "/v1/history?kind=run&limit=2" + cursor)[1]
            pages += [record["id"] for record in answer["records"]]
            cursor = answer["next"] and "&cursor=" + answer["next"]
        self.assertGreaterEqual(len(pages), len(made))
        self.assertEqual(len(pages), len(set(pages)))
        self.assertEqual(self.daemon.ask("GET", "/v1/history/" + pages[0])[1]["id"], pages[0])

    def test_who_says_who_it_is(self):
        """A worker believes whoever has the key, and nobody else; a dispatcher's client says nothing."""
        worker = self.daemon.workers[0]
        for headers in ({}, {"Vial-Tenant": "local", "Vial-Scopes": "run"},
                        {"Vial-Relay": "x" * 48, "Vial-Tenant": "local", "Vial-Scopes": "run"}):
            made = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=daemon.PATIENCE_S)
            made.request("GET", "/v1/runs", headers=headers)
            self.assertEqual(made.getresponse().status, 401)
            made.close()
        status, answer, _ = self.daemon.ask("GET", "/v1/tenant", headers={"Vial-Tenant": "other"})
        self.assertEqual((status, answer["tenant"]), (200, "local"))

    def test_a_worker_has_run_a_program_before_it_is_well(self):
        """print('health_check'), in the name of the fleet; no client's history has it."""
        with open(self.daemon.workers[0].key, encoding="ascii") as file:
            who = {"Vial-Relay": file.read().strip(), "Vial-Tenant": "fleet", "Vial-Scopes": "run,history"}
        for worker in self.daemon.workers:
            made = http.client.HTTPConnection("127.0.0.1", worker.port, timeout=daemon.PATIENCE_S)
            made.request("GET", "/v1/history?kind=run", headers=who)
            response = made.getresponse()
            records = json.loads(response.read())["records"]
            made.close()
            self.assertEqual([(record["language"], record["outcome"]) for record in records], [("python", "exited")])
        mine = self.daemon.ask("GET", "/v1/history?kind=run")[1]["records"]
        self.assertEqual([record for record in mine if "health_check" in json.dumps(record)], [])

    def test_a_gigabyte_takes_no_more_memory_than_a_megabyte(self):
        """Not in the dispatcher, which holds a piece of it at a time."""
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions", {
            "language": "python", "limits": {"workspace": "1200m", "file-size": "1200m", "memory": "2g"}})
        self.assertEqual(status, 201, answer)
        path, piece = "/v1/sessions/" + answer["id"], b"x" * (1 << 20)

        def peak():
            with open("/proc/%d/status" % self.daemon.server_pid(), encoding="ascii") as file:
                return int(dict(line.split(":", 1) for line in file)["VmHWM"].split()[0])

        def put(name, count):
            made = self.daemon.connect()
            made.request("PUT", path + "/files/" + name, (piece for _ in range(count)),
                         {"Content-Length": str(count << 20), "Content-Type": "application/octet-stream"})
            response = made.getresponse()
            self.assertIn(response.status, (200, 201, 204), response.read())
            made.close()

        put("small", 1)
        before = peak()
        put("large", 1024)
        self.assertLess(peak() - before, 32 << 10)
        size = self.daemon.ask("POST", path + "/runs", {"code": "import os; os.path.getsize('large')"})[1]
        self.assertEqual(size["result"]["value"]["json"], 1 << 30)
        self.assertEqual(self.daemon.ask("DELETE", path)[0], 200)

    def test_several_dispatchers_share_workers(self):
        """Whatever one was told of a session, any other finds it by its id."""
        session = self.session()
        self.step(session, "x = 6")
        count, daemon.WORKERS = daemon.WORKERS, 0
        try:
            other = daemon.Daemon("--backend", "null", "--set", "relay_key=" + self.daemon.workers[0].key, "--set",
                                  "workers=" + ",".join(worker.url for worker in self.daemon.workers))
        finally:
            daemon.WORKERS = count
        self.addCleanup(other.close)
        self.assertTrue(wait_until(lambda: other.ask("GET", "/v1/sessions/" + session)[0] == 200))
        status, answer, _ = other.ask("POST", "/v1/sessions/%s/runs" % session, {"code": "x * 7"})
        self.assertEqual((status, answer["result"]["value"]["json"]), (200, 42))

    def test_ids_of_nobody(self):
        for name, expected in (("1" * 32, 410), ("0" * 32, 404), ("nonsense", 404)):
            self.assertEqual(self.daemon.ask("GET", "/v1/sessions/" + name)[0], expected, name)


class Losses(Dispatched):
    """Each has workers of its own, since they are killed."""

    def setUp(self):
        self.daemon = daemon.Daemon(*self.options)

    def tearDown(self):
        self.daemon.close()

    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def kill_all(self):
        for worker in self.daemon.workers:
            worker.end(signal.SIGKILL)

    def test_a_run_whose_worker_dies_is_not_run_again(self):
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            self.daemon.ask("POST", "/v1/runs", run_of("import time; time.sleep(60)"))))
        thread.start()
        self.assertTrue(wait_until(self.daemon.runs))
        self.kill_all()
        thread.join(daemon.PATIENCE_S)
        status, answer, _ = answers[0]
        self.assertEqual((status, answer["error"]["code"]), (502, "worker_lost"))
        self.assertTrue(answer["error"]["hint"])

    def test_a_stream_says_so(self):
        made = self.daemon.connect()
        made.request("POST", "/v1/runs", json.dumps(run_of("print(1, flush=True); import time; time.sleep(60)")),
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        response = made.getresponse()
        while b'"output"' not in response.readline():
            pass
        self.kill_all()
        last = [json.loads(line) for line in response.read().splitlines() if line.strip()][-1]
        self.assertEqual((last["event"], last["error"]["code"]), ("error", "worker_lost"))
        made.close()

    def test_others_go_on_and_it_comes_back(self):
        lost, kept = self.session(), self.session()
        self.assertNotEqual(lost[:8], kept[:8])
        sessions = {self.daemon.ask("GET", "/v1/sessions/" + name)[0] for name in (lost, kept)}
        self.assertEqual(sessions, {200})
        owner = self.owner(lost)
        owner.end(signal.SIGKILL)
        for _ in range(5):
            self.run_ok("print(1)")
        self.assertEqual(self.step(kept, "1 + 1")[0], 200)
        status, answer, _ = self.step(lost, "1")
        self.assertEqual((status, answer["error"]["code"]), (502, "worker_unreachable"))
        again = Worker(owner.name, owner.key, *self.options, port=owner.port)
        self.daemon.workers[self.daemon.workers.index(owner)] = again
        self.assertTrue(wait_until(lambda: self.daemon.well() == 2))
        self.assertEqual(self.step(lost, "1")[0], 404)

    def owner(self, session):
        number = int(session[:8], 16)
        for worker in self.daemon.workers:
            hashed = 2166136261
            for byte in worker.name.encode():
                hashed = (hashed ^ byte) * 16777619 % 2 ** 32
            if hashed & 0x7fffffff == number:
                return worker
        return None

    def test_nobody_is_there(self):
        self.kill_all()
        status, answer, headers = self.daemon.ask("POST", "/v1/runs", run_of("print(1)"))
        self.assertEqual((status, answer["error"]["message"]), (
            503, "Code execution is currently unavailable: executor pods are not ready."))
        self.assertIn("Retry-After", headers)

    def test_a_list_says_who_is_missing(self):
        kept, lost = self.session(), self.session()
        self.owner(lost).end(signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.daemon.well() == 1))
        status, answer, headers = self.daemon.ask("GET", "/v1/sessions")
        self.assertEqual((status, [row["id"] for row in answer["sessions"]]), (200, [kept]))
        self.assertEqual(headers.get("Vial-Incomplete"), self.owner(lost).name)

    def test_files_are_not_looked_for_elsewhere_while_their_worker_is_silent(self):
        """POST /execute finds its files at one worker: another would answer as if there were none."""
        def execute(code):
            return self.daemon.ask("POST", "/execute", {"generated_code": code, "language": "python", "timeout": 20})
        self.assertEqual(execute("open('f', 'w').write('here')")[1]["process_status"], "completed")
        (server,) = [pid for worker in self.daemon.workers if "kind=execute" in worker.log() for pid in servers_of(worker)]
        answers = []
        thread = threading.Thread(target=lambda: answers.append(execute("print(open('f').read())")))
        os.kill(server, signal.SIGSTOP)
        try:
            self.assertTrue(wait_until(lambda: self.daemon.well() == 1))
            thread.start()
            time.sleep(1)
        finally:
            os.kill(server, signal.SIGCONT)
        thread.join()
        self.assertEqual((answers[0][0], answers[0][1]["stdout"]), (200, "here\n"), answers)

    def test_a_name_that_another_worker_has(self):
        """Ids begin with names: whoever took one would be sent what is another's."""
        owner = self.daemon.workers[0]
        thief = Worker(owner.name, owner.key, *self.options)
        self.addCleanup(thief.close)
        count, daemon.WORKERS = daemon.WORKERS, 0
        try:
            other = daemon.Daemon("--backend", "null", "--set", "relay_key=" + owner.key, "--set",
                                  "workers=%s,%s" % (owner.url, thief.url))
        finally:
            daemon.WORKERS = count
        self.addCleanup(other.close)
        other.workers = [owner, thief]  # for well()
        self.addCleanup(other.workers.clear)
        self.assertTrue(wait_until(lambda: "is the name of" in other.log() or other.well() == 2), other.log())
        time.sleep(2)
        self.assertEqual(other.well(), 1)


def servers_of(worker):
    """The process that answers."""
    with open("/proc/%d/task/%d/children" % ((worker.process.pid,) * 2), encoding="ascii") as file:
        pids = [int(pid) for pid in file.read().split()]
    found = []
    for pid in pids:
        with open("/proc/%d/comm" % pid, encoding="ascii") as name:
            if name.read().strip() == "vial-server":
                found.append(pid)
    return found
