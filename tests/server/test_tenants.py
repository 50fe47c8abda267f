"""Tokens, scopes, quotas; what one tenant sees of another; who has a turn when many want one."""
import http.client
import json
import os
import subprocess
import tempfile
import threading
import shutil
import time

import daemon
from daemon import run_of, wait_until


class TokenDaemon(daemon.Daemon):
    """A `vial serve` with a file of tokens of its own."""

    def __init__(self, *options, settings=""):
        self.place = tempfile.mkdtemp(prefix="vial-tokens-")
        self.tokens = os.path.join(self.place, "tokens")
        self.config = os.path.join(self.place, "vial.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("server:\n  tokens: %s\n%s" % (self.tokens, settings))
        super().__init__("--config", self.config, *options)

    def close(self):
        super().close()
        shutil.rmtree(self.place)

    def vial(self, *words, check=True):
        env = {**os.environ, "VIAL_SOCKET": self.path, "VIAL_CONFIG": self.config}
        return subprocess.run([daemon.VIAL, *words], env=env, capture_output=True, text=True,
                              check=check, timeout=daemon.PATIENCE_S)

    def token(self, tenant, *options):
        return self.vial("token", "create", "--tenant", tenant, *options).stdout.strip()

    def as_(self, token, method, path, body=None, **headers):
        """Ask over TCP; without a token when it is None."""
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
        if token:
            headers["Authorization"] = "Bearer " + token
        try:
            return self.ask(method, path, body, headers, made)
        finally:
            made.close()


def code(answer):
    return answer[0], answer[1]["error"]["code"]


class Case(daemon.Case):
    settings = ""

    @classmethod
    def setUpClass(cls):
        cls.daemon = TokenDaemon(*cls.options, settings=cls.settings)

    def as_(self, *args, **kwargs):
        return self.daemon.as_(*args, **kwargs)


class Tokens(Case):
    def test_from_the_first_token_on_tcp_needs_one(self):
        # Everything in one story: a daemon whose first token this is.
        own = TokenDaemon()
        self.addCleanup(own.close)
        self.assertEqual(own.as_(None, "GET", "/v1/runs")[0], 200)
        self.assertEqual(own.as_(None, "POST", "/exec", {"code": "print(1)"})[1], {"output": "1\n"})
        self.assertEqual(own.as_("any key", "GET", "/v1/runs")[0], 200) # nobody looks at it
        token = own.token("acme")
        answer = own.as_(None, "GET", "/v1/runs")
        self.assertEqual(code(answer), (401, "unauthorized"))
        self.assertEqual(answer[2]["WWW-Authenticate"], 'Bearer realm="vial"')
        self.assertEqual(own.as_(token, "GET", "/v1/runs")[0], 200)
        self.assertEqual(own.as_(None, "GET", "/healthz")[0], 200)
        self.assertEqual(own.ask("GET", "/v1/runs")[0], 200) # the owner of the socket
        own.vial("token", "revoke", token.split("_")[1])
        answer = own.as_(token, "GET", "/v1/runs")
        self.assertEqual(code(answer), (401, "unauthorized"))
        self.assertIn("invalid_token", answer[2]["WWW-Authenticate"])
        self.assertEqual(own.as_(None, "GET", "/v1/runs")[0], 401) # not open again

    def test_both_headers_are_understood(self):
        token = self.daemon.token("acme")
        answer = self.as_(None, "GET", "/v1/tenant", **{"X-API-Key": token})
        self.assertEqual((answer[0], answer[1]["tenant"]), (200, "acme"))
        answer = self.as_(token, "GET", "/v1/tenant", **{"X-API-Key": token})
        self.assertEqual(answer[0], 401) # which one counts?
        self.assertEqual(self.daemon.ask("GET", "/v1/tenant")[1]["tenant"], "local")
        answer = self.daemon.ask("GET", "/v1/tenant", headers={"Authorization": "Bearer " + token})
        self.assertEqual(answer[1]["tenant"], "acme") # also over the socket

    def test_scopes(self):
        run, see = self.daemon.token("a", "--scopes", "run"), self.daemon.token("a", "--scopes", "metrics")
        self.assertEqual(self.as_(run, "POST", "/v1/runs", run_of("1"))[0], 200)
        for method, path in (("GET", "/v1/sessions"), ("GET", "/v1/tokens"), ("GET", "/metrics")):
            answer = self.as_(run, method, path)
            self.assertEqual(code(answer), (403, "forbidden"), path)
            self.assertIn("insufficient_scope", answer[2]["WWW-Authenticate"])
        in_session = {"generated_code": "1", "timeout": 5, "language": "python", "session_id": "s"}
        status, answer, _ = self.as_(run, "POST", "/execute", in_session)
        self.assertEqual((status, answer["process_status"]), (403, "error"))
        self.assertIn("sessions", answer["stderr"])
        self.assertEqual(self.as_(self.daemon.token("a"), "POST", "/execute", in_session)[0], 200)
        self.assertEqual(code(self.as_(see, "POST", "/v1/runs", run_of("1"))), (403, "forbidden"))
        self.assertEqual(code(self.as_(see, "GET", "/nowhere")), (404, "gone"))
        self.assertEqual(code(self.as_(None, "GET", "/nowhere")), (401, "unauthorized"))
        admin = self.daemon.token("root", "--scopes", "admin")
        listed = self.as_(admin, "GET", "/v1/tokens")[1]["tokens"]
        self.assertIn({"a", "root"} & {row["tenant"] for row in listed}, ({"a", "root"},))
        self.assertNotIn("hash", listed[0])

    def test_other_systems_hear_of_it_in_their_words(self):
        self.daemon.token("acme")
        answer = self.as_(None, "POST", "/execute",
                          {"generated_code": "1", "timeout": 1, "language": "python"})
        self.assertEqual((answer[0], answer[1]["process_status"]), (401, "error"))
        answer = self.as_(None, "POST", "/exec", {"code": "1"})
        self.assertEqual((answer[0], answer[1]), (401, {"detail": "a token is needed here"}))

    def test_a_token_that_has_expired(self):
        token = self.daemon.token("acme", "--expires", "1s")
        self.assertTrue(wait_until(
            lambda: "expired" in json.dumps(self.as_(token, "GET", "/v1/runs")[1])))
        self.assertEqual(code(self.as_(token, "GET", "/v1/runs")), (401, "unauthorized"))

    def test_a_file_that_is_broken_changes_nothing(self):
        own = TokenDaemon()
        self.addCleanup(own.close)
        token = own.token("acme")
        with open(own.tokens, "a", encoding="utf-8") as file:
            file.write("nonsense\n")
        self.assertTrue(wait_until(lambda: "the old ones stay" in own.log()), own.log())
        self.assertEqual(own.as_(token, "GET", "/v1/runs")[0], 200)
        os.unlink(own.tokens)
        self.assertTrue(wait_until(lambda: own.as_(token, "GET", "/v1/runs")[0] == 401))

    def test_names_of_the_server(self):
        token = self.daemon.token("acme")
        for host, status in (("localhost", 200), ("10.1.2.3:6000", 200), ("evil.example", 403)):
            answer = self.as_(token, "GET", "/v1/runs", Host=host)
            self.assertEqual(answer[0], status, host)
        answer = self.as_(token, "GET", "/v1/runs", Origin="http://evil.example")
        self.assertEqual(answer[0], 403)


class Isolation(Case):
    def setUp(self):
        self.a, self.b = self.daemon.token("a"), self.daemon.token("b")
        self.admin = self.daemon.token("root", "--scopes", "admin")

    def listed(self, token, what):
        return [row["id"] for row in self.as_(token, "GET", "/v1/" + what)[1][what]]

    def test_sessions(self):
        status, made, _ = self.as_(self.a, "POST", "/v1/sessions", {"language": "python"})
        self.assertEqual((status, made["tenant"]), (201, "a"))
        path = "/v1/sessions/" + made["id"]
        for method, tail, body in (("GET", "", None), ("DELETE", "", None), ("POST", "/interrupt", None),
                                   ("POST", "/reset", None), ("POST", "/runs", {"code": "1"}),
                                   ("POST", "/extend", {"lifetime": 5})):
            self.assertEqual(code(self.as_(self.b, method, path + tail, body)), (404, "gone"), tail)
        self.assertEqual(self.listed(self.b, "sessions"), [])
        self.assertEqual(self.listed(self.a, "sessions"), [made["id"]])
        self.assertIn(made["id"], self.listed(self.admin, "sessions"))
        self.assertEqual(self.as_(self.a, "DELETE", path)[0], 200)

    def test_history(self):
        ran = self.as_(self.a, "POST", "/v1/runs", run_of("'a history of its own'"))[1]["id"]
        self.assertEqual(self.as_(self.a, "GET", "/v1/history/" + ran)[0], 200)
        self.assertEqual(self.as_(self.b, "GET", "/v1/history/" + ran)[0], 404)
        for path in ("/v1/history", "/v1/history/" + ran, "/v1/usage"):
            self.assertEqual(self.as_(self.a, "GET", path + "?tenant=a")[0], 200)
            self.assertEqual(code(self.as_(self.b, "GET", path + "?tenant=a")), (403, "denied"))
            self.assertEqual(self.as_(self.admin, "GET", path + "?tenant=a")[0], 200)
        records = self.as_(self.admin, "GET", "/v1/history?tenant=a&text=of+its+own")[1]["records"]
        self.assertEqual([record["id"] for record in records], [ran])
        self.assertEqual(self.as_(self.admin, "GET", "/v1/usage?tenant=a")[1]["tenant"], "a")

    def test_runs_and_steps(self):
        made = self.as_(self.a, "POST", "/v1/sessions", {"language": "python"})[1]
        ended = []
        for method, path, body in (("POST", "/v1/runs", run_of("import time; time.sleep(60)")),
                                   ("POST", "/v1/sessions/%s/runs" % made["id"],
                                    {"code": "import time; time.sleep(60)"})):
            thread = threading.Thread(target=lambda *w: ended.append(self.as_(self.a, *w)),
                                      args=(method, path, body))
            thread.start()
            self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: len(self.listed(self.a, "runs")) == 2))
        for name in self.listed(self.a, "runs"):
            self.assertEqual(code(self.as_(self.b, "DELETE", "/v1/runs/" + name)), (404, "gone"))
            self.assertEqual(code(self.as_(self.b, "POST", "/v1/runs/%s/calls/1" % name, {"value": 1})),
                             (404, "gone"))
        self.assertEqual(self.listed(self.b, "runs"), [])
        self.assertEqual(len(self.listed(self.admin, "runs")), 2)
        self.assertEqual(len(self.daemon.runs()), 2) # the owner of the socket sees all
        for name in self.listed(self.a, "runs"):
            self.assertEqual(self.as_(self.a, "DELETE", "/v1/runs/" + name)[0], 200)
        self.assertTrue(wait_until(lambda: len(ended) == 2))
        self.as_(self.a, "DELETE", "/v1/sessions/" + made["id"])

    def test_files_of_execute(self):
        def execute(token, text):
            return self.as_(token, "POST", "/execute", {"generated_code": text, "timeout": 30,
                                                        "language": "python"})[1]["stdout"]
        execute(self.a, "open('mine', 'w').write('secret')")
        self.assertEqual(execute(self.a, "print(open('mine').read())"), "secret\n")
        self.assertEqual(execute(self.b, "import os; print(os.listdir())").count("mine"), 0)


