"""The protocol: statuses, bounds, connections, web pages."""
import json
import socket
import time

import daemon
from daemon import run_of

HEAD = b"HTTP/1.1\r\nHost: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"


class Requests(daemon.Case):
    def test_health(self):
        status, answer, headers = self.daemon.ask("GET", "/healthz")
        self.assertEqual((status, answer["status"]), (200, "ok"))
        self.assertEqual(headers["Content-Type"], "application/json")

    def test_what_is_not_there(self):
        ask = self.daemon.ask
        self.assert_refused(ask("GET", "/nowhere"), 404, "gone", words="/nowhere")
        self.assert_refused(ask("GET", "/v1/runs/"), 404, "gone", words="did you mean /v1/runs?")
        self.assert_refused(ask("POST", "/v1/run", {}), 404, "gone", words="did you mean /v1/runs?")
        self.assert_refused(ask("POST", "/v1/session/1/runs", {}), 404, "gone",
                            words="did you mean /v1/sessions/{id}/runs?")
        self.assert_refused(ask("DELETE", "/v1/runs/999999"), 404, "gone")
        self.assert_refused(ask("DELETE", "/v1/runs/x"), 404, "gone")
        self.assert_refused(ask("DELETE", "/v1/runs/-1"), 404, "gone")
        answer = ask("PUT", "/v1/runs")
        self.assert_refused(answer, 405, "invalid")
        self.assertEqual(answer[2]["Allow"], "POST, GET")

    def test_a_body_must_be_json(self):
        ask = self.daemon.ask
        self.assert_refused(ask("POST", "/v1/runs", "code=1", {"Content-Type": "text/plain"}), 415,
                            "invalid")
        self.assert_refused(ask("POST", "/v1/runs", "nonsense"), 400, "invalid", words="not JSON")
        self.assert_refused(ask("POST", "/v1/runs", "[]"), 400, "invalid", words="object")
        for code, words in ((b'"1\n2"', "control character"), (b'"\xc0\xaf"', "UTF-8"), (b'"\xed\xa0\x80"', "UTF-8"),
                            (b'"1", "stdin\\u0000x": ""', "NUL")):
            self.assert_refused(ask("POST", "/v1/runs", b'{"language": "python", "code": ' + code + b'}'), 400, "invalid",
                                words=words)
        status, answer, _ = ask("POST", "/v1/runs", b'{"language": "python", "code": "print(\'a\\u0000b\\\\u0000\')"}')
        self.assertEqual(status, 200, answer)
        self.assert_refused(ask("POST", "/v1/runs", "[" * 100), 400, "invalid", words="nesting")
        self.assert_refused(ask("POST", "/v1/runs", "{" + "\"a\":[]," * 50000 + "\"b\":1}"), 413,
                            "limit")

    def test_a_kind_of_answer_that_is_not_wanted(self):
        for accept, kind in (("application/x-ndjson;q=0", "application/json"),
                             ("text/event-stream; q=0.0, application/json", "application/json"),
                             ("application/x-ndjson;q=0.1", "application/x-ndjson")):
            made = self.daemon.connect()
            made.request("POST", "/v1/runs", json.dumps(run_of("1")),
                         {"Content-Type": "application/json", "Accept": accept})
            response = made.getresponse()
            response.read()
            made.close()
            self.assertEqual(response.getheader("Content-Type"), kind, accept)

    def test_errors_name_their_field(self):
        for change, field, words in (
                ({"language": "klingon"}, "language", "klingon"),
                ({"language": None}, "language", "must be given"),
                ({"environment": "python"}, "environment", "not both"),
                ({"code": None}, "code", "must be given"),
                ({"code": 7}, "code", "a number"),
                ({"timeout": 5}, "timeout", "no such member"),
                ({"limits": {"memory": "much"}}, "limits.memory", "much"),
                ({"limits": {"memory": 1}}, "limits.memory", "between"),
                ({"limits": {"patience": 1}}, "limits.patience", "unknown"),
                ({"args": ["a", 1]}, "args[1]", "a number"),
                ({"env": {"A=B": ""}}, "env.A=B", "variable"),
                ({"files": [{"path": "../x", "content": ""}]}, "files[0].path", ""),
                ({"files": [{"path": "x", "content_base64": "?"}]}, "files[0].content_base64", ""),
                ({"stdin_base64": "a"}, "stdin_base64", "base64"),
                ({"exports": ["/etc/passwd"]}, "exports[0]", ""),
                ({"workdir": "/proc"}, "workdir", "")):
            with self.subTest(field=field):
                body = {**run_of("1"), **change}
                self.assert_refused(self.daemon.ask("POST", "/v1/runs", body), 400, "invalid",
                                    field, words)

    def test_a_body_that_is_too_large(self):
        body = json.dumps(run_of("#" * (33 << 20)))
        self.assert_refused(self.daemon.ask("POST", "/v1/runs", body), 413, "limit")
        body = json.dumps(run_of("#" * (17 << 20)))
        self.assert_refused(self.daemon.ask("POST", "/v1/runs", body), 413, "limit", "code")
        with self.daemon.raw() as sock: # announced only: nobody waits for it
            sock.sendall(b"POST /v1/runs " + HEAD + JSON + b"Content-Length: 99999999999\r\n\r\n")
            self.assertIn(b" 413 ", daemon.read_all(sock))

    def test_large_requests_are_fine(self):
        result = self.run_ok("import sys; print(len(sys.stdin.read()), len(open('f').read()))",
                             stdin="x" * (8 << 20), files=[{"path": "f", "content": "y" * (8 << 20)}],
                             limits={"memory": "1g"})
        self.assertEqual(result["stdout"], "%d %d\n" % (8 << 20, 8 << 20))

    def test_headers_that_are_too_large(self):
        for size in (20000, 200000):
            with self.daemon.raw() as sock:
                sock.sendall(b"GET /healthz " + HEAD + b"X: " + b"y" * size + b"\r\n\r\n")
                self.assertIn(b" 431 ", daemon.read_all(sock) if size > 30000 else sock.recv(9999))


