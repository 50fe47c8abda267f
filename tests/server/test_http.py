"""The protocol: statuses, bounds, connections, web pages."""
import contextlib
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

    def test_a_refused_body_that_never_ends(self):
        for path, status in (("/v1/runs", 413), ("/v1/nothing", 404)):
            with self.subTest(path=path), self.daemon.raw() as sock:
                sock.sendall(b"POST %s " % path.encode() + HEAD + JSON + b"Transfer-Encoding: chunked\r\n\r\n")
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    for _ in range(200):
                        sock.sendall(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")
                self.assertIn(b" %d " % status, sock.recv(9999))

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

    def test_old_clients_may_stay(self):
        with self.daemon.raw() as sock:
            sock.sendall(b"GET /healthz HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"
                         b"GET /healthz HTTP/1.0\r\n\r\n")
            got = daemon.read_all(sock)
        self.assertEqual((got.count(b" 200 OK\r\n"), got.count(b"Connection: keep-alive\r\n")), (2, 1))

    def test_empty_lines_before_a_request(self):
        with self.daemon.raw() as sock:
            sock.sendall(b"\r\n\r\nGET /healthz " + HEAD + b"\r\n\r\nGET /healthz " + HEAD +
                         b"Connection: close\r\n\r\n")
            self.assertEqual(daemon.read_all(sock).count(b" 200 OK\r\n"), 2)

    def test_an_address_with_its_host(self):
        """As to a proxy; the host there is the one that counts."""
        with self.daemon.raw(tcp=True) as sock:
            for target, host, status in (("http://localhost/healthz", "evil.example", 200),
                                         ("HTTP://127.0.0.1:%d/healthz" % self.daemon.port, "x", 200),
                                         ("http://localhost?x", "localhost", 200),
                                         ("http://evil.example/healthz", "localhost", 403)):
                sock.sendall(("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (target, host)).encode())
                self.assertIn(b" %d " % status, sock.recv(9999), target)

    def test_who_asks_before_sending_is_told(self):
        body = json.dumps(run_of("print('asked')")).encode()
        head = (b"POST /v1/runs " + HEAD + JSON + b"Content-Length: %d\r\n" % len(body))
        with self.daemon.raw() as sock:
            sock.sendall(head + b"Expect: 100-continue\r\n\r\n")
            self.assertEqual(sock.recv(9999), b"HTTP/1.1 100 Continue\r\n\r\n")
            sock.sendall(body)
            self.assertIn(b"asked\\n", sock.recv(9999))
            sock.sendall(head + b"Expect: a-miracle\r\n\r\n" + body)
            self.assertIn(b" 417 ", sock.recv(9999))

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


class Nonsense(daemon.Case):
    """Whatever comes instead of a request: the one shape of errors, once, and the end."""
    POST = b"POST /v1/runs " + HEAD + JSON
    BROKEN = (
        (400, b"GARBAGE\r\n\r\n"),
        (400, b"GET\r\n\r\n"),
        (400, b"GET /healthz\r\n\r\n"),
        (400, b"GET  /healthz " + HEAD + b"\r\n"),
        (400, b"G(T /healthz " + HEAD + b"\r\n"),
        (400, b"GET /healthz HTTP/1.1\nHost: localhost\n\n"),
        (400, b"GET /healthz " + HEAD + b"Host: localhost\r\n\r\n"),
        (400, b"GET /healthz " + HEAD + b"X: a\r\n b\r\n\r\n"),
        (400, b"GET /healthz " + HEAD + b"no colon\r\n\r\n"),
        (400, b"GET /healthz " + HEAD + b"X: \0\r\n\r\n"),
        (400, POST + b"Content-Length: -1\r\n\r\n"),
        (400, POST + b"Content-Length: 1x\r\n\r\nx"),
        (400, POST + b"Content-Length:\r\n\r\n"),
        (413, POST + b"Content-Length: 99999999999999999999\r\n\r\n"),
        (400, POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (400, POST + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n"),
        (414, b"GET /" + b"x" * 40000),
        (431, b"GET /healthz " + HEAD + b"X: " + b"y" * 40000),
        (431, b"GET /healthz " + HEAD + b"X: y\r\n" * 2000 + b"\r\n"),
        (505, b"GET /healthz HTTP/9.9\r\n\r\n"),
        (505, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        (400, b"\x16\x03\x01\x02\x00\x01\x00"),
        (400, b"\0" * 5000),
    )
    # These are requests, and the connection is good for more.
    ODD = (
        (400, b"GET /healthz HTTP/1.1\r\n\r\n"),
        (400, b"GET healthz " + HEAD + b"\r\n"),
        (400, b"OPTIONS * " + HEAD + b"\r\n"),
        (400, b"CONNECT localhost:80 " + HEAD + b"\r\n"),
        (400, b"GET /healthz?" + b"&".join(b"a%d=1" % i for i in range(600)) + b" " + HEAD + b"\r\n"),
        (431, b"GET /healthz " + HEAD + b"X: y\r\n" * 64 + b"\r\n"),
    )

    def read_one(self, got):
        head, body = got.split(b"\r\n\r\n", 1)
        self.assertTrue(head.startswith(b"HTTP/1.1 "), got)
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
        self.assertEqual((fields["Content-Type"], fields["Content-Length"]), ("application/json", str(len(body))))
        self.assertTrue(fields["X-Request-Id"] and fields["Date"].endswith(" GMT"), fields)
        return int(head.split()[1]), json.loads(body), fields

    def test_is_told_what_is_wrong_with_it(self):
        for tcp in (False, True):
            for status, text in self.BROKEN:
                with self.subTest(text=text[:60], tcp=tcp), self.daemon.raw(tcp) as sock:
                    sock.sendall(text)
                    answer = self.read_one(daemon.read_all(sock))
                    self.assert_refused(answer, status, "limit" if status in (413, 414, 431) else "invalid")
                    self.assertEqual(answer[2].get("Connection"), "close")
        self.assertTrue(self.daemon.answers())

    def test_what_is_merely_wrong_ends_nothing(self):
        for status, text in self.ODD:
            with self.subTest(text=text[:60]), self.daemon.raw() as sock:
                for _ in range(2):
                    sock.sendall(text)
                    answer = self.read_one(sock.recv(9999))
                    self.assertEqual((answer[0], set(answer[1])), (status, {"error"}), answer)
                    self.assertNotIn("Connection", answer[2])
                sock.sendall(b"GET /healthz?" + b"&".join([b"a"] * 64) + b" " + HEAD + b"\r\n")
                self.assertIn(b" 200 OK", sock.recv(9999))

    def test_hints(self):
        with self.daemon.raw(tcp=True) as sock:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
            self.assertIn(b"not https://", daemon.read_all(sock))

    def test_other_systems_clients_are_told_in_their_words(self):
        with self.daemon.raw() as sock:
            sock.sendall(b"POST /execute " + HEAD + JSON + b"Content-Length: -1\r\n\r\n")
            status, answer, _ = self.read_one(daemon.read_all(sock))
        self.assertEqual((status, set(answer)), (400, {"stdout", "stderr", "process_status"}), answer)


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
