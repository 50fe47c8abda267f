"""Requests that are carried out once, however often they are sent."""
import json
import threading
import uuid

import daemon
from daemon import run_of, wait_until

# What no two runs have in common.
UNIQUE = "import os; print(os.urandom(8).hex())"


class Keys(daemon.Case):
    def post(self, body, key, path="/v1/runs", **headers):
        return self.daemon.ask("POST", path, body, {"Idempotency-Key": key, **headers})

    def test_the_same_again_is_answered_by_the_first(self):
        key = str(uuid.uuid4())
        first, again = self.post(run_of(UNIQUE), key), self.post(run_of(UNIQUE), key)
        self.assertEqual((first[0], again[0]), (200, 200))
        self.assertEqual(again[1], first[1])
        self.assertNotIn("Idempotent-Replayed", first[2])
        self.assertEqual(again[2]["Idempotent-Replayed"], "true")
        self.assertNotEqual(again[2]["X-Request-Id"], first[2]["X-Request-Id"])
        self.assertEqual(self.post(run_of(UNIQUE), '"%s"' % key)[1], first[1])  # as the standard has it
        self.assertNotEqual(self.post(run_of(UNIQUE), str(uuid.uuid4()))[1], first[1])

    def test_another_request_with_the_same_key(self):
        key = str(uuid.uuid4())
        self.assertEqual(self.post(run_of("1"), key)[0], 200)
        self.assert_refused(self.post(run_of("2"), key), 422, "invalid", "Idempotency-Key")
        self.assert_refused(self.post(run_of("1"), key, "/v1/sessions"), 422, "invalid", "Idempotency-Key")
        self.assert_refused(self.post(run_of("1"), key, "/v1/runs?a=1"), 422, "invalid", "Idempotency-Key")

    def test_what_is_no_key(self):
        for key in ("", " ", "a b", "x" * 256, '"', '"open', '"a"b', '"\\x"', "\u00e4"):
            with self.subTest(key):
                self.assert_refused(self.post(run_of("1"), key.encode("latin-1")), 400, "invalid",
                                    "Idempotency-Key")

    def test_a_request_that_was_refused_may_be_sent_again(self):
        key = str(uuid.uuid4())
        self.assertEqual(self.post(run_of("1", language="klingon"), key)[0], 400)
        self.assertEqual(self.post(run_of("1"), key)[0], 200)

    def test_while_the_first_is_under_way(self):
        key, body, answers = str(uuid.uuid4()), run_of("import time; time.sleep(3); print(7)"), []
        first = threading.Thread(target=lambda: answers.append(self.post(body, key)))
        first.start()
        self.assertTrue(wait_until(self.daemon.runs))
        refused = self.post(body, key)
        self.assert_refused(refused, 409, "busy")
        self.assertEqual(refused[2]["Retry-After"], "1")
        first.join()
        self.assertEqual(self.post(body, key)[1], answers[0][1])

    def lose(self, body, key, path="/v1/runs", accept="*/*"):
        """Send it, and go when it is under way."""
        made = self.daemon.connect()
        made.request("POST", path, json.dumps(body), {"Content-Type": "application/json",
                                                      "Idempotency-Key": key, "Accept": accept})
        self.assertTrue(wait_until(self.daemon.runs))
        made.close()

    def answer(self, body, key, path="/v1/runs"):
        """What a client gets that asks until there is an answer."""
        found = []

        def ask():
            found[:] = self.post(body, key, path)
            return found[0] != 409
        self.assertTrue(wait_until(ask))
        self.assertEqual(found[2].get("Idempotent-Replayed"), "true")
        return found[1]

    def test_a_client_that_lost_its_connection_gets_its_answer(self):
        key, body = str(uuid.uuid4()), run_of("import time; time.sleep(3); print('done')")
        self.lose(body, key)
        self.assertEqual(self.answer(body, key)["result"]["stdout"], "done\n")
        self.assert_no_runs()

    def test_a_stream_is_repeated_whole(self):
        key, body = str(uuid.uuid4()), run_of("import time; print(1, flush=True); time.sleep(3); print(2)")
        self.lose(body, key, accept="application/x-ndjson")
        made = self.daemon.connect()
        self.addCleanup(made.close)
        headers = {"Content-Type": "application/json", "Idempotency-Key": key,
                   "Accept": "application/x-ndjson"}

        def ask():
            made.request("POST", "/v1/runs", json.dumps(body), headers)
            response = made.getresponse()
            self.text = response.read().decode()
            self.kind = response.getheader("Content-Type")
            return response.status == 200
        self.assertTrue(wait_until(ask))
        events = [json.loads(line) for line in self.text.splitlines()]
        self.assertEqual(self.kind, "application/x-ndjson")
        self.assertEqual((events[0]["event"], events[-1]["result"]["stdout"]), ("start", "1\n2\n"))
        self.assertEqual("".join(e["data"] for e in events if e["event"] == "output"), "1\n2\n")

    def test_a_session_is_made_once(self):
        key = str(uuid.uuid4())
        made = self.post({"language": "python"}, key, "/v1/sessions")
        self.assertEqual(made[0], 201)
        again = self.post({"language": "python"}, key, "/v1/sessions")
        self.assertEqual((again[0], again[1]["id"]), (201, made[1]["id"]))
        self.assertEqual(len(self.daemon.ask("GET", "/v1/sessions")[1]["sessions"]), 1)
        path = "/v1/sessions/%s/runs" % made[1]["id"]
        self.post({"code": "x = 0"}, str(uuid.uuid4()), path)
        step = str(uuid.uuid4())
        for _ in range(3):
            answer = self.post({"code": "x += 1; x"}, step, path)
            self.assertEqual(answer[1]["result"]["value"]["json"], 1)
        self.daemon.ask("DELETE", "/v1/sessions/" + made[1]["id"])
        self.assertEqual(self.post({"code": "x += 1; x"}, step, path)[0], 200)  # what was, was

    def test_a_step_whose_client_went_before_its_turn(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        path = "/v1/sessions/%s/runs" % session
        slow = threading.Thread(target=lambda: self.daemon.ask("POST", path, {"code": "import time; time.sleep(1)"}))
        slow.start()
        self.assertTrue(wait_until(self.daemon.runs))
        key = str(uuid.uuid4())
        self.lose({"code": "6 * 7"}, key, path)
        self.assertEqual(self.answer({"code": "6 * 7"}, key, path)["result"]["value"]["json"], 42)
        slow.join()
        self.daemon.ask("DELETE", "/v1/sessions/" + session)

    def test_an_answer_that_is_too_large_is_not_run_again(self):
        key, body = str(uuid.uuid4()), run_of("print('x' * (2 << 20))", limits={"output": "4m"})
        self.assertEqual(self.post(body, key)[0], 200)
        self.assert_refused(self.post(body, key), 409, "limit")

    def test_an_answer_that_is_too_large_is_under_way_until_its_end(self):
        key = str(uuid.uuid4())
        body = run_of("import time\nprint('x' * (2 << 20), flush=True)\ntime.sleep(3)\nprint('end')",
                      limits={"output": "4m"})
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("POST", "/v1/runs", json.dumps(body), {
            "Content-Type": "application/json", "Idempotency-Key": key, "Accept": "application/x-ndjson"})
        response = made.getresponse()
        response.read(2 << 20)
        # Others with a key have the old ones swept; this one is none of them yet.
        self.assertEqual(self.post(run_of("1"), str(uuid.uuid4()))[0], 200)
        self.assert_refused(self.post(body, key), 409, "busy")
        self.assertIn("end\\n", response.read().decode())
        self.assert_refused(self.post(body, key), 409, "limit")

    def test_what_nobody_waits_for_can_be_ended_by_its_key(self):
        key, body = "k" + uuid.uuid4().hex, run_of("import time; time.sleep(60)")
        self.lose(body, key)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + key)[0], 200)
        self.assert_no_runs()
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + key)[0], 404)
        answers, busy = [], threading.Thread(target=lambda: answers.append(self.post(body, key)))
        busy.start()  # forgotten, so it is carried out; this time its client stays
        self.assertTrue(wait_until(self.daemon.runs))
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + key)[0], 200)
        busy.join()
        self.assert_refused(answers[0], 409, "gone")
        self.assert_no_runs()

    def test_a_step_can_be_ended_by_its_key(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        path, key, body = "/v1/sessions/%s/runs" % session, "k" + uuid.uuid4().hex, {"code": "while True: pass"}
        self.lose(body, key, path)
        self.assertTrue(wait_until(lambda: [run for run in self.daemon.runs() if run["state"] == "running"]))
        self.assertEqual(self.daemon.ask("DELETE", "/v1/runs/" + key)[0], 200)
        self.assertEqual(self.answer(body, key, path)["result"]["outcome"], "cancelled")
        self.assert_no_runs()
        self.daemon.ask("DELETE", "/v1/sessions/" + session)

    def test_who_sends_no_key_takes_its_run_with_it(self):
        made = self.daemon.connect()
        made.request("POST", "/v1/runs", json.dumps(run_of("import time; time.sleep(60)")),
                     {"Content-Type": "application/json"})
        self.assertTrue(wait_until(self.daemon.runs))
        made.close()
        self.assert_no_runs()


class Room(daemon.Case):
    @daemon.inside
    def test_keys_do_not_pile_up(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        made = self.daemon.connect()
        self.addCleanup(made.close)

        def step(number):
            return self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": "1"},
                                   {"Idempotency-Key": "k%d" % number}, made)
        for i in range(1100):
            self.assertEqual(step(i)[0], 200)
        page = self.daemon.connect()
        page.request("GET", "/metrics")
        text = page.getresponse().read().decode()
        page.close()
        entries = int(text.split("\nvial_idempotency_entries ")[1].split("\n")[0])
        self.assertEqual(entries, 1024)
        # The oldest is forgotten, the newest is not.
        self.assertIn("Idempotent-Replayed", step(1099)[2])
        self.assertNotIn("Idempotent-Replayed", step(0)[2])

    def test_a_server_that_ends_forgets_who_went(self):
        one = daemon.Daemon()
        made = one.connect()
        made.request("POST", "/v1/runs", json.dumps(run_of("import time; time.sleep(60)")),
                     {"Content-Type": "application/json", "Idempotency-Key": "x"})
        self.assertTrue(wait_until(one.runs))
        made.close()
        one.process.terminate()
        self.assertEqual(one.process.wait(daemon.PATIENCE_S), 0)
        one.close()
