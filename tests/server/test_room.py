"""Memory for what programs print and clients do not read: bounded, and shared among tenants."""
import json
import socket
import unittest

import daemon
from daemon import run_of, wait_until
from test_tenants import Case

MIB = 1 << 20
LARGE = {"output": "64m"}


def printing(mib, what="x"):
    return run_of("print(%r * %d, end='')" % (what, mib * MIB), limits=LARGE)


@unittest.skipIf(daemon.WORKERS, "what is held is the workers' and the dispatcher's")
class Bodies(Case):
    """Those that take their time to come."""
    options = ("--set", "body_memory=8m")

    def test_none_takes_the_room_of_others(self):
        one, other = self.daemon.token("one"), self.daemon.token("other")
        self.daemon.token("third")
        slow = []
        for _ in range(8):
            made = socket.socket()
            self.addCleanup(made.close)
            made.connect(("127.0.0.1", self.daemon.port))
            made.sendall(("POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                          "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (one, 3 * MIB)).encode())
            made.sendall(b" " * 2 * MIB)
            slow.append(made)
        body = json.dumps(run_of("print(1)")) + " " * MIB
        self.assertEqual(self.as_(other, "POST", "/v1/runs", body)[0], 200)
        self.assert_refused(self.as_(one, "POST", "/v1/runs", body + body), 503, "busy")
        self.assertEqual(self.as_(one, "POST", "/v1/runs", run_of("print(1)"))[0], 200)  # what is small
        for made in slow:
            made.close()
        self.assertTrue(wait_until(lambda: self.as_(one, "POST", "/v1/runs", body)[0] == 200))


