"""Streams of events: lines and server-sent events, progress, heartbeats, real clients."""
import json
import os
import subprocess
import sys
import unittest

import daemon
import sessions
from daemon import run_of, wait_until

SSE = "text/event-stream"
NDJSON = "application/x-ndjson"
SLOW = "import time\nfor i in range(3):\n print(i, flush=True); time.sleep(0.2)"


def frames(text):
    """[(event, id, object)] of server-sent events, as the standard reads them; comments are left out."""
    found = []
    for block in text.split("\n\n"):
        fields = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name:
                fields[name] = fields.get(name, "") + value.removeprefix(" ")
        if "data" in fields:
            found.append((fields["event"], int(fields["id"]), json.loads(fields["data"])))
    return found


class Case(daemon.Case):
    def open(self, accept, body, path="/v1/runs"):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("POST", path, json.dumps(body),
                     {"Content-Type": "application/json", "Accept": accept})
        response = made.getresponse()
        self.assertEqual(response.status, 200)
        self.assertEqual(response.getheader("X-Accel-Buffering"), "no")
        return response

    def events(self, accept, body, path="/v1/runs"):
        response = self.open(accept, body, path)
        text = response.read().decode()
        if accept == NDJSON:
            return [json.loads(line) for line in text.splitlines()]
        self.assertEqual(response.getheader("Content-Type"), SSE)
        found = frames(text)
        self.assertEqual([name for name, _, _ in found], [data["event"] for _, _, data in found])
        self.assertEqual([number for _, number, _ in found], list(range(1, len(found) + 1)))
        return [data for _, _, data in found]