class Quotas(Case):
    settings = """  quotas:
    sessions: 1
  tenants:
  - name: fixed
    quotas: {runs: 1, rate: 1000}
"""

    def refused(self, answer, quota):
        self.assertEqual(answer[0], 429, answer)
        self.assertEqual((answer[1]["error"]["code"], answer[1]["error"]["quota"]), ("busy", quota))
        self.assertGreaterEqual(int(answer[2]["Retry-After"]), 1)

    def test_runs_at_once(self):
        token = self.daemon.token("fixed")
        ended = []
        thread = threading.Thread(target=lambda: ended.append(self.as_(
            token, "POST", "/v1/runs", run_of("import time; time.sleep(60)"))))
        thread.start()
        self.assertTrue(wait_until(lambda: self.as_(token, "GET", "/v1/runs")[1]["runs"]))
        self.refused(self.as_(token, "POST", "/v1/runs", run_of("1")), "runs")
        answer = self.as_(token, "POST", "/exec", {"code": "1"})
        self.assertEqual((answer[0], answer[2]["Retry-After"]), (429, "1"))
        name = self.as_(token, "GET", "/v1/runs")[1]["runs"][0]["id"]
        self.as_(token, "DELETE", "/v1/runs/" + name)
        thread.join()
        self.assertEqual(self.as_(token, "POST", "/v1/runs", run_of("1"))[0], 200)
        self.assertEqual(self.as_(token, "GET", "/v1/tenant")[1]["used"]["runs"], 0)

    def test_sessions_and_storage(self):
        token = self.daemon.token("s")
        made = [self.as_(token, "POST", "/v1/sessions", {"language": "python"}) for _ in range(daemon.WORKERS or 1)]
        self.assertEqual({status for status, _, _ in made}, {201})  # at each worker
        self.refused(self.as_(token, "POST", "/v1/sessions", {"language": "python"}), "sessions")
        for _, session, _ in made:
            self.as_(token, "DELETE", "/v1/sessions/" + session["id"])
        token = self.daemon.token("t", "--quota", "storage=1m,sessions=none")
        self.refused(self.as_(token, "POST", "/v1/sessions", {"language": "python"}), "storage")
        status, made, _ = self.as_(token, "POST", "/v1/sessions",
                                   {"language": "python", "limits": {"workspace": "512k"}})
        self.assertEqual(status, 201, made)
        self.as_(token, "DELETE", "/v1/sessions/" + made["id"])
        self.assertTrue(wait_until(lambda: self.as_(token, "GET", "/v1/tenant")[1]["used"]["storage"] == 0))

    def test_cpu_time(self):
        token = self.daemon.token("c", "--quota", "cpu=50ms,window=100h")
        busy = "import time\nwhile time.process_time() < 0.2: pass"
        for _ in range(daemon.WORKERS or 1):  # at each worker
            self.assertEqual(self.as_(token, "POST", "/v1/runs", run_of(busy))[0], 200)
        answer = self.as_(token, "POST", "/v1/runs", run_of("1"))
        self.refused(answer, "cpu")
        self.assertGreater(int(answer[2]["Retry-After"]), 1000)
        self.refused(self.as_(token, "POST", "/v1/sessions", {"language": "python"}), "cpu")
        self.daemon.token("c", "--quota", "cpu=none") # at once, and for all of its tokens
        self.assertEqual(self.as_(token, "POST", "/v1/runs", run_of("1"))[0], 200)

    def test_cpu_time_between_steps(self):
        token = self.daemon.token("d", "--quota", "cpu=700ms,window=100h,sessions=2")
        session = self.as_(token, "POST", "/v1/sessions", {"language": "bash"})[1]["id"]
        step = "/v1/sessions/%s/runs" % session
        self.assertEqual(self.as_(token, "POST", step, {"code": "while :; do :; done &"})[0], 200)
        self.assertTrue(wait_until(lambda: self.as_(token, "POST", "/v1/runs", run_of("1"))[0] == 429))
        self.refused(self.as_(token, "POST", step, {"code": "kill %1"}), "cpu")
        self.refused(self.as_(token, "POST", "/v1/sessions", {"language": "bash"}), "cpu")
        self.assertEqual(self.as_(token, "DELETE", "/v1/sessions/" + session)[0], 200)

    def test_cpu_time_of_one_that_is_closed(self):
        token = self.daemon.token("e", "--quota", "cpu=10s,window=100h")
        session = self.as_(token, "POST", "/v1/sessions", {"language": "bash"})[1]["id"]
        busy = "import time\nwhile time.process_time() < 0.5: pass\nopen('done', 'w')"
        busy = 'python3 -c "%s" &' % busy
        before = self.as_(token, "GET", "/v1/tenant")[1]["used"]["cpu"]
        self.as_(token, "POST", "/v1/sessions/%s/runs" % session, {"code": busy})
        self.assertTrue(wait_until(lambda: self.as_(
            token, "GET", "/v1/sessions/%s/files" % session)[1]["entries"]))
        self.as_(token, "DELETE", "/v1/sessions/" + session)
        self.assertTrue(wait_until(lambda: self.as_(token, "GET", "/v1/tenant")[1]["used"]["cpu"] > before + 0.3))

    def test_rate(self):
        token = self.daemon.token("r", "--quota", "rate=1,burst=5")
        answers = [self.as_(token, "GET", "/v1/tenant") for _ in range(40)]
        good = [answer for answer in answers if answer[0] == 200]
        self.assertGreaterEqual(len(good), 5)
        self.assertLess(len(good), 40)
        self.refused([answer for answer in answers if answer[0] != 200][0], "rate")
        self.assertEqual(self.as_(self.daemon.token("other"), "GET", "/v1/tenant")[0], 200)


