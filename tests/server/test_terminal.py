"""GET /v1/sessions/{id}/terminal: a shell beside the interpreter."""
import base64
import contextlib
import json
import signal
import time

import daemon
from daemon import PATIENCE_S, wait_until
from websocket import BINARY, CLOSE, PING, PONG, TEXT, WebSocket

OWN = r"""
import os, json
status = {l.split(':')[0]: l.split(':')[1].split() for l in open('/proc/self/status')}
print(json.dumps([[os.readlink('/proc/self/ns/' + n) for n in ('user', 'pid', 'mnt', 'net', 'ipc', 'uts')],
                  [status[n] for n in ('Uid', 'Gid', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')],
                  open('/proc/self/cgroup').read()]))
"""


class Case(daemon.Case):
    def setUp(self):
        self.session = self.daemon.ask("POST", "/v1/sessions",
                                       {"language": "python", "env": {"MINE": "given"}})[1]["id"]
        self.addCleanup(self.daemon.ask, "DELETE", "/v1/sessions/" + self.session)

    def step(self, code):
        status, answer, _ = self.daemon.ask("POST", "/v1/sessions/%s/runs" % self.session, {"code": code})
        self.assertEqual(status, 200, answer)
        return answer["result"]

    def shells(self):
        """How many processes have a terminal, as the interpreter sees it."""
        return self.step("import os\nsum(os.path.exists('/dev/pts/' + n) for n in map(str, range(64)))"
                         )["value"]["json"]

    def attach(self, query="", tcp=False, headers=(), session=None):
        sock = self.daemon.raw(tcp)
        self.addCleanup(sock.close)
        return WebSocket(sock, "/v1/sessions/%s/terminal%s" % (session or self.session, query), headers,
                         "127.0.0.1:%d" % self.daemon.port)

    def shell(self, query="", **more):
        made = self.attach(query, **more)
        self.assertEqual(made.status, 101, made.head)
        return self.ready(made)

    def ready(self, made):
        made.send(b"PS1=; stty -echo; bind 'set enable-bracketed-paste off'; echo read''y\n")
        made.until(b"ready\r\n")
        return made