class Kinds(Case):
    def test_both_tell_the_same(self):
        for accept in (NDJSON, SSE):
            with self.subTest(accept):
                events = [e for e in self.events(accept, run_of(SLOW)) if e["event"] != "queued"]
                self.assertEqual([events[0]["event"], events[1]["event"]], ["start", "started"])
                self.assertTrue(events[0]["id"])
                self.assertGreaterEqual(events[1]["wait_ms"], 0)
                output = [e for e in events if e["event"] == "output"]
                self.assertEqual("".join(e["data"] for e in output), "0\n1\n2\n")
                times = [e["time"] for e in output]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[-1], 0.35)  # it slept twice
                self.assertEqual(events[-1]["result"]["stdout"], "0\n1\n2\n")
                self.assertGreater(events[-1]["result"]["wall_ms"], 350)

    def test_who_accepts_both_gets_lines(self):
        response = self.open("%s, %s" % (SSE, NDJSON), run_of("print(1)"))
        self.assertEqual(response.getheader("Content-Type"), NDJSON)
        response.read()

    def test_steps(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        path = "/v1/sessions/%s/runs" % session
        events = self.events(SSE, {"code": "print('a\\r\\n\\n')\ndisplay({'text/plain': 'd\\rx'}, raw=True)\n7"},
                             path)
        names = [e["event"] for e in events]
        self.assertEqual((names[0], names[1], names[-1]), ("start", "started", "result"))
        self.assertEqual([e["data"] for e in events if e["event"] == "display"], [{"text/plain": "d\rx"}])
        self.assertEqual("".join(e["data"] for e in events if e["event"] == "output"), "a\r\n\n\n")
        self.assertEqual(events[-1]["result"]["value"]["json"], 7)
        self.daemon.ask("DELETE", "/v1/sessions/" + session)

    def test_callbacks_may_use_either(self):
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        response = self.open(SSE, {"code": "f(2)", "callbacks": ["f"]}, "/v1/sessions/%s/runs" % session)
        text, answered = "", False
        while True:
            line = response.readline().decode()
            if not line:
                break
            text += line
            if line.startswith("data: ") and not answered and '"call"' in line:
                call = json.loads(line[6:])
                run = frames(text)[0][2]["id"]
                if call["event"] == "call":
                    answered = True
                    self.daemon.ask("POST", "/v1/runs/%s/calls/%d" % (run, call["call"]), {"value": 42})
        self.assertEqual(frames(text)[-1][2]["result"]["value"]["json"], 42)

    def test_a_batch(self):
        body = {"language": "python", "code": "print(input())", "runs": [{"stdin": "1"}, {"stdin": "2"}]}
        events = self.events(SSE, body, "/v1/batch")
        self.assertEqual([e["event"] for e in events], ["start", "run", "run", "summary"])


class Progress(Case):
    options = ("--max", "1", "--armed", "0")

    @daemon.inside
    def test_places_in_the_queue(self):
        first = self.open(NDJSON, run_of("import time; time.sleep(60)"))
        number = json.loads(first.readline())["id"]
        self.assertTrue(wait_until(lambda: [r["state"] for r in self.daemon.runs()] == ["running"]))
        second, third = (self.open(NDJSON, run_of("print(1)")) for _ in range(2))
        for response, place in ((second, 1), (third, 2)):
            self.assertEqual(json.loads(response.readline())["event"], "start")
            self.assertEqual(json.loads(response.readline()), {"event": "queued", "position": place})
        self.daemon.ask("DELETE", "/v1/runs/" + number)
        for response in (second, third):
            events = [json.loads(line) for line in response]
            waits = [e["position"] for e in events if e["event"] == "queued"]
            self.assertEqual(waits, sorted(waits, reverse=True))
            started = [e for e in events if e["event"] == "started"]
            self.assertEqual(len(started), 1)
            self.assertGreater(started[0]["wait_ms"], 0)
            self.assertEqual(events[-1]["result"]["stdout"], "1\n")
        first.read()


class Heartbeats(sessions.Case):
    @classmethod
    def setUpClass(cls):
        os.environ["VIAL_HEARTBEAT"] = "100ms"
        super().setUpClass()
        del os.environ["VIAL_HEARTBEAT"]

    def silent(self, accept):
        """What is told of a run that says nothing, until it is ended for that."""
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("POST", "/v1/runs", json.dumps(run_of("import time; time.sleep(60)")),
                     {"Content-Type": "application/json", "Accept": accept})
        response = made.getresponse()
        text = line = response.readline()
        while line and text.count(b"heartbeat") < 6:
            line = response.readline()
            text += line
        self.daemon.ask("DELETE", "/v1/runs/" + self.daemon.runs()[0]["id"])
        return (text + response.read()).decode()

    def test_lines_have_an_event_for_it(self):
        events = [json.loads(line) for line in self.silent(NDJSON).splitlines()]
        beats = [e for e in events if e["event"] == "heartbeat"]
        self.assertGreater(len(beats), 2)
        self.assertGreater(beats[-1]["time"], 0)

    def test_browsers_get_a_comment(self):
        text = self.silent(SSE)
        self.assertGreater(text.count("\n: heartbeat\n\n"), 2)
        self.assertNotIn("heartbeat", [name for name, _, _ in frames(text)])


class Clients(Case):
    def url(self):
        return "http://127.0.0.1:%d/v1/runs" % self.daemon.port

    def test_curl(self):
        code = "import time\nfor i in range(3):\n print(i, flush=True); time.sleep(0 if i else 3)"
        curl = subprocess.Popen(["curl", "-sN", "-H", "Accept: " + SSE, "--json", json.dumps(run_of(code)),
                                 self.url()], stdout=subprocess.PIPE)
        seen = b""
        while b'"data":"0' not in seen:
            seen += curl.stdout.readline()
        self.assertTrue(self.daemon.runs(), "it came when all was over")
        with curl.stdout:
            rest = curl.stdout.read()
        self.assertEqual(curl.wait(daemon.PATIENCE_S), 0)
        self.assertEqual(frames((seen + rest).decode())[-1][2]["result"]["stdout"], "0\n1\n2\n")

    def test_httpx(self):
        sys.path.append("/usr/lib/python3/dist-packages")
        try:
            import httpx
        except ImportError:
            raise unittest.SkipTest("python3-httpx is not there") from None
        with httpx.stream("POST", self.url(), json=run_of(SLOW), headers={"Accept": NDJSON}) as response:
            names = [json.loads(line)["event"] for line in response.iter_lines() if line]
        self.assertEqual((names[0], names[-1]), ("start", "result"))
