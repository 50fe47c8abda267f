"""Hosts that runs and sessions may reach: through the proxy, as far as the rules go, and no further."""
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import daemon
import outside
import test_tenants
from daemon import wait_until

# What every program here can do: ask(URL) says what came of it.
ASK = '''
import socket, urllib.request, urllib.error
def ask(url, **more):
    try:
        with urllib.request.urlopen(url, timeout=20, **more) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)
def proxy():
    made = socket.create_connection(("127.0.0.1", 3128), 20)
    return made
def raw(data):
    made = proxy()
    made.sendall(data)
    got = b""
    while True:
        try:
            piece = made.recv(65536)
        except OSError:
            break
        if not piece:
            break
        got += piece
    made.close()
    return got
'''

CONFIG = """
egress:
  allow: ["*:*", "127.0.0.5:*", "127.0.0.6:*", "127.0.0.8/30:*"]
  resolvers: ["%s"]
  connections: 16
  bytes: 64m
"""


class Case(daemon.Case):
    """A daemon, a web server on 127.0.0.5, one where nobody may go on 127.0.0.7, and a name server."""
    answers = {
        "web.test": [["127.0.0.5"]],
        "forbidden.test": [["127.0.0.7"]],
        "both.test": [["127.0.0.7", "127.0.0.5"]],
        "turns.test": [["127.0.0.5"], ["127.0.0.7"]],
        "metadata.test": [["169.254.169.254"]],
        "nobody.test": [["127.0.0.6"]],
    }
    config = CONFIG

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="vial-egress-")
        cls.names = outside.Names({name: [list(a) for a in lists] for name, lists in cls.answers.items()})
        cls.web, cls.forbidden = outside.Web("127.0.0.5"), outside.Web("127.0.0.7")
        path = os.path.join(cls.dir, "vial.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(cls.config % cls.names.address)
        cls.options = ("--config", path, "--log-format", "json", "--armed", "2")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for one in (cls.web, cls.forbidden, cls.names):
            one.close()
        shutil.rmtree(cls.dir)

    def url(self, path="/x", host="127.0.0.5"):
        return "http://%s:%d%s" % (host, self.web.port, path)

    def rule(self, host="127.0.0.5"):
        return "%s:%d" % (host, self.web.port)

    def asks(self, expression, hosts, **more):
        """What the expression is in a program that may reach these hosts; and what its result says of it."""
        result = self.run_ok(ASK + "print(repr((%s)))" % expression, allow_hosts=hosts, **more)
        self.assertEqual((result["exit_code"], result["stderr"]), (0, ""), result)
        return eval(result["stdout"]), result["network"]  # of our own making, in a test

    def proxy_pids(self):
        pids = []
        with open("/proc/%d/task/%d/children" % ((self.daemon.process.pid,) * 2), encoding="ascii") as file:
            for pid in file.read().split():
                try:
                    with open("/proc/%s/comm" % pid, encoding="ascii") as name:
                        if name.read().strip() == "vial-egress":
                            pids.append(int(pid))
                except OSError:
                    pass
        return pids


class Reach(Case):
    def test_an_allowed_host_and_no_other(self):
        got, network = self.asks("ask(%r), ask(%r)" % (self.url(), self.url(host="127.0.0.6")), [self.rule()])
        self.assertEqual(got[0], (200, "hello /x"))
        self.assertEqual(got[1][0], 403)
        self.assertIn('127.0.0.6:%d is not among allow_hosts' % self.web.port, got[1][1])
        self.assertEqual((network["allowed"], network["refused"], network["failed"]), (1, 1, 0))
        self.assertEqual([(r["host"], r["port"], r["reason"]) for r in network["refusals"]],
                         [("127.0.0.6", self.web.port, "host")])

    @daemon.inside
    def test_metrics_count_connections(self):
        def counts():
            made = self.daemon.connect()
            made.request("GET", "/metrics")
            lines = made.getresponse().read().decode().splitlines()
            made.close()
            return [int(line.split()[-1]) for line in lines
                    if line.startswith("vial_egress_connections_total{")]
        before = counts()
        self.asks("ask(%r), ask(%r), ask(%r)" % (self.url(), self.url(), self.url(host="127.0.0.6")),
                  [self.rule()])
        self.assertTrue(wait_until(lambda: [now - then for now, then in zip(counts(), before)] == [2, 1, 0]), counts())

    def test_without_hosts_there_is_nothing(self):
        code = (ASK + "import os\ntry: proxy()\nexcept ConnectionRefusedError: print('refused')\n"
                "print([name for name in os.environ if 'proxy' in name.lower()])")
        for hosts in (None, []):
            result = self.run_ok(code, **({} if hosts is None else {"allow_hosts": hosts}))
            self.assertEqual(result["stdout"], "refused\n[]\n")
            self.assertNotIn("network", result)

    def test_there_is_no_way_around(self):
        code = ASK + '''
for address in (("127.0.0.5", %d), ("127.0.0.7", %d), ("8.8.8.8", 53)):
    try:
        socket.create_connection(address, 5)
        print("connected", address)
    except OSError as error:
        print(type(error).__name__)
try:
    socket.getaddrinfo("web.test", 80)
except OSError as error:
    print(type(error).__name__)
''' % (self.web.port, self.forbidden.port)
        result = self.run_ok(code, allow_hosts=[self.rule()])
        self.assertEqual(result["stdout"], "ConnectionRefusedError\nConnectionRefusedError\nOSError\ngaierror\n")

    def test_every_language_and_both_stages(self):
        programs = {
            "javascript": "require('http').get({host: '127.0.0.1', port: 3128, path: '%s'},"
                          " r => r.on('data', d => console.log(d.toString())))" % self.url(),
            "bash": 'exec 3<>/dev/tcp/127.0.0.1/3128; printf "GET %s HTTP/1.0\\r\\n\\r\\n" >&3; tail -n 1 <&3; echo'
                    % self.url(),
            "c": '#include <stdio.h>\n#include <stdlib.h>\nint main(void) { puts(getenv("https_proxy")); }',
        }
        for language, code in programs.items():
            with self.subTest(language):
                result = self.run_ok(code, language, allow_hosts=[self.rule()])
                self.assertIn("http://127.0.0.1:3128" if language == "c" else "hello /x", result["stdout"], result)

    def test_what_is_sent_arrives(self):
        chunks = "data=(b'abc' * 1000 for _ in range(20)), headers={'Transfer-Encoding': 'chunked'}"
        got, _ = self.asks("ask(urllib.request.Request(%r, data=b'x' * 3000000)), "
                           "ask(urllib.request.Request(%r, %s)), len(ask(%r)[1])" %
                           (self.url("/p"), self.url("/q"), chunks, self.url("/bytes/20000000")), [self.rule()])
        self.assertEqual(got, ((200, "3000000 bytes"), (200, "60000 bytes"), 20000000))

    def test_tls_is_between_the_two(self):
        web = outside.Web("127.0.0.5", outside.make_certificate(self.dir))
        self.addCleanup(web.close)
        code = "ask('https://127.0.0.5:%d/t', context=__import__('ssl')._create_unverified_context())" % web.port
        got, network = self.asks(code, ["127.0.0.5:%d" % web.port])
        self.assertEqual(got, (200, "hello /t"))
        self.assertEqual(network["allowed"], 1)
        got, _ = self.asks(code, [self.rule()])
        self.assertEqual(got[0], 0)
        self.assertIn("403", got[1])
        self.assertIn("is not among allow_hosts", got[1])

    def test_a_redirect_is_a_new_request(self):
        self.web.leads_to = "http://127.0.0.6:%d/" % self.web.port
        got, network = self.asks("ask(%r)" % self.url("/to-there"), [self.rule()])
        self.assertEqual((got[0], network["allowed"], network["refused"]), (403, 1, 1))

    def test_the_operators_bound(self):
        self.assert_refused(self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", allow_hosts=["127.0.0.7"])),
                            403, "denied", "allow_hosts[0]", "the operator allows other hosts")
        self.assert_refused(self.daemon.ask("POST", "/v1/sessions", {
            "language": "python", "allow_hosts": ["web.test", "10.0.0.0/8"]}), 403, "denied", "allow_hosts[1]")
        for wrong, field in ((["http://a"], "allow_hosts[0]"), ("a", "allow_hosts"), ([1], "allow_hosts[0]"),
                             (["a:99999"], "allow_hosts[0]"), ([""], "allow_hosts[0]")):
            self.assert_refused(self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", allow_hosts=wrong)),
                                400, "invalid", field)

    @daemon.inside
    def test_each_connection_is_logged(self):
        answer = self.daemon.ask("POST", "/v1/runs", daemon.run_of(
            ASK + "ask(%r); ask(%r)" % (self.url("/logged"), self.url("/logged", "logged.example")),
            allow_hosts=[self.rule()]))
        def lines():
            found = [json.loads(line) for line in self.daemon.log().splitlines() if line.startswith("{")]
            return [x for x in found if x["event"] == "egress" and x.get("run") == answer[1]["id"]]
        self.assertTrue(wait_until(lambda: len(lines()) == 2), lines())
        allowed, refused = sorted(lines(), key=lambda x: x["verdict"])
        self.assertEqual((allowed["verdict"], allowed["host"], allowed["address"], allowed["port"]),
                         ("allowed", "127.0.0.5", "127.0.0.5", self.web.port))
        self.assertGreater(allowed["sent"], 20)
        self.assertGreater(allowed["received"], 20)
        self.assertEqual((refused["verdict"], refused["host"]), ("host", "logged.example"))


class Names(Case):
    def test_a_name_leads_where_it_may(self):
        host = self.rule("web.test")
        got, _ = self.asks("ask(%r)" % self.url(host="WEB.test"), [host, "127.0.0.5:*"])
        self.assertEqual(got, (200, "hello /x"))
        self.assertEqual(self.web.seen[-1][1].lower(), host)
        got, network = self.asks("ask(%r)" % self.url(host="web.test"), [host])
        self.assertEqual((got[0], network["refusals"][0]["reason"], network["refusals"][0]["address"]),
                         (403, "private", "127.0.0.5"))

    def test_what_no_rule_has_is_not_looked_up(self):
        got, _ = self.asks("ask(%r)" % self.url(host="secret.web.test"), [self.rule("web.test"), "127.0.0.5:*"])
        self.assertEqual(got[0], 403)
        self.assertNotIn("secret.web.test", self.names.asked)

    def test_private_addresses_behind_names(self):
        for name in ("forbidden.test", "metadata.test"):
            port = self.forbidden.port
            got, network = self.asks("ask('http://%s:%d/')" % (name, port), ["*:*"])
            self.assertEqual((got[0], network["refusals"][0]["reason"]), (403, "private"), got)
        self.assertEqual(self.forbidden.seen, [])

    def test_only_the_address_that_was_judged(self):
        hosts = ["*.test:*", "127.0.0.5:*"]
        got, _ = self.asks("ask(%r)" % self.url(host="both.test"), hosts)
        self.assertEqual(got[0], 200)
        # A name that is another's by the next time it is asked for: asked once, or refused.
        got, _ = self.asks("[ask(%r)[0] for _ in range(3)]" % self.url(host="turns.test"), hosts)
        self.assertEqual(got, [200, 403, 403])
        self.assertEqual(self.names.asked.count("turns.test"), 3)
        self.assertEqual(self.forbidden.seen, [])

    def test_failures_are_told_apart(self):
        got, network = self.asks("ask('http://missing.test/')[0], ask('http://nobody.test/')[0]",
                                 ["*.test", "127.0.0.6"])
        self.assertEqual(got, (502, 502))
        self.assertEqual([r["reason"] for r in network["refusals"]], ["unknown", "failed"])
        self.assertEqual((network["failed"], network["refused"]), (2, 0))


class Sessions(Case):
    def test_opened_by_the_command(self):
        env = dict(os.environ, VIAL_SOCKET=self.daemon.path)
        done = subprocess.run([daemon.VIAL, "session", "open", "--allow-host", self.rule()], env=env,
                              capture_output=True, text=True, check=True)
        session = done.stdout.strip()
        self.assertEqual(self.step(session, ASK + "ask(%r)[0]" % self.url())["value"]["json"], 200)
        done = subprocess.run([daemon.VIAL, "run", "--daemon", "--allow-host", self.rule(), "-l", "python", "-c",
                               ASK + "print(ask(%r)[0], ask(%r)[0])" % (self.url(), self.url(host="a.test"))],
                              env=env, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "200 403\n")
        self.assertIn("vial: network: a.test", done.stderr)
        self.daemon.ask("DELETE", "/v1/sessions/%s" % session)

    def session(self, **more):
        status, made, _ = self.daemon.ask("POST", "/v1/sessions", {"language": "python", **more})
        self.assertEqual(status, 201, made)
        return made["id"]

    def step(self, session, code):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": code})
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def test_each_step_says_what_was_its_own(self):
        session = self.session(allow_hosts=[self.rule()])
        self.step(session, ASK)
        first = self.step(session, "ask(%r)" % self.url())
        self.assertEqual(first["value"]["json"], [200, "hello /x"])
        self.assertEqual((first["network"]["allowed"], first["network"]["refused"]), (1, 0))
        second = self.step(session, "ask(%r)[0]" % self.url(host="127.0.0.6"))
        self.assertEqual((second["network"]["allowed"], second["network"]["refused"]), (0, 1))
        self.assertEqual(len(second["network"]["refusals"]), 1)
        self.assertEqual(self.daemon.ask("POST", "/v1/sessions/%s/reset" % session)[0], 200)
        again = self.step(session, ASK + "ask(%r)" % self.url())
        self.assertEqual(again["value"]["json"], [200, "hello /x"])
        self.assertEqual(again["network"]["allowed"], 1)
        self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/%s" % session)[0], 200)

    def test_branches_reach_what_their_session_may(self):
        session = self.session(allow_hosts=[self.rule()])
        self.step(session, ASK)
        family = [session]
        for origin in (session, None):  # a fork, and a fork of that
            status, answer, _ = self.daemon.ask("POST", "/v1/sessions/%s/fork" % (origin or family[-1]), {"count": 2})
            self.assertEqual(status, 201, answer)
            family += [branch["id"] for branch in answer["branches"]]
        for number, one in enumerate(family):
            got = self.step(one, "ask(%r)" % self.url("/%d" % number))
            self.assertEqual(got["value"]["json"], [200, "hello /%d" % number])
            self.assertEqual((got["network"]["allowed"], got["network"]["refused"]), (1, 0))
            self.assertEqual(self.step(one, "ask(%r)[0]" % self.url(host="127.0.0.6"))["network"]["refused"], 1)
        for one in family:
            self.assertEqual(self.daemon.ask("DELETE", "/v1/sessions/%s" % one)[0], 200)

    def test_sandboxes_do_not_meet(self):
        serve = "import threading, http.server\ns = http.server.HTTPServer(('127.0.0.1', 9000), " \
                "http.server.SimpleHTTPRequestHandler)\nthreading.Thread(target=s.serve_forever, daemon=True).start()"
        one, two = self.session(allow_hosts=["*:*"]), self.session(allow_hosts=["*:*"])
        self.step(one, serve)
        self.step(two, ASK)
        asked = self.step(two, "raw(b'GET http://127.0.0.1:9000/ HTTP/1.0\\r\\n\\r\\n')[:12].decode()")
        self.assertEqual(asked["value"]["json"], "HTTP/1.1 403")
        direct = self.step(two, "ask('http://localhost:9000/')[0]")
        self.assertEqual(direct["value"]["json"], 0)
        for session in (one, two):
            self.daemon.ask("DELETE", "/v1/sessions/%s" % session)

    @daemon.inside
    def test_a_proxy_that_dies_takes_connections_and_nothing_else(self):
        session = self.session(allow_hosts=[self.rule()])
        self.assertEqual(self.step(session, ASK + "ask(%r)[0]" % self.url())["value"]["json"], 200)
        pids = self.proxy_pids()
        self.assertEqual(len(pids), 1)
        os.kill(pids[0], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: not self.proxy_pids()))
        lost = self.step(session, "ask(%r)" % self.url())
        self.assertEqual((lost["state"], lost["value"]["json"][0]), ("kept", 0))
        got, _ = self.asks("ask(%r)[0]" % self.url(), [self.rule()])
        self.assertEqual(got, 200)
        self.daemon.ask("POST", "/v1/sessions/%s/reset" % session)
        self.assertEqual(self.step(session, ASK + "ask(%r)[0]" % self.url())["value"]["json"], 200)
        self.assertIn("an egress proxy was lost", self.daemon.log())
        self.daemon.ask("DELETE", "/v1/sessions/%s" % session)


