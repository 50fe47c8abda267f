"""What an operator looks at: /healthz, /readyz, /metrics."""
import os
import re
import sys
import time

import daemon
from daemon import run_of, wait_until

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's module, whichever Python this is
# pylint: disable-next=wrong-import-position
from prometheus_client.parser import text_string_to_metric_families

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def table():
    """{name: (type, labels)} of src/server/metrics.def."""
    with open(os.path.join(ROOT, "src/server/metrics.def"), encoding="utf-8") as file:
        rows = re.findall(r'^METRIC\("(\w+)",\s*"(\w+)",\s*"([\w,]*)"', file.read(), re.M)
    return {name: (kind, set(filter(None, labels.split(",")))) for name, kind, labels in rows}


class Metrics(daemon.Case):
    def page(self):
        made = self.daemon.connect()
        try:
            made.request("GET", "/metrics")
            response = made.getresponse()
            self.assertEqual(response.status, 200)
            self.assertEqual(response.getheader("Content-Type"),
                             "text/plain; version=0.0.4; charset=utf-8")
            return response.read().decode()
        finally:
            made.close()

    def families(self):
        return {family.name: family for family in text_string_to_metric_families(self.page())}

    def value(self, name, **labels):
        """The sum of the samples that have these labels."""
        return sum(sample.value for family in self.families().values() for sample in family.samples
                   if sample.name == name and labels.items() <= sample.labels.items())

    @daemon.inside
    def test_the_page_is_the_table(self):
        self.run_ok("print(1)")
        page, rows = self.page(), table()
        self.assertEqual(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.M),
                         [(name, kind) for name, (kind, _) in rows.items()])
        for family in text_string_to_metric_families(page):
            name = family.name + ("_total" if family.type == "counter" else "")
            self.assertTrue(family.documentation, name)
            for sample in family.samples:
                self.assertEqual(set(sample.labels) - {"le"}, rows[name][1], sample)

    def test_the_manual_has_the_table(self):
        with open(os.path.join(ROOT, "docs/OBSERVABILITY.md"), encoding="utf-8") as file:
            rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([\w`, ]*) \| .+ \|$", file.read(), re.M)
        listed = {name: (kind, set(re.findall(r"\w+", labels))) for name, kind, labels in rows
                  if kind in ("counter", "gauge", "histogram")}
        self.assertEqual(list(listed.items()), list(table().items()))

    def test_names_keep_the_conventions(self):
        for name, (kind, _) in table().items():
            self.assertEqual(name.endswith("_total"), kind == "counter", name)
            if kind == "histogram":
                self.assertRegex(name, "_(seconds|bytes)$")

    @daemon.inside
    def test_runs_are_counted_by_how_they_ended(self):
        ended = {outcome: self.value("vial_runs_total", kind="run", environment="python", outcome=outcome)
                 for outcome in ("exited", "timed_out")}
        waits = self.value("vial_run_wait_seconds_count", environment="python")
        self.run_ok("print('x' * 100)")
        self.run_ok("while True: pass", limits={"timeout": 0.2})
        for outcome, before in ended.items():
            self.assertEqual(self.value("vial_runs_total", kind="run", environment="python",
                                        outcome=outcome), before + 1)
        self.assertEqual(self.value("vial_run_wait_seconds_count", environment="python"), waits + 2)
        self.assertGreater(self.value("vial_run_duration_seconds_sum", environment="python"), 0.2)
        self.assertGreaterEqual(self.value("vial_run_output_bytes_total", stream="stdout"), 101)

    @daemon.inside
    def test_other_ways_to_run_are_counted_as_such(self):
        self.daemon.ask("POST", "/exec", {"code": "print(1)"})
        self.daemon.ask("POST", "/execute", {"generated_code": "1", "timeout": 5, "language": "python"})
        session = self.daemon.ask("POST", "/v1/sessions", {"language": "python"})[1]["id"]
        self.assertEqual(self.value("vial_sessions", state="idle"), 1)
        self.daemon.ask("POST", "/v1/sessions/%s/runs" % session, {"code": "1"})
        self.daemon.ask("DELETE", "/v1/sessions/" + session)
        self.assertEqual(self.value("vial_sessions"), 0)
        for kind in ("exec", "execute", "step"):
            self.assertEqual(self.value("vial_runs_total", kind=kind, outcome="exited"), 1, kind)

    def test_requests_are_counted_by_route_and_status(self):
        def seen(route, status):
            return self.value("vial_http_requests_total", route=route, status=status)
        missing, bad = seen("none", "404"), seen("/v1/runs", "400")
        gone = self.value("vial_http_refused_total", reason="gone")
        self.daemon.ask("GET", "/no/such\"path\n".replace("\n", "%0a"))
        self.daemon.ask("POST", "/v1/runs", {"nonsense": 1})
        self.daemon.ask("POST", "/v1/runs", {}, {"Expect": "a-miracle"})
        self.assertEqual(seen("none", "404"), missing + 1)
        self.assertEqual(seen("/v1/runs", "400"), bad + 1)
        self.assertEqual(seen("/v1/runs", "417"), 1)
        self.assertEqual(self.value("vial_http_refused_total", reason="gone"), gone + 1)
        self.assertGreaterEqual(self.value("vial_http_request_duration_seconds_count",
                                           method="POST", route="/v1/runs"), 1)

    def test_a_client_that_leaves_is_counted(self):
        made = self.daemon.connect()
        self.daemon.ask("GET", "/healthz")
        body = '{"language": "python", "code": "import time; time.sleep(60)"}'
        made.request("POST", "/v1/runs", body, {"Content-Type": "application/json"})
        self.assertTrue(wait_until(self.daemon.runs))
        made.close()
        self.assertTrue(wait_until(lambda: self.value("vial_http_requests_total", route="/v1/runs",
                                                      status="499") == 1))

    def test_the_process_itself(self):
        pid = self.daemon.server_pid()
        # But for the connection that asked; sandboxes come and go.
        self.assertTrue(wait_until(lambda: self.value("process_open_fds") - 1 ==
                                   len(os.listdir("/proc/%d/fd" % pid))))
        self.assertGreater(self.value("process_resident_memory_bytes"), 1 << 20)
        self.assertGreater(self.value("process_cpu_seconds_total"), 0)
        self.assertEqual(self.value("vial_build_info"), 1)


class Ready(daemon.Case):
    @daemon.inside
    def test_ready_when_sandboxes_are_armed(self):
        self.assertTrue(wait_until(lambda: self.daemon.ask("GET", "/readyz")[0] == 200))
        answer = self.daemon.ask("GET", "/readyz")[1]
        self.assertTrue(answer["ready"])
        self.assertLessEqual({"life", "layers", "pool", "history"}, {check["name"] for check in answer["checks"]})
        self.assertTrue(all(check["ok"] and check["reason"] is None for check in answer["checks"]))

    def test_being_busy_is_no_reason(self):
        self.assertTrue(wait_until(lambda: self.daemon.ask("GET", "/readyz")[0] == 200))
        made = [self.daemon.connect() for _ in range(6)]
        for one in made:
            one.request("POST", "/v1/runs", '{"language": "python", "code": "input()", "stdin": "x"}',
                        {"Content-Type": "application/json"})
        self.assertEqual(self.daemon.ask("GET", "/readyz")[0], 200)
        for one in made:
            one.getresponse().read()
            one.close()

    def test_what_somebody_asks_for_is_no_reason(self):
        """An environment that nobody used so far is warmed then; meanwhile others are served as before."""
        self.assertTrue(wait_until(lambda: self.daemon.ask("GET", "/readyz")[0] == 200))
        one = self.daemon.connect()
        one.request("POST", "/exec", '{"code": "print(1)"}', {"Content-Type": "application/json"})
        statuses, until = set(), time.monotonic() + 3
        while time.monotonic() < until:
            statuses.add(self.daemon.ask("GET", "/readyz")[0])
        self.assertEqual((one.getresponse().status, statuses), (200, {200}))
        one.close()


class NotReady(daemon.Case):
    options = ("--armed", "0")

    def test_who_keeps_none_armed_is_ready_without(self):
        self.assertEqual(self.daemon.ask("GET", "/readyz")[0], 200)
        self.assertEqual(self.daemon.ask("POST", "/v1/runs", run_of("print(1)"))[0], 200)