@unittest.skipIf(daemon.WORKERS, "filers are the workers'")
class Filers(Case):
    """Whoever has files on their way has a process of ours for each."""
    options = ("--max", "24", "--armed", "2")

    def test_transfers_that_take_their_time_leave_some_for_others(self):
        one, other = self.daemon.token("one"), self.daemon.token("other")
        slow, statuses = [], []
        for _ in range(10):
            status, answer, _ = self.as_(one, "POST", "/v1/sessions", {"language": "bash"})
            self.assertEqual(status, 201, answer)
            for i in range(16):
                made = socket.socket()
                self.addCleanup(made.close)
                made.settimeout(daemon.PATIENCE_S)
                made.connect(("127.0.0.1", self.daemon.port))
                made.sendall(("PUT /v1/sessions/%s/files/f%d HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                              "Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n" % (answer["id"], i, one)).encode())
                slow.append(made)
        for made in slow:
            statuses.append(made.recv(4096).split(None, 2)[1])
        self.assertEqual(set(statuses), {b"100", b"429"})
        result = self.as_(other, "POST", "/v1/runs", run_of("open('f', 'w').write('x')", exports=["f"]))
        self.assertEqual((result[0], result[1]["result"]["exports"][0]["size"]), (200, 1), result)
        session = self.as_(other, "POST", "/v1/sessions", {"language": "bash"})[1]["id"]
        self.assertEqual(self.as_(other, "PUT", "/v1/sessions/%s/files/f" % session, "x")[0], 201)


@unittest.skipIf(daemon.WORKERS, "what is held is the workers' and the dispatcher's")
class Room(Case):
    options = ("--set", "answer_memory=64m", "--armed", "2")

    def test_messages_that_never_end_are_counted(self):
        """What an idle interpreter says without coming to an end of the line."""
        one, other = self.daemon.token("endless"), self.daemon.token("other")
        code = ("import os, threading, time\n"
                "ch = next(int(f) for f in os.listdir('/proc/self/fd') if os.path.islink('/proc/self/fd/' + f)\n"
                "          and os.readlink('/proc/self/fd/' + f).startswith('socket'))\n"
                "def say():\n    while not os.path.exists('go'): time.sleep(0.02)\n    left = 12 << 20\n"
                "    while left: left -= os.write(ch, b' ' * min(left, 1 << 20))\n"
                "threading.Thread(target=say).start()")
        sessions = []
        for _ in range(6):
            sessions.append(self.as_(one, "POST", "/v1/sessions", {"language": "python"})[1]["id"])
            self.assertEqual(self.as_(one, "POST", "/v1/sessions/%s/runs" % sessions[-1], {"code": code})[0], 200)
        for session in sessions:
            self.assertEqual(self.as_(one, "PUT", "/v1/sessions/%s/files/go" % session, "x")[0], 201)
        # A step would end the line: none is asked for before one of them is gone.
        self.assertTrue(wait_until(lambda: not all(
            self.as_(one, "GET", "/v1/sessions/" + session)[1]["memory"] for session in sessions)))
        self.assertGreaterEqual(sum(
            self.as_(one, "POST", "/v1/sessions/%s/runs" % session, {"code": "1"})[1]["result"]["fresh"]
            for session in sessions), 1)
        self.assertEqual(self.as_(other, "POST", "/v1/runs", run_of("print(1)"))[0], 200)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one, cls.other = cls.daemon.token("one"), cls.daemon.token("other")

    def unread(self, token, path, body, **headers):
        """A client that asks, and reads nothing."""
        made = socket.socket()
        self.addCleanup(made.close)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", self.daemon.port))
        text = json.dumps(body)
        lines = ["POST %s HTTP/1.1" % path, "Host: localhost", "Authorization: Bearer " + token,
                 "Content-Type: application/json", "Content-Length: %d" % len(text)]
        lines += ["%s: %s" % pair for pair in headers.items()]
        made.sendall("\r\n".join(lines + ["", text]).encode())
        return made

    def wait_for_room(self, mib):
        """Until so much is told whole."""
        def is_free():
            status, answer, _ = self.as_(self.one, "POST", "/v1/runs", printing(mib))
            return status == 200 and len(answer["result"]["stdout"]) == mib * MIB
        self.assertTrue(wait_until(is_free))

    def crowd(self):
        """Clients of one tenant that have their answers, as far as there was room for them."""
        clients = [self.unread(self.one, "/v1/runs", printing(6)) for _ in range(8)]
        for client in clients:
            self.assertTrue(client.recv(1, socket.MSG_PEEK))
        return clients

    def test_output_is_dropped_beyond_it(self):
        result = self.as_(self.one, "POST", "/v1/runs", printing(40))[1]["result"]
        self.assertEqual(len(result["stdout"]) + result["stdout_dropped"], 40 * MIB)
        self.assertLessEqual(len(result["stdout"]), 16 * MIB)
        self.wait_for_room(10)  # it was given back

    def test_of_steps_as_well(self):
        session = self.as_(self.one, "POST", "/v1/sessions", {"language": "python", "limits": LARGE})[1]["id"]
        step = "/v1/sessions/%s/runs" % session
        for _ in range(2):
            result = self.as_(self.one, "POST", step, {"code": "print('x' * (40 << 20), end='')"})[1]["result"]
            self.assertEqual(len(result["stdout"]) + result["stdout_dropped"], 40 * MIB)
            self.assertLessEqual(len(result["stdout"]), 16 * MIB)
        late = ("import threading\ne = threading.Event()\n"
                "def f():\n  e.wait()\n  print('y' * (40 << 20), end='', flush=True)\n")
        self.as_(self.one, "POST", step, {"code": late + "t = threading.Thread(target=f); t.start()"})
        result = self.as_(self.one, "POST", step, {"code": "e.set(); t.join()"})[1]["result"]
        self.assertEqual(len(result["stdout"]) + result["stdout_dropped"], 40 * MIB)
        self.assertLessEqual(len(result["stdout"]), 16 * MIB)
        self.as_(self.one, "DELETE", "/v1/sessions/" + session)

    def test_of_files(self):
        code = "open('a', 'w').write('x' * (12 << 20)); open('b', 'w').write('x' * (12 << 20)); open('c', 'w').write('c')"
        result = self.as_(self.one, "POST", "/v1/runs", run_of(code, exports=["a", "b", "c"]))[1]["result"]
        fared = {file["path"]: file.get("error") for file in result["exports"]}
        self.assertEqual(sorted(str(fared[name]) for name in "ab"), ["None", "there is no room for so much at once"])
        self.assertIsNone(fared["c"])

    def test_answers_that_nobody_reads(self):
        clients = self.crowd()
        answer = self.as_(self.one, "POST", "/v1/runs", printing(8))
        self.assertTrue(answer[0] == 503 or answer[1]["result"]["stdout_dropped"], answer[0])
        self.assertEqual(self.as_(self.one, "POST", "/v1/runs", run_of("print(1)"))[0], 200)
        # What one does not read is nothing to another.
        answer = self.as_(self.other, "POST", "/v1/runs", printing(4))
        self.assertEqual((answer[0], len(answer[1]["result"]["stdout"])), (200, 4 * MIB))
        for client in clients:
            client.close()
        self.wait_for_room(8)

    def test_an_answer_may_be_larger_than_what_it_tells(self):
        answer = self.as_(self.one, "POST", "/v1/runs", printing(7, "\x01"))
        self.assert_refused(answer, 503, "busy")
        self.assertEqual(self.as_(self.one, "POST", "/v1/runs", printing(4, "\x01"))[0], 200)

    def test_streams_that_nobody_reads(self):
        code = "import time\nfor i in range(40): print('x' * 100000, flush=True)\ntime.sleep(60)"
        clients = [self.unread(self.one, "/v1/runs", run_of(code, limits=LARGE), Accept="application/x-ndjson")
                   for _ in range(8)]
        for client in clients:
            self.assertTrue(client.recv(1, socket.MSG_PEEK))
        for _ in range(10):
            answer = self.as_(self.other, "POST", "/v1/runs", printing(2))
            self.assertEqual((answer[0], len(answer[1]["result"]["stdout"])), (200, 2 * MIB))
        for client in clients:
            client.close()
        self.assert_no_runs()
        self.wait_for_room(8)

    def test_what_could_not_be_answered_is_not_run_again(self):
        body, key = printing(7, "\x01"), {"Idempotency-Key": "k"}
        self.assert_refused(self.as_(self.one, "POST", "/v1/runs", body, **key), 503, "busy")
        self.assert_refused(self.as_(self.one, "POST", "/v1/runs", body, **key), 409, "limit")

    def test_batches(self):
        body = {"language": "python", "code": "print('x' * (3 << 20), end='')", "limits": LARGE, "parallel": 1,
                "runs": [{} for _ in range(12)]}
        status, answer, _ = self.as_(self.one, "POST", "/v1/batch", body)
        self.assertEqual((status, answer["summary"]["runs"]), (200, 12))
        kept = sum(len(entry["result"]["stdout"]) for entry in answer["results"] if entry["result"])
        self.assertLess(3 * MIB, kept)
        self.assertLessEqual(kept, 16 * MIB)
