"""What the server says of what it does: one line per event, whatever clients write."""
import datetime
import json
import os
import re
import signal

import daemon
from daemon import wait_until

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Lines(daemon.Case):
    options = ("--log-format", "json")

    def events(self, **wanted):
        """The lines there are that say this."""
        found = [json.loads(line) for line in self.daemon.log().splitlines()]
        return [event for event in found if wanted.items() <= event.items()]

    def one(self, **wanted):
        """The line that comes."""
        self.assertTrue(wait_until(lambda: self.events(**wanted)), wanted)
        found = self.events(**wanted)
        self.assertEqual(len(found), 1, found)
        return found[0]

    @daemon.inside
    def test_a_request_and_its_run(self):
        answer = self.daemon.ask("POST", "/v1/runs", daemon.run_of("print('secret')"),
                                 {"X-Request-Id": "mine-1", "traceparent": TRACE})
        self.assertEqual(answer[2]["X-Request-Id"], "mine-1")
        self.assertEqual(answer[2]["traceparent"], TRACE)
        line = self.one(event="request", request="mine-1")
        self.assertEqual((line["method"], line["route"], line["status"], line["tenant"], line["level"]),
                         ("POST", "/v1/runs", 200, "local", "info"))
        self.assertEqual((line["trace"], line["span"]), tuple(TRACE.split("-")[1:3]))
        self.assertGreater(line["bytes_in"], 10)
        self.assertGreater(line["bytes_out"], 100)
        self.assertGreater(line["ms"], 0)
        datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        run = self.one(event="run", request="mine-1")
        self.assertEqual((run["id"], run["kind"], run["outcome"], run["environment"]),
                         (answer[1]["id"], "run", "exited", "python"))
        self.assertNotIn("secret", self.daemon.log())

    def test_the_privileged_half_says_it_likewise(self):
        self.daemon.process.send_signal(signal.SIGHUP)
        line = self.one(event="keeper", text="the configuration was read again")
        datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
        self.assertEqual(line["level"], "info")

    def test_a_trace_that_is_none_is_not_repeated(self):
        for wrong in (TRACE.upper(), TRACE + "-x", TRACE.replace("0af", "000").replace("-b7", "-xx")):
            answer = self.daemon.ask("GET", "/healthz", headers={"traceparent": wrong})
            self.assertNotIn("traceparent", answer[2])
        with self.daemon.raw() as made:
            made.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
                         (b"traceparent: %s\r\n" % TRACE.encode()) * 2 + b"\r\n")
            got = daemon.read_all(made)
        self.assertIn(b" 200 OK\r\n", got)
        self.assertNotIn(b"traceparent", got)

    def test_what_is_no_request_has_its_line(self):
        with self.daemon.raw() as made:
            made.sendall(b"GARBAGE\r\n\r\n")
            got = daemon.read_all(made)
        name = got.split(b"X-Request-Id: ")[1].split(b"\r\n")[0].decode()
        line = self.one(event="request", request=name)
        self.assertEqual((line["method"], line["path"], line["status"]), ("", "", 400))

    def test_a_guest_is_told_of_neither(self):
        code = "import os, sys; print(dict(os.environ), sys.argv)"
        answer = self.daemon.ask("POST", "/v1/runs", daemon.run_of(code),
                                 {"X-Request-Id": "mine-2", "traceparent": TRACE})
        said = answer[1]["result"]["stdout"]
        self.assertNotIn(TRACE.split("-")[1], said)
        self.assertNotIn("mine-2", said)

    def test_no_client_writes_a_line_of_its_own(self):
        path = '/x%0a{"event":"run"}%1b[2J%22'
        self.daemon.ask("GET", path, headers={"X-Request-Id": 'evil" status=200'})
        line = self.one(event="request", path='/x\n{"event":"run"}\x1b[2J"')
        self.assertRegex(line["request"], r"^[0-9a-f]{32}$")
        self.assertEqual((line["status"], line["error"]), (404, "gone"))
        self.assertNotIn("\x1b", self.daemon.log())

    def test_a_client_that_left(self):
        made = self.daemon.connect()
        made.request("POST", "/v1/runs", json.dumps(daemon.run_of("import time; time.sleep(60)")),
                     {"Content-Type": "application/json", "X-Request-Id": "left"})
        self.assertTrue(wait_until(self.daemon.runs))
        made.close()
        self.assertEqual(self.one(event="request", request="left")["status"], 499)

    def test_probes_are_not_for_every_day(self):
        self.daemon.ask("GET", "/healthz", headers={"X-Request-Id": "probe"})
        self.daemon.ask("GET", "/v1/runs", headers={"X-Request-Id": "after"})
        self.one(event="request", request="after")
        self.assertFalse(self.events(request="probe"))


class Life(daemon.Case):
    def setUp(self):
        self.before = {key: os.environ.get(key) for key in ("DEBUG", "VIAL_LOG_RATE")}

    def tearDown(self):
        for key, value in self.before.items():
            os.environ.pop(key, None)
            if value is not None:
                os.environ[key] = value

    def test_start_and_stop(self):
        one = daemon.Daemon("--log-format", "json")
        try:
            one.process.terminate()
            self.assertEqual(one.process.wait(daemon.PATIENCE_S), 0)
            events = [json.loads(line)["event"] for line in one.log().splitlines()]
        finally:
            one.close()
        self.assertEqual(events, ["start", "drain", "stop"])

    def test_debug_says_more_and_text_is_the_default(self):
        os.environ["DEBUG"] = "1"
        one = daemon.Daemon()
        try:
            one.ask("GET", "/healthz", headers={"X-Request-Id": "probe"})
            self.assertTrue(wait_until(lambda: "request=probe" in one.log()))
            self.assertRegex(one.log(), r"(?m)^[-0-9]+T[0-9:.]+Z debug request method=GET "
                                        r"route=/healthz status=200 ms=[0-9.]+ .*request=probe ")
        finally:
            one.close()

    def test_a_flood_is_cut(self):
        os.environ["VIAL_LOG_RATE"] = "1"
        one = daemon.Daemon()
        try:
            made = one.connect()
            for _ in range(200):
                one.ask("GET", "/v1/runs", connection=made)
            made.close()
            self.assertLess(len(re.findall(" info request ", one.log())), 100)
            one.ask("POST", "/v1/runs", {}, {"Content-Type": "text/plain"})
            page = one.connect()
            page.request("GET", "/metrics")
            dropped = re.search(r"(?m)^vial_log_dropped_total (\d+)$",
                                page.getresponse().read().decode()).group(1)
            page.close()
            self.assertGreater(int(dropped), 100)
        finally:
            one.close()