class Crowd:
    """Clients that ask again and again, each on a connection of its own."""

    def __init__(self, own, token, clients, body):
        self.own, self.token, self.body = own, token, json.dumps(body)
        self.statuses, self.lock, self.is_over = {}, threading.Lock(), False
        self.bad = []
        self.threads = [threading.Thread(target=self.ask, daemon=True) for _ in range(clients)]
        for thread in self.threads:
            thread.start()

    def ask(self):
        made = http.client.HTTPConnection("127.0.0.1", self.own.port, timeout=daemon.PATIENCE_S * 2)
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + self.token}
        while not self.is_over:
            try:
                made.request("POST", "/v1/runs", self.body, headers)
                response = made.getresponse()
                answer = json.loads(response.read())
            except (OSError, http.client.HTTPException, ValueError) as failed:
                self.bad.append(repr(failed))
                return
            with self.lock:
                self.statuses[response.status] = self.statuses.get(response.status, 0) + 1
            if response.status == 200 and answer["result"]["outcome"] != "exited":
                self.bad.append(answer)
            if response.status in (429, 503):
                if not response.getheader("Retry-After"):
                    self.bad.append(dict(response.getheaders()))
                time.sleep(0.05)
        made.close()

    def count(self, status=200):
        return self.statuses.get(status, 0)

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(daemon.PATIENCE_S * 2)
        return not any(thread.is_alive() for thread in self.threads)