class Hostile(Case):
    @daemon.inside
    def test_what_the_proxy_is(self):
        self.asks("ask(%r)[0]" % self.url(), [self.rule()])
        with open("/proc/%d/status" % self.proxy_pids()[0], encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        self.assertEqual({status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}, {"0" * 16})
        self.assertEqual(status["NoNewPrivs"], "1")
        with open(daemon.VIAL, "rb") as program:  # sanitizers make calls that no filter foresees
            self.assertEqual(status["Seccomp"], "0" if b"__asan_init" in program.read() else "2")
        if os.geteuid() == 0:
            self.assertNotIn("0", status["Uid"].split())
            self.assertNotIn("0", status["Gid"].split())

    def test_one_request_is_one_request(self):
        inner = "GET /smuggled HTTP/1.1\\r\\nHost: other\\r\\n\\r\\n"
        requests = [
            "POST %s HTTP/1.1\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" % self.url(),
            "POST %s HTTP/1.1\\r\\nContent-Length: 4\\r\\nContent-Length: 40\\r\\n\\r\\n" % self.url(),
            "GET %s HTTP/1.1\\r\\nA: b\\r\\n c: d\\r\\n\\r\\n" % self.url(),
            "GET %s HTTP/1.1\\nHost: a\\n\\n" % self.url(),
            "GET %s HTTP/1.1\\r\\nX: y\\r\\n\\r\\n" % self.url("/one"),
            "POST %s HTTP/1.1\\r\\nContent-Length: 0\\r\\n\\r\\n" % self.url("/two"),
            "POST %s HTTP/1.1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\n\\r\\n" % self.url("/three"),
        ]
        got, _ = self.asks("[%s]" % ", ".join("raw(b'%s%s')[9:12]" % (r, inner) for r in requests), [self.rule()])
        self.assertEqual(got, [b"400"] * 4 + [b"200"] * 3)
        self.assertNotIn("/smuggled", [path for path, _, _ in self.web.seen])
        last = [host for path, host, _ in self.web.seen if path in ("/one", "/two", "/three")]
        self.assertEqual(last, [self.rule()] * 3)

    def test_heads_that_never_end(self):
        got, network = self.asks("raw(b'GET http://a/ HTTP/1.1\\r\\nA: ' + b'x' * 100000)[9:12], "
                                 "raw(b'\\0' * 1000)[9:12], raw(b'\\x05\\x01\\x00')[9:12]", [self.rule()])
        self.assertEqual(got, (b"431", b"400", b"400"))
        self.assertEqual([r["reason"] for r in network["refusals"]], ["malformed"] * 3)

    def test_more_connections_than_there_may_be(self):
        """Those beyond the number wait; when others leave, they are served."""
        code = ASK + '''
idle = [proxy() for _ in range(40)]
other = proxy()
other.settimeout(1)
other.sendall(b"GET %s HTTP/1.0\\r\\n\\r\\n")
try:
    print(other.recv(12))
except TimeoutError:
    print("waits")
for one in idle:
    one.close()
other.settimeout(20)
print(other.recv(12))
''' % self.url()
        result = self.run_ok(code, allow_hosts=[self.rule()])
        self.assertEqual(result["stdout"], "waits\nb'HTTP/1.1 200'\n", result)

    @daemon.inside
    def test_many_at_once_and_none_left(self):
        before = len(os.listdir("/proc/%d/fd" % self.daemon.server_pid()))
        code = ASK + '''
bad = sum(raw(b"CONNECT 127.0.0.9:1 HTTP/1.1\\r\\n\\r\\n")[9:12] == b"403" for _ in range(1000))
print(bad, ask(%r)[0])
''' % self.url()
        result = self.run_ok(code, allow_hosts=[self.rule()], limits={"timeout": 60, "cpu-time": 60})
        self.assertEqual(result["stdout"], "1000 200\n", result)
        self.assertEqual((result["network"]["refused"], result["network"]["allowed"]), (1000, 1))
        self.assertEqual(len(result["network"]["refusals"]), 8)
        pid = self.proxy_pids()[0]
        self.assertTrue(wait_until(lambda: len(os.listdir("/proc/%d/fd" % pid)) <= 8),
                        os.listdir("/proc/%d/fd" % pid))
        self.assertTrue(wait_until(lambda: len(os.listdir("/proc/%d/fd" % self.daemon.server_pid())) <= before + 2))

    def test_a_connection_ends_with_its_sandbox(self):
        self.web.waiting.clear()
        self.web.left.clear()
        done = threading.Thread(target=self.run_ok, args=(ASK + "ask(%r)" % self.url("/wait"),),
                                kwargs={"allow_hosts": [self.rule()], "limits": {"timeout": 600}})
        done.start()
        self.assertTrue(self.web.waiting.wait(daemon.PATIENCE_S))
        for run in self.daemon.runs():
            self.daemon.ask("DELETE", "/v1/runs/%s" % run["id"])
        self.assertTrue(self.web.left.wait(daemon.PATIENCE_S))
        done.join(daemon.PATIENCE_S)

    def test_no_more_bytes_than_it_may_have(self):
        code = "[len(ask(%r)[1]) for _ in range(5)][-1], ask(%r)[0]" % (self.url("/bytes/16000000"), self.url())
        result = self.run_ok(ASK + "try:\n    print(%s)\nexcept Exception as e:\n    print(type(e).__name__)\n"
                             "print(ask(%r)[0])" % (code, self.url()), allow_hosts=[self.rule()],
                             limits={"memory": "512m"})
        self.assertIn("403", result["stdout"].splitlines()[-1], result)
        self.assertIn("spent", [r["reason"] for r in result["network"]["refusals"]])

    def test_who_ends_while_its_socket_is_made(self):
        """Cancelled at any moment: no run is left, and the next one has what it asks for."""
        for _ in range(20):
            made = self.daemon.raw()
            body = json.dumps(daemon.run_of("1", allow_hosts=[self.rule()]))
            made.sendall(("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          "Content-Length: %d\r\n\r\n%s" % (len(body), body)).encode())
            made.shutdown(socket.SHUT_RDWR)
            made.close()
        self.assert_no_runs()
        got, _ = self.asks("ask(%r)[0]" % self.url(), [self.rule()])
        self.assertEqual(got, 200)


class Defaults(Case):
    config = 'egress: {default: ["127.0.0.5:*"], resolvers: ["%s"]}\n'

    def test_what_is_usual_holds_unless_something_is_said(self):
        code = ASK + "print(ask(%r)[0])" % self.url()
        self.assertEqual(self.run_ok(code)["stdout"], "200\n")
        self.assertEqual(self.run_ok(code)["network"]["allowed"], 1)
        self.assertEqual(self.run_ok(code, allow_hosts=[])["stdout"], "0\n")
        self.assertEqual(self.run_ok(code, allow_hosts=["example.com"])["stdout"], "403\n")

    def test_without_a_bound_others_may_have_what_is_public(self):
        for host in ("127.0.0.7", "10.0.0.1", "169.254.169.254", "[::1]:80", "0.0.0.0/0"):
            self.assert_refused(self.daemon.ask("POST", "/v1/runs", daemon.run_of("1", allow_hosts=[host])),
                                403, "denied", "allow_hosts[0]")
        self.assertEqual(self.run_ok("1", allow_hosts=["example.com", "*.org:*", "1.1.1.1"])["exit_code"], 0)


class Tenants(unittest.TestCase):
    def test_one_may_have_fewer_hosts_than_others(self):
        made = test_tenants.TokenDaemon(settings=(
            "  tenants:\n"
            "    - {name: few, egress: {allow: ['*.example.com'], default: [a.example.com]}}\n"
            "    - {name: none, egress: {allow: []}}\n"))
        self.addCleanup(made.close)
        few, none, other = made.token("few"), made.token("none"), made.token("other")
        code = ASK + "print(ask('http://b.example.org/')[0])"

        def run(token, **more):
            return made.as_(token, "POST", "/v1/runs", daemon.run_of(code, **more))

        self.assertEqual(run(other, allow_hosts=["a.example.org"])[1]["result"]["stdout"], "403\n")
        self.assertEqual(run(few)[1]["result"]["network"]["refused"], 1)  # by its own default
        self.assertNotIn("network", run(other)[1]["result"])
        for token, hosts in ((few, ["b.example.org"]), (none, ["a.example.com"])):
            for path, body in (("/v1/runs", daemon.run_of(code, allow_hosts=hosts)),
                               ("/v1/sessions", {"language": "python", "allow_hosts": hosts})):
                status, answer, _ = made.as_(token, "POST", path, body)
                self.assertEqual((status, answer["error"]["code"], answer["error"]["field"]),
                                 (403, "denied", "allow_hosts"))