class Terminal(Case):
    def test_sizes_and_variables(self):
        shell = self.shell("?columns=100&rows=30&term=vt100", tcp=True)
        shell.send(b"stty size; echo $TERM $MINE; pwd\n")
        self.assertIn("30 100\r\nvt100 given\r\n/sandbox\r\n", shell.until(b"/sandbox\r\n"))
        shell.send(b"trap 'echo changed' WINCH\n")
        shell.send(json.dumps({"resize": [132, 43]}).encode(), TEXT)
        self.assertTrue(shell.until(b"changed"))
        shell.send(b"stty size\n")
        shell.until(b"43 132\r\n")

    def test_it_finds_the_proxy_of_its_session(self):
        made = self.daemon.ask("POST", "/v1/sessions", {"language": "python", "allow_hosts": ["example.com"],
                                                        "env": {"https_proxy": "mine"}})[1]["id"]
        self.addCleanup(self.daemon.ask, "DELETE", "/v1/sessions/" + made)
        shell = self.shell(session=made)
        shell.send(b"echo $HTTP_PROXY $https_proxy; exec 3<>/dev/tcp/127.0.0.1/3128 && echo op''en\n")
        self.assertIn("http://127.0.0.1:3128 mine\r\n", shell.until(b"open\r\n"))

    def test_a_reset_ends_it_although_there_was_no_step(self):
        shell = self.shell()
        shell.send(b"touch left; echo do''ne\n")
        shell.until(b"done\r\n")
        self.assertEqual(self.daemon.ask("POST", "/v1/sessions/%s/reset" % self.session)[0], 200)
        self.assertEqual(shell.closing()[0], 1001)
        self.assertEqual(self.step("import os; os.listdir()")["value"]["json"], [])

    def test_the_end_is_told(self):
        for end, told in ((b"exit 3\n", (1000, "exit 3")), (b"kill -9 $$\n", (1000, "signal 9"))):
            shell = self.shell()
            shell.send(end)
            self.assertEqual(shell.closing(), told)
        self.assertTrue(wait_until(lambda: self.shells() == 0))

    def test_keys_are_signals(self):
        shell = self.shell()
        shell.send(b"sh -c 'echo asleep; exec sleep 1000'\n")  # who says so has the terminal
        shell.until(b"asleep\r\n")
        shell.send(b"\x03")
        shell.until(b"\r\n")  # what is typed before is forgotten with the signal
        shell.send(b"echo alive$((1 + 1))\n")
        shell.until(b"alive2\r\n")
        shell.send(b"echo begun; cat\n")
        shell.until(b"begun\r\n")
        shell.send(b"wo\x7fords\n\x04echo over\n")
        self.assertIn("words\r\n", shell.until(b"over\r\n"))

    def test_it_is_in_the_same_sandbox(self):
        self.step("open('from-step', 'w').write('here')")
        shell = self.shell()
        shell.send(b"cat from-step; echo; echo back > from-shell; echo %s | base64 -d | python3\n" %
                   base64.b64encode(OWN.encode()))
        seen = shell.until(b'"]\r\n')
        self.assertIn("here\r\n", seen)
        inside = json.loads(seen[seen.index("[["):].split("\r\n")[0])
        own = json.loads(self.step(OWN)["stdout"])
        self.assertEqual(inside, own)
        self.assertEqual(inside[1][2:], [["0" * 16], ["0" * 16], ["1"], ["2"]])
        self.assertEqual(self.step("open('from-shell').read()")["value"]["json"], "back\n")

    def test_a_client_that_goes_takes_its_shell_along(self):
        shell = self.shell()
        shell.send(b"trap '' HUP; while :; do sleep 1; done\n")
        self.assertEqual(self.shells(), 1)
        shell.sock.close()
        self.assertTrue(wait_until(lambda: self.shells() == 0))
        self.assertEqual(self.step("1 + 1")["value"]["json"], 2)

    def test_the_end_of_the_session(self):
        shell = self.shell()
        self.daemon.ask("DELETE", "/v1/sessions/" + self.session)
        code, reason = shell.closing()
        self.assertEqual((code, "ended" in reason), (1001, True), reason)

    def test_there_may_be_several_but_not_many(self):
        shells = [self.shell() for _ in range(4)]
        self.assertEqual(self.attach().status, 503)
        shells[0].send(b"exit\n")
        shells[0].closing()
        again = wait_until(lambda: next((made for made in [self.attach()] if made.status == 101), None))
        self.assertTrue(again)
        shells[0] = self.ready(again)
        for i, shell in enumerate(shells):
            shell.send(b"echo me%d\n" % i)
            shell.until(b"me%d\r\n" % i)

    def test_memory_is_that_of_the_session(self):
        shell = self.shell()
        shell.send(b"head -c 900M /dev/zero | tail | wc -c; echo surv''ived\n")
        try:
            shell.until(b"survived")
        except Exception as why:  # the whole of it was killed: so it is with cgroup v2
            self.assertIn("Closed", repr(why))

    def test_what_is_refused(self):
        self.assertEqual(self.attach(headers={"Sec-WebSocket-Version": "8"}).status, 426)
        self.assertEqual(self.attach(headers={"Upgrade": "h2c"}).status, 426)
        self.assertEqual(self.attach(headers={"Sec-WebSocket-Key": "short"}).status, 400)
        self.assertEqual(self.attach(tcp=True, headers={"Origin": "http://evil.example"}).status, 403)
        self.assertEqual(self.attach(session="0" * 32).status, 404)
        for query in ("?columns=0", "?rows=x", "?columns=1001", "?term=a%20b", "?term="):
            self.assertEqual(self.attach(query).status, 400, query)
        for line in ("GET %s HTTP/1.0", "HEAD %s HTTP/1.1"):
            with self.daemon.raw() as sock:
                sock.sendall((line % ("/v1/sessions/%s/terminal" % self.session)).encode() +
                             b"\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                             b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + b"A" * 22 + b"==\r\n\r\n")
                self.assertIn(b" 426 ", sock.recv(9999), line)
        self.assertEqual(self.shells(), 0)


class Lines(Case):
    options = ("--log-format", "json")

    def ends(self):
        found = [json.loads(line) for line in self.daemon.log().splitlines()]
        return [line.get("client", "") for line in found
                if line["event"] == "request" and line.get("route", "").endswith("/terminal")]

    @daemon.inside
    def test_who_ended_it_is_told(self):
        shell = self.shell()
        shell.send(b"exit\n")
        self.assertEqual(shell.closing()[0], 1000)
        shell.send((1000).to_bytes(2, "big"), CLOSE)
        self.assertTrue(wait_until(lambda: self.ends() == [""]), self.daemon.log())
        self.shell().sock.close()
        self.assertTrue(wait_until(lambda: self.ends() == ["", "left"]), self.daemon.log())


class Hostile(Case):
    def memory(self):
        with open("/proc/%d/statm" % self.daemon.server_pid(), encoding="ascii") as file:
            return int(file.read().split()[1]) * 4096

    def test_output_that_nobody_reads(self):
        shell = self.shell()
        before = self.memory()
        shell.send(b"yes 0123456789012345678901234567890123456789\n")
        time.sleep(1)  # it has time to pile up
        self.assertLess(self.memory() - before, 16 << 20)
        self.assertEqual(self.step("1 + 1")["value"]["json"], 2)
        shell.send(b"\x03")
        deadline = time.monotonic() + PATIENCE_S
        seen = b""
        while b"overall" not in seen and time.monotonic() < deadline:
            shell.send(b"echo over''all\n")
            seen = shell.receive() + shell.receive()
        self.assertLess(time.monotonic(), deadline)

    def test_input_that_nobody_reads(self):
        shell = self.shell()
        before = self.memory()
        shell.send(b"stty raw; sleep 1000\n")
        shell.sock.settimeout(1)
        try:
            for _ in range(400):
                shell.send(b"x" * 60000)
        except TimeoutError:
            pass  # it is told to wait
        else:
            self.fail("all of it was taken")
        self.assertLess(self.memory() - before, 16 << 20)
        self.assertEqual(self.step("1 + 1")["value"]["json"], 2)

    def test_frames_that_are_none(self):
        for data, options, code in ((b"x", {"masked": False}, 1002),
                                    (b"x" * 70000, {}, 1009),
                                    (b"x", {"opcode": 3}, 1002),
                                    (b"x" * 200, {"opcode": PING}, None),
                                    (b"x", {"opcode": PING, "final": False}, None),
                                    (b"\xff", {"opcode": TEXT}, 1007),
                                    (b"{", {"opcode": TEXT}, 1003),
                                    (b'{"resize": [80]}', {"opcode": TEXT}, 1003),
                                    (b'{"resize": [80, 100000]}', {"opcode": TEXT}, 1003),
                                    (b'{"size": [80, 24]}', {"opcode": TEXT}, 1003)):
            with self.subTest(data=data[:20], **options):
                shell = self.shell()
                shell.send(data, **options)
                self.assertEqual(shell.closing()[0], code)
        self.assertTrue(wait_until(lambda: self.shells() == 0))

    def test_pings_are_answered(self):
        shell = self.shell()
        shell.send(b"are you there", PING)
        opcode, data = shell.frame()
        self.assertEqual((opcode, data), (PONG, b"are you there"))
        shell.send(b"ec", BINARY, final=False)
        shell.send(b"ho parts\n", 0)
        shell.until(b"parts\r\n")
        shell.send(b"\x03\xe8bye", CLOSE)
        self.assertEqual(shell.closing(), (1000, "bye"))

    def test_a_shell_that_is_stopped_while_it_starts(self):
        """By somebody of its own uid: then there is none, and the session goes on."""
        self.step("""
import os, signal, threading
def hunt():
    while not done:
        for name in os.listdir('/proc'):
            if name.isdigit() and int(name) > os.getpid():
                try: os.kill(int(name), signal.SIGKILL)
                except OSError: pass
done = False
threading.Thread(target=hunt, daemon=True).start()
""")
        tried = self.attach()
        self.assertIn(tried.status, (101, 500, 503))
        self.step("done = True")
        tried.sock.close()
        self.assertTrue(wait_until(lambda: self.shells() == 0))
        self.shell()


class Drain(Case):
    def test_a_server_that_ends_does_not_wait_for_a_shell(self):
        shell = self.shell()
        began = time.monotonic()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(shell.closing(), (1001, "the server is shutting down"))
        with contextlib.suppress(BrokenPipeError):  # who passes a shell through need not wait for this
            shell.send(b"\x03\xe9", CLOSE)
        self.daemon.process.wait(PATIENCE_S)
        self.assertLess(time.monotonic() - began, 25)
        self.daemon.process = daemon.subprocess.Popen(["true"])
        self.doCleanups = lambda: None