class Crowds(Case):
    options = ("--max", "8", "--queue", "8", "--armed", "2")

    def test_ten_times_as_many_as_there_is_room_for(self):
        token = self.daemon.token("a")
        until = time.monotonic() + float(os.environ.get("CROWD_SECONDS", 0)) # a minute: make soak
        crowd = Crowd(self.daemon, token, 160, run_of("import time; time.sleep(0.1)"))
        self.assertTrue(wait_until(lambda: crowd.count() >= 60 and crowd.count(429) >= 100,
                                   daemon.PATIENCE_S * 2), crowd.statuses)
        while time.monotonic() < until and not crowd.bad:
            before = crowd.count()
            self.assertTrue(wait_until(lambda: crowd.count() > before), "it hangs")
        self.assertTrue(crowd.end(), "somebody has no answer")
        self.assertEqual(crowd.bad, [])
        self.assertLessEqual(set(crowd.statuses), {200, 429, 503})
        self.assert_no_runs()
        self.assertEqual(self.as_(token, "POST", "/v1/runs", run_of("print(1)"))[0], 200)

    def test_many_of_one_tenant_do_not_starve_another(self):
        many, few = self.daemon.token("many"), self.daemon.token("few")
        crowd = Crowd(self.daemon, many, 100, run_of("import time; time.sleep(0.1)"))
        self.assertTrue(wait_until(lambda: crowd.count(429) > 0), crowd.statuses)
        before = crowd.count()
        for _ in range(20): # one after the other, each with a turn of its own
            status, answer, _ = self.as_(few, "POST", "/v1/runs", run_of("print(1)"))
            self.assertEqual(status, 200, answer)
        passed = crowd.count() - before
        self.assertTrue(crowd.end())
        self.assertEqual(crowd.bad, [])
        # First come first served would have let the whole queue and all that runs go before each.
        self.assertLess(passed, 20 * (8 + 4))