class Connections(daemon.Case):
    def test_a_connection_is_kept(self):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        for i in range(20):
            status, answer, _ = self.daemon.ask("POST", "/v1/runs", run_of("print(%d)" % i),
                                                connection=made)
            self.assertEqual((status, answer["result"]["stdout"]), (200, "%d\n" % i))
            if i == 0:
                first = made.sock
            self.assertIs(made.sock, first)

    def test_pipelined_requests(self):
        with self.daemon.raw() as sock:
            for i in range(5):
                body = json.dumps(run_of("print('answer %d')" % i)).encode()
                sock.sendall(b"POST /v1/runs " + HEAD + JSON +
                             b"Content-Length: %d\r\n\r\n" % len(body) + body)
            sock.sendall(b"GET /healthz " + HEAD + b"Connection: close\r\n\r\n")
            got = daemon.read_all(sock)
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 6)
        places = [got.index(b"answer %d" % i) for i in range(5)]
        self.assertEqual(places, sorted(places))

    def test_chunked_bodies(self):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        pieces = [piece.encode() for piece in json.dumps(run_of("print('in pieces')"))]
        made.request("POST", "/v1/runs", iter(pieces), {"Content-Type": "application/json"},
                     encode_chunked=True)
        self.assertEqual(json.load(made.getresponse())["result"]["stdout"], "in pieces\n")

    def test_old_clients(self):
        with self.daemon.raw() as sock:
            sock.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            got = daemon.read_all(sock)
        self.assertIn(b" 200 OK\r\n", got)
        self.assertTrue(got.endswith(b"}\n"))

    def test_nonsense_is_not_answered(self):
        for text in (b"\x16\x03\x01\x02\x00\x01\x00", b"NONSENSE\r\n\r\n", b"GET\r\n\r\n", b"\0" * 5000,
                     b"GET /healthz HTTP/9.9\r\n\r\n", b"POST /v1/runs " + HEAD + JSON +
                     b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(text=text[:30]), self.daemon.raw() as sock:
                sock.settimeout(0.5)
                sock.sendall(text)
                try:
                    self.assertNotIn(b" 200 ", daemon.read_all(sock))
                except socket.timeout: # it waits for the rest
                    pass
        self.assertTrue(self.daemon.answers())

    def test_requests_are_not_smuggled(self):
        inner = b"GET /v1/environments " + HEAD + b"\r\n"
        for head in (b"Content-Length: 3\r\nContent-Length: 4\r\n",
                     b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
                     b"Transfer-Encoding: identity\r\n",
                     b"Content-Length : %d\r\n" % len(inner), b"Transfer-Encoding\t: chunked\r\n",
                     b"X: a\rContent-Length: 3\r\n"):
            with self.subTest(head=head), self.daemon.raw() as sock:
                sock.sendall(b"POST /v1/runs " + HEAD + JSON + head + b"\r\nabc" + inner)
                got = daemon.read_all(sock)
                self.assertIn(b" 400 ", got)
                self.assertNotIn(b"environments", got)

    def test_slow_clients_hold_up_nobody(self):
        slow = [self.daemon.raw() for _ in range(300)]
        for i, sock in enumerate(slow): # half a head, half a body, nothing
            self.addCleanup(sock.close)
            if i % 3 == 0:
                sock.sendall(b"GET /healthz HTTP/1.1\r\nHos")
            elif i % 3 == 1:
                sock.sendall(b"POST /v1/runs " + HEAD + JSON + b"Content-Length: 1000\r\n\r\n{")
        start = time.monotonic()
        self.assertEqual(self.run_ok("print(1)")["stdout"], "1\n")
        self.assertLess(time.monotonic() - start, 20)
        for sock in slow: # they may still go on
            if sock is slow[0]:
                sock.sendall(b"t: localhost\r\n\r\n")
                self.assertIn(b" 200 OK", sock.recv(9999))


class WebPages(daemon.Case):
    """A page in the user's browser must not drive the server."""

    def tcp(self, text):
        with self.daemon.raw(tcp=True) as sock:
            sock.sendall(text)
            return sock.recv(9999)

    def test_over_tcp_for_this_machine_only(self):
        for host in (b"localhost:%d", b"127.0.0.1:%d", b"[::1]:%d"):
            text = b"GET /healthz HTTP/1.1\r\nHost: " + host % self.daemon.port + b"\r\n\r\n"
            self.assertIn(b" 200 OK", self.tcp(text))
        for host in (b"evil.example", b"127.0.0.1.evil.example", b"10.0.0.1", b"localhost.", b""):
            text = b"GET /healthz HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
            got = self.tcp(text)
            self.assertIn(b" 403 ", got, host)
            self.assertIn(b'"code":"denied"', got)

    def test_other_origins(self):
        for origin in (b"http://evil.example", b"null", b"https://localhost", b"http://localhost:1"):
            text = b"GET /healthz " + HEAD + b"Origin: " + origin + b"\r\n\r\n"
            self.assertIn(b" 403 ", self.tcp(text), origin)
        text = b"GET /healthz " + HEAD + b"Origin: http://localhost\r\n\r\n"
        self.assertIn(b" 200 OK", self.tcp(text))
