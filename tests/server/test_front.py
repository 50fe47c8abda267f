"""What stands before the server: its settings, TLS, reloads, and systemd."""
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import time
import unittest

import daemon
import websocket
from daemon import free_port, wait_until

CERTIFICATE = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
               "-nodes", "-days", "2", "-subj", "/CN=localhost",
               "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]


class Front(unittest.TestCase):
    """Tests with a directory, a file of settings in it, and a daemon that was started from that."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="vial-front-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.config = self.path("vial.yaml")
        self.port = free_port()
        self.process = None

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, *lines, other=""):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("\n  ".join(["server:", "armed: 0", *lines]) + "\n" + other)

    def write_secret(self, name, text):
        with open(self.path(name), "w", encoding="ascii") as file:
            file.write(text + "\n")

    def certificate(self, name):
        """Of a pair that is new each time."""
        subprocess.run([*CERTIFICATE, "-out", self.path(name), "-keyout", self.path(name + ".key")],
                       check=True, capture_output=True)
        return self.path(name)

    def start(self, *options, env=None, **more):
        log = open(self.path("log"), "w", encoding="utf-8")
        with log:
            self.process = subprocess.Popen(
                [daemon.VIAL, "serve", "--config", self.config, *options], stderr=log,
                stdin=subprocess.DEVNULL, stdout=log, env={**os.environ, **(env or {})}, **more)
        self.addCleanup(self.stop)

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(daemon.PATIENCE_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def log(self):
        with open(self.path("log"), encoding="utf-8") as file:
            return file.read()

    def says(self, text):
        return wait_until(lambda: text in self.log() or self.process.poll() is not None) and \
            text in self.log()

    def assert_says(self, text):
        self.assertTrue(self.says(text), "no '%s' in: %s" % (text, self.log()))

    def assert_refuses(self, text):
        """It is one clear line, and the end."""
        self.assertNotEqual(self.process.wait(daemon.PATIENCE_S), 0)
        self.assertIn(text, self.log())

    def reload(self, text="the configuration was read again"):
        seen = self.log().count(text)
        self.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: self.log().count(text) > seen), self.log())

    def get(self, port, host="localhost", context=None, path="/healthz"):
        """Its status; by TLS where there is a context."""
        made = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=daemon.PATIENCE_S) \
            if context else http.client.HTTPConnection("127.0.0.1", port, timeout=daemon.PATIENCE_S)
        try:
            made.request("GET", path, headers={"Host": host})
            return made.getresponse().status
        finally:
            made.close()


class Tls(Front):
    def setUp(self):
        super().setUp()
        self.first = self.certificate("first")
        self.plain = free_port()

    def write_tls(self, name, key=None, more=()):
        self.write("socket: " + self.path("s"), *more,
                   "listen: [127.0.0.1:%d, 'https://127.0.0.1:%d']" % (self.plain, self.port),
                   "tls_certificate: " + self.path(name), "tls_key: " + self.path(key or name + ".key"))

    def trust(self, name):
        return ssl.create_default_context(cafile=self.path(name))

    def test_requests_streams_and_large_bodies(self):
        self.write_tls("first")
        self.start()
        self.assert_says("https://127.0.0.1:%d" % self.port)
        self.assertEqual(self.get(self.plain), 200)
        context = self.trust("first")
        made = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)
        big = "print(len('''%s'''))" % ("x" * 3000000)
        for _ in range(2): # the connection is kept
            made.request("POST", "/v1/runs", '{"language": "python", "code": "%s"}' % big,
                         {"Content-Type": "application/json"})
            answer = made.getresponse()
            self.assertIn(b"3000000\\n", answer.read())
        made.request("POST", "/v1/runs", '{"language": "python", "code": "print(6 * 7)"}',
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        events = made.getresponse().read().splitlines()
        self.assertIn(b'"start"', events[0])
        self.assertIn(b'"result"', events[-1])
        self.assertIn(b"42\\n", events[-1])

        with self.assertRaises((OSError, http.client.HTTPException)): # no plain text there
            self.get(self.port)
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("ALL:@SECLEVEL=0")
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with self.assertRaises(OSError):
            self.get(self.port, context=old)
        self.assertEqual(self.get(self.port, context=context), 200)

    def secure(self, name):
        made = socket.create_connection(("127.0.0.1", self.port), daemon.PATIENCE_S)
        made = self.trust(name).wrap_socket(made, server_hostname="localhost")
        self.addCleanup(made.close)
        return made

    def test_it_is_the_same_inside(self):
        """What is no request, requests that come byte by byte, several at once, in large records."""
        self.write_tls("first")
        self.start()
        self.assert_says("https://127.0.0.1:%d" % self.port)
        head = b"HTTP/1.1\r\nHost: localhost\r\n"
        made = self.secure("first")
        self.assertEqual(made.selected_alpn_protocol(), None)
        for byte in b"GET /healthz " + head + b"\r\n":
            made.send(bytes([byte]))
        self.assertIn(b" 200 OK\r\n", made.recv(9999))
        made.sendall((b"GET /healthz " + head + b"\r\n") * 200 + b"GET /healthz " + head + b"Connection: close\r\n\r\n")
        self.assertEqual(daemon.read_all(made).count(b" 200 OK\r\n"), 201)
        made = self.secure("first")
        made.sendall(b"GARBAGE\r\n\r\n")
        self.assertIn(b'{"error":{"code":"invalid"', daemon.read_all(made))

    def test_a_terminal(self):
        """There is a pair of sockets between it and its client."""
        self.write_tls("first")
        self.start()
        self.assert_says("https://127.0.0.1:%d" % self.port)
        path = "/v1/sessions/%s/terminal" % self.post("/v1/sessions", {"language": "bash"})["id"]
        for words, told in ((b"exit 7\n", (1000, "exit 7")), (b"kill -9 $$\n", (1000, "signal 9"))):
            shell = websocket.WebSocket(self.secure("first"), path)
            self.assertEqual(shell.status, 101)
            shell.send(b"head -c 600000 /dev/zero | tr '\\0' x; echo do''ne\n")
            self.assertEqual(shell.until(b"done").count("x" * 60), 10000)
            shell.send(b"stty -echo; cat > f; echo re''ad\n")
            for _ in range(300):
                shell.send(b"y" * 999 + b"\n")
            shell.send(b"\x04")
            shell.until(b"read")
            shell.send(b"wc -c f\n")
            shell.until(b"300000 f")
            shell.send(words)
            self.assertEqual(shell.closing(), told)
            shell.send(told[0].to_bytes(2, "big"), websocket.CLOSE)
            self.assertEqual(shell.sock.recv(1), b"")
        websocket.WebSocket(self.secure("first"), path).sock.close() # who goes takes the shell along
        self.assertTrue(wait_until(lambda: "0" not in self.post(path.replace("terminal", "runs"),
                                                                {"code": "ls /dev/pts"})["result"]["stdout"]))

    def test_a_terminal_that_is_full_when_its_client_goes(self):
        """Nobody takes what came, and nobody is there any more: that is no work."""
        self.write_tls("first")
        self.start()
        self.assert_says("https://127.0.0.1:%d" % self.port)
        path = "/v1/sessions/%s/terminal" % self.post("/v1/sessions", {"language": "bash"})["id"]
        shell = websocket.WebSocket(self.secure("first"), path)
        shell.send(b"stty raw -echo; sleep 1000\n")
        shell.sock.settimeout(1)
        with self.assertRaises(OSError):
            while True:
                shell.send(b"x" * 60000)
        shell.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(shell.sock.detach()) # a reset
        before = self.server_cpu()
        time.sleep(2)
        self.assertLess(self.server_cpu() - before, 1)

    def server_cpu(self):
        """Seconds."""
        with open("/proc/%d/stat" % daemon.server_of(self.process.pid), encoding="ascii") as file:
            times = file.read().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    def post(self, path, body):
        made = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust("first"),
                                           timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)
        made.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.load(made.getresponse())

    def test_a_new_certificate_and_a_wrong_key(self):
        self.certificate("second")
        self.write_tls("first")
        self.start()
        self.assert_says("vial is ready")
        kept = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trust("first"),
                                           timeout=daemon.PATIENCE_S)
        self.addCleanup(kept.close)
        kept.request("GET", "/healthz")
        kept.getresponse().read()
        self.write_tls("second")
        self.reload()
        self.assertEqual(self.get(self.port, context=self.trust("second")), 200)
        with self.assertRaises(ssl.SSLError):
            self.get(self.port, context=self.trust("first"))
        kept.request("GET", "/healthz") # what was there before goes on
        self.assertEqual(kept.getresponse().status, 200)

        self.write_tls("second", "first.key")
        self.reload("tls_key: not the key of tls_certificate; the old configuration stays")
        self.write_tls("second", "none")
        self.reload("none: No such file or directory; the old configuration stays")
        self.assertEqual(self.get(self.port, context=self.trust("second")), 200)

    def test_a_reload_that_is_refused_changes_nothing(self):
        self.certificate("second")
        self.write_tls("first")
        self.start()
        self.assert_says("vial is ready")
        self.write_secret("short", "x")
        self.write_tls("second", more=["relay_key: " + self.path("short"), "hosts: [vial.example]"])
        self.reload("relay_key: must have 16 to 256 characters on one line; the old configuration stays")
        self.assertEqual(self.get(self.port, context=self.trust("first")), 200)
        self.assertEqual(self.get(self.plain, "vial.example"), 403)
        self.write_tls("second", more=["hosts: [vial.example]"])
        self.reload()
        self.assertEqual(self.get(self.port, context=self.trust("second")), 200)
        self.assertEqual(self.get(self.plain, "vial.example"), 200)

    def test_what_is_no_key(self):
        with open(self.path("bad"), "w", encoding="utf-8") as file:
            file.write("nothing\n")
        self.write_tls("first", "bad")
        self.start()
        self.assert_refuses("tls_key: no private key in PEM form")
        self.write_tls("bad", "first.key")
        self.start()
        self.assert_refuses("tls_certificate: no certificates in PEM form")


class Reload(Front):
    def test_what_can_change_does(self):
        listen = ["listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s")]
        self.write(*listen)
        self.start(env={"VIAL_LOG_LEVEL": "warn"})
        self.assert_says("vial is ready")
        self.assertEqual(self.get(self.port, "vial.example"), 403)
        self.write(*listen, "hosts: [vial.example]", "max: 7", "drain_grace: 1s",
                   other="limits:\n  timeout: 7\ncache: /var/tmp/other\n")
        self.reload()
        self.assert_says("only a restart changes max, cache")
        self.write(*listen, "quotas: {runs: 3}", "tenants: [{name: a}]", "hosts: [vial.example]",
                   other="egress: {allow: [example.org]}\n")
        self.reload()
        self.assert_says("only a restart changes egress, quotas, tenants")
        self.assertEqual(self.get(self.port, "vial.example"), 200)
        self.assertEqual(self.get(self.port, "vial.example:80"), 200)
        self.assertEqual(self.get(self.port, "other.example"), 403)

        self.write(*listen, "hosts: []", "mxa: 7")
        self.reload("line 6: server has no key 'mxa'; did you mean 'max'?; the old configuration stays")
        self.assertEqual(self.get(self.port, "vial.example"), 200)
        self.write(*listen)
        for _ in range(20): # while one is under way, others wait
            self.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_until(lambda: self.get(self.port, "vial.example") == 403))
        self.assertEqual(self.get(self.port), 200)

    def test_limits_of_runs(self):
        listen = ["listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s")]
        self.write(*listen)
        self.start(umask=0o077) # which is not that of sandboxes
        self.assert_says("vial is ready")
        self.write(*listen, other="limits:\n  timeout: 0.2\n")
        self.reload()
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)
        made.request("POST", "/v1/runs", '{"language": "python", "code": "import time; time.sleep(60)"}',
                     {"Content-Type": "application/json"})
        self.assertIn(b'"timed_out":true', made.getresponse().read())

    def test_a_relay_key_comes_and_goes(self):
        listen = ["listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s")]
        keys = ["a" * 32, "b" * 32]
        for name, key in zip("ab", keys):
            self.write_secret(name, key)

        def statuses():
            """Of those who know the first key, and the second."""
            found = []
            for key in keys:
                made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
                made.request("GET", "/v1/runs", headers={
                    "Vial-Relay": key, "Vial-Tenant": "acme", "Vial-Scopes": "run"})
                found.append(made.getresponse().status)
                made.close()
            return found
        self.write(*listen, "relay_key: " + self.path("a"))
        self.start()
        self.assert_says("vial is ready")
        self.assertEqual(statuses(), [200, 401])
        self.write(*listen, "relay_key: " + self.path("b"))
        self.reload()
        self.assertEqual(statuses(), [401, 200])
        self.write(*listen)
        self.reload()
        self.assertEqual(statuses(), [401, 401])

    def test_times_of_sessions(self):
        listen = ["listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s")]
        self.write(*listen, "session_lifetime: 100s")
        self.start(env={"CODE_EXECUTOR_SESSION_TIMEOUT": "200"})
        self.assert_says("vial is ready")
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)

        def remaining(body):
            made.request("POST", "/v1/sessions", json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(made.getresponse().read())["remaining_seconds"]
        self.assertTrue(100 < remaining({"language": "python"}) <= 200)
        self.assertTrue(200 < remaining({"language": "python", "lifetime": 300}) <= 300)

    def test_time_for_what_is_under_way(self):
        self.write("listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s"), "drain_grace: 0")
        self.start()
        self.assert_says("vial is ready")
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)
        made.request("POST", "/v1/runs", '{"language": "python", "code": "import time; time.sleep(60)"}',
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        self.assertIn(b"start", made.getresponse().readline())
        self.process.terminate()
        self.assertEqual(self.process.wait(daemon.PATIENCE_S), 0)


class Impatient(Front):
    def test_a_body_that_does_not_come(self):
        """Whether it is wanted or not, and however much was said that it would be."""
        self.write("listen: [127.0.0.1:%d]" % self.port, "client_timeout: 1s")
        self.start()
        self.assert_says("http://127.0.0.1:%d" % self.port)
        made = []
        for path, kind in (("/v1/nothing", "application/json"), ("/v1/runs", "text/plain"), ("/v1/runs", "application/json")):
            for length in (10, 9999):
                made.append(socket.create_connection(("127.0.0.1", self.port), daemon.PATIENCE_S))
                self.addCleanup(made[-1].close)
                made[-1].sendall(("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"
                                  % (path, kind, length)).encode())
        for sock in made:
            self.assertEqual(daemon.read_all(sock), b"")


class Sockets(Front):
    def test_several_addresses_and_a_group(self):
        other = free_port()
        self.write("listen: [127.0.0.1:%d, 'localhost:%d']" % (self.port, other),
                   "socket: " + self.path("run/s"), "socket_mode: '0660'",
                   "socket_group: '%d'" % os.getgid())
        self.start()
        self.assert_says("vial is ready")
        self.assertEqual([self.get(self.port), self.get(other)], [200, 200])
        self.assertEqual(os.stat(self.path("run/s")).st_mode & 0o777, 0o660)
        self.assertEqual(os.stat(self.path("run")).st_mode & 0o777, 0o755)
        self.stop()
        self.assertFalse(os.path.exists(self.path("run/s")))

    def test_no_socket_at_all(self):
        self.write("listen: [127.0.0.1:%d]" % self.port, "socket: none")
        self.start()
        self.assert_says("vial is ready on http://127.0.0.1:%d\n" % self.port)
        self.assertEqual(self.get(self.port), 200)
        self.stop()
        self.write("listen: []", "socket: none")
        self.start()
        self.assert_refuses("nothing to listen on")


class Systemd(Front):
    """Its protocols, spoken by us: descriptors from 3 on, and a socket for what is told."""

    def setUp(self):
        super().setUp()
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.told.close)
        self.told.bind(self.path("notify"))
        self.told.settimeout(daemon.PATIENCE_S)

    def hear(self, word):
        """What is told until that comes."""
        while True:
            text = self.told.recv(4096).decode()
            if word in text.split("\n"):
                return text

    def activate(self, *sockets, names="", **env):
        """Start it as systemd would: LISTEN_PID is known only to the process itself."""
        script = 'import os, sys; os.environ["LISTEN_PID"] = str(os.getpid())\n' \
                 'fds = [int(n) for n in sys.argv[1].split(",") if n]\n' \
                 'fds = [os.dup2(os.dup(fd), 50 + i) for i, fd in enumerate(fds)]\n' \
                 'for i, fd in enumerate(fds): os.dup2(fd, 3 + i)\n' \
                 'os.execv(sys.argv[2], sys.argv[2:])'
        numbers = [sock.fileno() for sock in sockets]
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["python3", "-c", script, ",".join(map(str, numbers)), daemon.VIAL, "serve", "--config",
                 self.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=numbers,
                env={**os.environ, "LISTEN_FDS": str(len(numbers)), "LISTEN_FDNAMES": names,
                     "NOTIFY_SOCKET": self.path("notify"), **env})
        self.addCleanup(self.stop)

    def listener(self, *address):
        made = socket.socket() if address else socket.socket(socket.AF_UNIX)
        self.addCleanup(made.close)
        made.bind(address or self.path("given"))
        made.listen()
        return made

    def test_its_sockets_its_words_and_its_watchdog(self):
        unix, tcp, tls = self.listener(), self.listener("127.0.0.1", 0), self.listener("127.0.0.1", 0)
        self.certificate("first")
        self.write("tls_certificate: " + self.path("first"), "tls_key: " + self.path("first.key"))
        self.activate(unix, tcp, tls, names="vial:vial:https", WATCHDOG_USEC="400000")
        self.hear("READY=1")
        self.assertIn("vial is ready on %s and http://127.0.0.1:%d and https://127.0.0.1:%d\n"
                      % (self.path("given"), tcp.getsockname()[1], tls.getsockname()[1]), self.log())
        self.assertEqual(self.get(tcp.getsockname()[1]), 200)
        context = ssl.create_default_context(cafile=self.path("first"))
        self.assertEqual(self.get(tls.getsockname()[1], context=context), 200)
        made = daemon.UnixConnection(self.path("given"))
        self.addCleanup(made.close)
        made.request("GET", "/healthz")
        self.assertEqual(made.getresponse().status, 200)

        self.hear("WATCHDOG=1")
        self.process.send_signal(signal.SIGHUP)
        self.assertRegex(self.hear("RELOADING=1"), r"\nMONOTONIC_USEC=\d+$")
        self.hear("READY=1")
        # A server whose loop stands still is not told to be alive.
        with open("/proc/%d/task/%d/children" % ((self.process.pid,) * 2), encoding="ascii") as file:
            server = next(int(pid) for pid in file.read().split()
                          if open("/proc/%s/comm" % pid, encoding="ascii").read() == "vial-server\n")
        os.kill(server, signal.SIGSTOP)
        self.told.settimeout(2)
        with self.assertRaises(TimeoutError):
            while True:
                self.told.recv(4096)
        self.told.settimeout(daemon.PATIENCE_S)
        os.kill(server, signal.SIGCONT)
        self.hear("WATCHDOG=1")
        self.process.terminate()
        self.hear("STOPPING=1")
        self.assertEqual(self.process.wait(daemon.PATIENCE_S), 0)
        self.assertTrue(os.path.exists(self.path("given"))) # it is not ours to remove

    def test_what_is_refused(self):
        self.write("allow_plain: true")
        self.activate(self.listener("0.0.0.0", 0))
        self.assert_refuses("only loopback addresses")
        self.stop()
        deaf = socket.socket()
        self.addCleanup(deaf.close)
        self.activate(deaf)
        self.assert_refuses("not one that listens")
        self.stop()
        self.activate(self.listener("127.0.0.1", 0), names="https")
        self.assert_refuses("needs tls_certificate")

    @unittest.skipUnless(os.getuid() == 0, "the unit is for root")
    def test_what_the_unit_leaves_to_it_is_enough(self):
        self.write("listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s"))
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["python3", os.path.join(os.path.dirname(os.path.abspath(__file__)), "unit.py"), daemon.VIAL,
                 "serve", "--config", self.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, "WRITABLE": self.dir})
        self.addCleanup(self.stop)
        self.assert_says("vial is ready")
        made = http.client.HTTPConnection("127.0.0.1", self.port, timeout=daemon.PATIENCE_S)
        self.addCleanup(made.close)
        for language, code in (("python", "print(6 * 7)"), ("bash", "echo 42"),
                               ("c", '#include <stdio.h>\nint main(void) { puts("42"); }')):
            body = {"language": language, "code": code, "files": [{"path": "a/b", "content": "x"}]}
            made.request("POST", "/v1/runs", json.dumps(body), {"Content-Type": "application/json"})
            answer = json.loads(made.getresponse().read())
            self.assertEqual(answer.get("result", answer).get("stdout"), "42\n", answer)

    def test_sockets_of_somebody_else(self):
        self.write("listen: [127.0.0.1:%d]" % self.port, "socket: " + self.path("s"))
        self.start(env={"LISTEN_PID": "1", "LISTEN_FDS": "1"})
        self.assert_says("vial is ready on %s and http://127.0.0.1:%d" % (self.path("s"), self.port))
