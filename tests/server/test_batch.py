"""POST /v1/batch: many runs in one request, and the verdicts on them."""
import base64
import json
import time

import daemon
from daemon import wait_until

ECHO = "print(input())"


def batch_of(*runs, code=ECHO, language="python", **more):
    return {"language": language, "code": code, "runs": list(runs), **more}


class Batch(daemon.Case):
    def batch(self, *runs, **more):
        status, answer, _ = self.daemon.ask("POST", "/v1/batch", batch_of(*runs, **more))
        self.assertEqual(status, 200, answer)
        self.assertEqual([entry["index"] for entry in answer["results"]], list(range(len(runs))))
        return answer

    def verdicts(self, *runs, **more):
        return [entry["verdict"] for entry in self.batch(*runs, **more)["results"]]

    def stream(self, *runs, **more):
        made = self.daemon.connect()
        self.addCleanup(made.close)
        made.request("POST", "/v1/batch", json.dumps(batch_of(*runs, **more)),
                     {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
        return made, made.getresponse()

    def test_verdicts_in_order(self):
        answer = self.batch({"stdin": "1", "expected": "1"},
                            {"stdin": "2", "expected": "3\n", "label": "two"},
                            {"stdin": "x"}, {}, parallel=3)
        results, summary = answer["results"], answer["summary"]
        self.assertEqual([entry["verdict"] for entry in results],
                         ["accepted", "wrong_answer", "accepted", "runtime_error"])
        self.assertEqual(results[1]["label"], "two")
        self.assertEqual(results[1]["difference"],
                         {"line": 1, "column": 1, "expected": "3", "got": "2"})
        self.assertEqual(results[0]["result"]["stdout"], "1\n")
        self.assertEqual(results[3]["result"]["exception"]["type"], "EOFError")
        self.assertEqual((summary["runs"], summary["accepted"], summary["first_failure"],
                          summary["verdict"]), (4, 2, 1, "wrong_answer"))
        self.assertEqual(summary["verdicts"],
                         {"accepted": 2, "wrong_answer": 1, "runtime_error": 1})

    def test_limits_are_verdicts(self):
        runs = [{"code": "while True: pass", "limits": {"timeout": 0.5}},
                {"code": "x = bytearray(1 << 30)", "limits": {"memory": "64m"}},
                {"code": "print('x' * 5000)", "limits": {"output": 1024}},
                {"code": "import os; os.kill(os.getpid(), 11)"},
                {"code": "int main( {", "language": "c"}]
        self.assertEqual(self.verdicts(*runs), ["time_limit", "memory_limit", "output_limit",
                                                "runtime_error", "compile_error"])

    def test_modes(self):
        runs = [{"stdin": "1  2.0000001", "expected": "1 2.0", "compare": mode}
                for mode in ("exact", "trimmed", "tokens", "floats")]
        self.assertEqual(self.verdicts(*runs), ["wrong_answer"] * 3 + ["accepted"])
        raw = base64.b64encode(b"\xff\n").decode()
        self.assertEqual(self.verdicts(
            {"expected_base64": raw}, code="import os; os.write(1, b'\\xff\\n')",
            compare="exact"), ["accepted"])

    def test_a_program_that_does_not_compile_is_compiled_once(self):
        answer = self.batch({}, {}, {"code": "int main(void) { return 0; }"}, {},
                            code="int main( {", language="c")
        results = answer["results"]
        self.assertEqual([entry["verdict"] for entry in results],
                         ["compile_error", "compile_error", "accepted", "compile_error"])
        self.assertEqual([entry["id"] is None for entry in results], [False, True, False, True])
        self.assertIn("error", results[0]["result"]["stderr"])

    def test_the_first_failure_may_be_the_end(self):
        runs = [{"stdin": "1", "expected": "1"}, {"stdin": "2", "expected": "x"}] + [{}] * 20
        answer = self.batch(*runs, stop_on_failure=True, parallel=1)
        self.assertEqual([entry["verdict"] for entry in answer["results"]],
                         ["accepted", "wrong_answer"] + ["skipped"] * 20)
        self.assertEqual(answer["summary"]["first_failure"], 1)

    def test_what_is_before_a_failure_still_counts(self):
        runs = [{"code": "import time; time.sleep(1); print(1)", "expected": "1"},
                {"stdin": "2", "expected": "x"},
                {"code": "import time; time.sleep(600)", "limits": {"timeout": 600}}]
        answer = self.batch(*runs, stop_on_failure=True, parallel=3)
        self.assertEqual([entry["verdict"] for entry in answer["results"]],
                         ["accepted", "wrong_answer", "skipped"])
        self.assert_no_runs()

    def test_what_is_behind_a_failure_does_not_count_however_fast(self):
        runs = [{"code": "import time; time.sleep(5)", "expected": "x"}, {"stdin": "2", "expected": "2"}]
        _, response = self.stream(*runs, stop_on_failure=True, parallel=2)  # both at the same time
        answer = self.batch(*runs, stop_on_failure=True, parallel=2)
        events = [json.loads(line) for line in response]
        self.assertEqual([(entry["verdict"], entry["id"] is None) for entry in answer["results"]],
                         [("wrong_answer", False), ("skipped", True)])
        self.assertEqual([e["verdict"] for e in events[1:-1]], ["accepted", "wrong_answer"])
        for summary in (answer["summary"], events[-1]["summary"]):
            self.assertEqual(summary["verdicts"], {"wrong_answer": 1, "skipped": 1})

    def test_detail(self):
        runs = [{"stdin": "1", "expected": "1"}, {"stdin": "2", "expected": "x"}]
        for detail, want in (("full", [True, True]), ("failures", [False, True]),
                             ("verdicts", [False, False])):
            results = self.batch(*runs, detail=detail)["results"]
            self.assertEqual([entry["result"] is not None for entry in results], want)

    def test_stream(self):
        _, response = self.stream(*[{"stdin": str(i), "expected": str(i)} for i in range(9)])
        self.assertEqual(response.getheader("Content-Type"), "application/x-ndjson")
        events = [json.loads(line) for line in response]
        self.assertEqual([e["event"] for e in events], ["start"] + ["run"] * 9 + ["summary"])
        self.assertEqual(events[0]["runs"], 9)
        self.assertEqual(sorted(e["index"] for e in events[1:-1]), list(range(9)))
        self.assertEqual(events[-1]["summary"]["accepted"], 9)

    def test_a_client_that_goes_ends_it(self):
        made, _ = self.stream(*[{}] * 50, code="import time; time.sleep(600)",
                              limits={"timeout": 600}, parallel=2)
        self.assertTrue(wait_until(lambda: len(self.daemon.runs()) == 2))
        made.sock.shutdown(2)
        made.close()
        self.assert_no_runs()

    def test_one_of_them_can_be_ended(self):
        _, response = self.stream({}, {"stdin": "2"}, code="import time; time.sleep(600)",
                                  limits={"timeout": 600}, parallel=1, stop_on_failure=True)
        self.assertTrue(wait_until(self.daemon.runs))
        self.daemon.ask("DELETE", "/v1/runs/" + self.daemon.runs()[0]["id"])
        events = [json.loads(line) for line in response]
        self.assertEqual([e["verdict"] for e in events[1:-1]], ["cancelled", "skipped"])

    def test_much_output_is_cut_and_verdicts_are_not(self):
        answer = self.batch(*[{}] * 5, code="print('x' * (20 << 20), end='')", parallel=1,
                            limits={"output": "24m"})
        cut = [entry["cut"] for entry in answer["results"]]
        self.assertEqual(cut, [False] * 3 + [True] * 2)
        self.assertEqual(answer["summary"]["accepted"], 5)

    def test_what_is_shared_is_looked_at_once(self):
        runs, large = [{"env": {"A": "1"}}] * 1000, "x" * (100 << 10)
        for shared in ({"stdin": large * 280}, {"args": [large] * 280}, {"env": {"A%d" % i: large for i in range(280)}}):
            with self.subTest(list(shared)):
                began = time.monotonic()
                answer = self.daemon.ask("POST", "/v1/batch", batch_of(
                    *runs, code="exit(1)", stop_on_failure=True, detail="verdicts", parallel=1, **shared))
                self.assertEqual((answer[0], answer[1]["summary"]["runs"]), (200, 1000), answer)
                self.assertLess(time.monotonic() - began, 60)  # not a thousand times
        status, answer, _ = self.daemon.ask("POST", "/v1/batch", batch_of(*runs, code="1", stdin=1))
        self.assertEqual((status, answer["error"]["field"]), (400, "stdin"))

    def test_refusals(self):
        def ask(body):
            return self.daemon.ask("POST", "/v1/batch", body)
        self.assert_refused(ask({}), 400, "invalid", "runs")
        self.assert_refused(ask(batch_of({}, {"limits": {"memory": "x"}})), 400, "invalid",
                            "runs[1].limits.memory")
        self.assert_refused(ask(batch_of({"nosuch": 1})), 400, "invalid", "runs[0].nosuch")
        self.assert_no_runs()


class Full(daemon.Case):
    options = ("--max", "2", "--queue", "0", "--armed", "1")

    def test_a_batch_waits_for_room(self):
        """What one batch has under way does not make another of its runs fail."""
        runs = [{"stdin": str(i), "expected": str(i)} for i in range(12)]
        answer = self.daemon.ask("POST", "/v1/batch", batch_of(*runs, parallel=16))
        self.assertEqual(answer[0], 200, answer)
        self.assertEqual(answer[1]["summary"]["accepted"], 12)
