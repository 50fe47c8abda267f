"""The judge must be able to fail: each rule is shown something that breaks it."""
import copy
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import manifest                                                     # noqa: E402
import suite                                                        # noqa: E402
from judge import NOT_APPLICABLE, RULES, flatten, judge             # noqa: E402
from vial import exit_status                                        # noqa: E402

CLEAN = {
    "status": "exited", "exit_code": 0, "signal": None, "stage": "run",
    "stdout": "CONTAINED: refused\n", "stderr": "", "truncated": False, "valid_json": True,
    "wall_ms": 100.0, "cpu_ms": 50.0, "rss_growth_mb": 0.5, "complaints": [], "canary_seen": False,
    "after": {"survivors": {}, "survivors_s": 0.0, "leftovers": [], "cleanup_s": 0.1,
              "core_files": [], "sysv_ipc": 0, "file_sizes": (7, 7)},
    "next_run_ok": True,
}


def case(expectation, **more):
    return dict({"id": "T-001", "class": "test", "severity": "high", "expectation": expectation},
                **more)


def facts(**changes):
    """Facts of a run without fault, but for `changes`; a__b=x sets facts["a"]["b"]."""
    have = copy.deepcopy(CLEAN)
    for path, value in changes.items():
        node, keys = have, path.split("__")
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = value
    return have


class Judging(unittest.TestCase):
    def accepts(self, expectation, **changes):
        self.assertEqual(judge(case(expectation), facts(**changes)).failures, [])

    def refuses(self, expectation, reason, **changes):
        failures = "; ".join(judge(case(expectation), facts(**changes)).failures)
        self.assertIn(reason, failures)


class EveryRun(Judging):
    def test_a_clean_run_passes(self):
        self.accepts({"any_of": ["contained"], "must_print": "^CONTAINED:",
                      "must_not_print": "ESCAPED"})

    def test_a_complaint_about_vial_itself_fails(self):
        self.refuses({}, "exit status", complaints=["exit status 3"])

    def test_facts_that_are_missing_altogether_fail(self):
        verdict = judge(case({"any_of": ["ok"]}), {})
        self.assertFalse(verdict.passed)
        self.assertIn("unmeasured", "; ".join(verdict.failures))

    def test_a_surviving_process_fails_even_if_nobody_asked(self):
        self.refuses({}, "processes left", after__survivors={17: "sleep"})

    def test_a_canary_in_the_output_fails(self):
        self.refuses({}, "canary", canary_seen=True)

    def test_a_connection_to_the_host_fails(self):
        self.refuses({}, "reached the host", connections=["tcp from 127.0.0.1:4242"])

    def test_a_program_that_does_not_compile_fails(self):
        self.refuses({}, "did not compile", stage="compile")

    def test_a_compile_bomb_may_end_in_the_compiler(self):
        verdict = judge(case({}, **{"class": "compile-bomb"}), facts(stage="compile"))
        self.assertTrue(verdict.passed)

    def test_a_key_nobody_knows_fails(self):
        self.refuses({"result": {"colour": "blue"}}, "no rule for result.colour")

    def test_what_needs_a_daemon_is_said_to_be_not_applicable(self):
        verdict = judge(case({"api": {"accept_any_of": [200]}}), facts())
        self.assertTrue(verdict.passed)
        self.assertIn("not applicable: api", verdict.notes[0])


class ImportPolicy(Judging):
    escaped = {"stdout": "ESCAPED: import os worked\n"}
    test = case({"any_of": ["contained"], "must_not_print": "ESCAPED"},
                **{"class": "import-policy"})

    def test_it_is_informative_without_a_policy(self):
        self.assertTrue(judge(self.test, facts(**self.escaped)).passed)

    def test_it_counts_with_a_policy(self):
        self.assertFalse(judge(self.test, facts(**self.escaped), policy=True).passed)

    def test_what_it_refuses_has_nothing_to_show(self):
        want = {"any_of": ["timeout"], "result": {"exit_code": 7}, "must_not_print": "ESCAPED"}
        refused = facts(status="refused", exit_code=1, stdout="")
        self.assertTrue(judge(case(want), refused, True).passed)
        self.assertFalse(judge(case(want), refused).passed)  # there is none
        self.assertFalse(judge(case(want), facts(status="refused", stdout="ESCAPED: x"), True).passed)
        self.assertFalse(judge(case(want), facts(status="refused", canary_seen=True), True).passed)

    def test_the_host_is_guarded_without_a_policy_too(self):
        self.assertFalse(judge(self.test, facts(canary_seen=True)).passed)


class Ending(Judging):
    def test_an_escape_fails_wherever_it_is_printed(self):
        for stream in ("stdout", "stderr"):
            self.refuses({"must_not_print": "ESCAPED"}, "printed ESCAPED: read /etc/shadow",
                         **{stream: "CONTAINED: no\nESCAPED: read /etc/shadow\n"})

    def test_the_kind_must_be_one_of_those_expected(self):
        self.refuses({"any_of": ["ok"]}, "timeout, want ok", status="timeout")
        self.refuses({"any_of": ["timeout"]}, "contained, want timeout")
        self.refuses({"any_of": ["ok", "contained", "killed"]}, "broken", status="broken")
        self.refuses({"any_of": ["ok", "contained", "killed"]}, "hung", status="hung")

    def test_a_run_without_its_verdict_is_not_contained(self):
        self.refuses({"any_of": ["contained"]}, "ok, want contained", stdout="")
        self.refuses({"must_print": "^CONTAINED:"}, "did not print", stdout="not CONTAINED: x")

    def test_cut_output_counts_as_truncated_however_it_ended(self):
        self.accepts({"any_of": ["truncated"]}, truncated=True)
        self.refuses({"any_of": ["truncated"]}, "want truncated")

    def test_exit_code_and_signal_are_exact(self):
        self.accepts({"result": {"exit_code": 137}}, exit_code=137)
        self.refuses({"result": {"exit_code": 137}}, "exit code None", exit_code=None)
        self.refuses({"result": {"signal": 9}}, "signal None")
        self.accepts({"result": {"signal_any": [11, 6]}}, signal=6)
        self.refuses({"result": {"signal_any": [11, 6]}}, "signal 9", signal=9)

    def test_status_is_told_apart(self):
        self.refuses({"result": {"status": "exited"}}, "status memory", status="memory")
        self.refuses({"result": {"status_any": ["memory", "exited"]}}, "killed", status="killed")
        self.refuses({"result": {"not_status": ["memory"]}}, "status memory", status="memory")

    def test_time_has_a_limit(self):
        self.refuses({"result": {"wall_ms_max": 3000}}, "wall ms", wall_ms=3001)
        self.refuses({"result": {"cpu_ms_max": 10}}, "cpu ms")
        self.refuses({"result": {"cpu_ms_max": 10}}, "unmeasured", cpu_ms=None)

    def test_an_error_is_clean_when_the_language_says_what_is_wrong(self):
        self.accepts({"result": {"clean_error": True}}, exit_code=1, stderr="SyntaxError: no\n")
        self.refuses({"result": {"clean_error": True}}, "without a word", exit_code=1)
        self.refuses({"result": {"clean_error": True}}, "no clean result", status="broken")


class Output(Judging):
    def test_size_is_bounded_in_bytes(self):
        self.refuses({"result": {"stdout_bytes_max": 9}}, "bytes of stdout", stdout="\u20ac" * 4)
        self.refuses({"result": {"stderr_bytes_max": 9}}, "bytes of stderr", stderr="x" * 10)

    def test_cut_output_is_marked(self):
        self.refuses({"result": {"truncated_flag": True}}, "not flagged")
        self.accepts({"result": {"truncated_flag": True}}, status="timeout")

    def test_text_is_looked_for(self):
        self.refuses({"result": {"stdout_contains": "END"}}, "lacks")
        self.refuses({"result": {"not_contains": "SPOOFED|FORGED"}}, "FORGED", stdout="FORGED\n")
        self.refuses({"result": {"json_valid": True}}, "not valid JSON", valid_json=False)


class After(Judging):
    def test_processes_are_gone_in_time(self):
        self.refuses({"after": {"no_survivors_s": 1}}, "seconds until", after__survivors_s=1.5)
        self.refuses({"after": {"no_survivors_s": 1}}, "unmeasured", after__survivors=None)

    def test_nothing_is_left_on_the_host(self):
        self.refuses({"after": {"cleanup_ok": True}}, "mount /x", after__leftovers=["mount /x"])
        self.refuses({"after": {"cleanup_ok": True}}, "unmeasured", after__leftovers=None)
        self.refuses({"after": {"cleanup_s_max": 10}}, "seconds to clean", after__cleanup_s=11)
        self.refuses({"after": {"no_core_file": True}}, "core", after__core_files=["core.7"])
        self.refuses({"after": {"no_sysv_ipc": True}}, "System V", after__sysv_ipc=1)

    def test_a_file_that_still_grows_fails(self):
        self.refuses({"after": {"file_stops_growing": "log"}}, "grew", after__file_sizes=(7, 9))
        self.refuses({"after": {"file_stops_growing": "log"}}, "unmeasured", after__file_sizes=None)

    def test_the_next_run_works(self):
        self.refuses({"next_run_ok": True}, "next run", next_run_ok=False)
        self.refuses({"next_run_ok": True}, "unmeasured", next_run_ok=None)

    def test_neighbours_and_memory_have_limits(self):
        self.refuses({"daemon_rss_growth_mb_max": 16}, "MB more", rss_growth_mb=16.1)
        self.refuses({"neighbour_p95_ms_max": 500}, "neighbour", neighbour__added_p95_ms=501.0)
        self.refuses({"neighbour_p95_ms_max": 500}, "unmeasured", neighbour__failed=3)

    def test_a_port_inside_cannot_be_reached_from_outside(self):
        want = {"during": {"host_connect_refused": [18998]}}
        self.accepts(want, during__connects={18998: (20, 0)})
        self.refuses(want, "could connect", during__connects={18998: (20, 1)})
        self.refuses(want, "unmeasured", during__connects={18998: (0, 0)})


class Exports(Judging):
    def export(self, **more):
        return dict({"content": b"harmless", "found": {"a": ("file", 8)}, "saved": ["a"],
                     "errors": {}, "witness": {"a": ("file", 8)}, "changed": ["a"],
                     "changed_cut": False, "ms": 10.0, "blocked": False, "crashed": False,
                     "one_line": True}, **more)

    def check(self, key, value, reason, **more):
        self.accepts({"export": {key: value}}, export=self.export())
        self.refuses({"export": {key: value}}, reason, export=self.export(**more))
        self.refuses({"export": {key: value}}, "unmeasured", export=None)

    def test_content_of_the_host_must_not_come_out(self):
        self.check("never_contains", "root:|HOST", "exported", content=b"x\nroot:x:0:0\n")

    def test_links_are_not_followed(self):
        self.check("never_follow", True, "no plain file", witness={"a": ("link", 4)})
        self.check("never_follow", True, "no plain file", found={"a": ("link", 4)})

    def test_what_is_to_be_refused_is_refused_aloud(self):
        pipe = {"a": ("special", 0)}
        self.refuses({"export": {"refused": ["a"]}}, "not refused: a",
                     export=self.export(witness=pipe, found={"a": ("file", 0)}))
        self.refuses({"export": {"refused": ["a"]}}, "silently",
                     export=self.export(witness=pipe, found={}))
        self.accepts({"export": {"refused": ["a"]}},
                     export=self.export(witness=pipe, found={}, errors={"a": "not a file"}))

    def test_a_file_the_guest_could_not_fill_need_not_be_refused(self):
        empty = {"a": ("file", 0)}
        self.accepts({"export": {"refused": ["a"]}}, export=self.export(witness=empty, found=empty))
        self.refuses({"export": {"refused": ["a"]}}, "not refused",
                     export=self.export(witness={"a": ("file", 1 << 40)}, found=empty))

    def test_names_come_back_as_they_are(self):
        odd = "\udcff\udcfe"
        self.check("names_roundtrip", True, "lost", witness={"a": ("file", 8), "b": ("file", 1)})
        self.check("names_roundtrip", True, "invented",
                   found={"a": ("file", 8), "b": ("file", 1)}, changed=["a", "b"])
        self.check("names_roundtrip", True, "not listed", changed=[], saved=[])
        self.accepts({"export": {"names_roundtrip": True}},
                     export=self.export(witness={odd: ("file", 1)}, found={odd: ("file", 1)},
                                        changed=["\ufffd\ufffd"]))

    def test_a_name_does_not_break_the_result(self):
        self.check("header_injection", False, "broke the line", one_line=False)

    def test_the_exporter_is_quick_and_sound(self):
        self.check("max_ms", 3000, "ms to export", ms=3001.0)
        self.check("never_block", True, "blocked", blocked=True)
        self.check("no_crash", True, "crashed", crashed=True)

    def test_a_listing_is_bounded_and_says_when_it_is_cut(self):
        want = {"export": {"listing_bounded": True}}
        many = [str(n) for n in range(20000)]
        self.refuses(want, "entries listed", export=self.export(changed=many))
        self.refuses(want, "without saying so", stdout="DONE: 5 files", export=self.export())
        self.accepts(want, stdout="DONE: 5 files", export=self.export(changed_cut=True))

    def test_an_export_beside_a_race_brings_nothing_foreign(self):
        want = {"during": {"export_names": ["a"], "attempts": 2000, "never_contains": "root:"}}
        during = {"attempts": 10}
        self.accepts(want, during=during, export=self.export())
        self.refuses(want, "exported", during=during, export=self.export(content=b"root:x"))
        self.refuses(want, "no plain file", during=during,
                     export=self.export(found={"a": ("link", 1)}))
        self.refuses(want, "nothing was", during={"attempts": 0}, export=self.export())

    def test_uploaded_archives_stay_closed(self):
        want = {"upload": {"files": ["a.zip"], "host_absent": ["/tmp/x"],
                           "if_unpacked": {"max_bytes": 100, "no_file_outside": True}}}
        good = {"arrived": ["a.zip"], "host_files": [], "outside": [], "bytes": 0}
        self.accepts(want, upload=good)
        self.refuses(want, "did not arrive", upload=dict(good, arrived=[]))
        self.refuses(want, "on the host", upload=dict(good, host_files=["/tmp/x"]))
        self.refuses(want, "outside", upload=dict(good, outside=["evil.txt"]))
        self.refuses(want, "bytes unpacked", upload=dict(good, bytes=101))
        self.refuses(want, "unmeasured", upload=None)


class ManyRuns(Judging):
    want = {"distinct_across_runs": {"runs": 3, "prefix": "RAND ", "keys": "all",
                                     "informative_keys": ["seed"]}}

    def test_all_values_differ(self):
        self.accepts(self.want, repeated=[{"r": n, "seed": 1, "none": ""} for n in range(3)])
        self.refuses(self.want, "several runs: r", repeated=[{"r": n % 2} for n in range(3)])

    def test_a_value_that_is_missing_once_is_no_value(self):
        self.refuses(self.want, "several runs: r", repeated=[{"r": 1}, {}, {}])

    def test_fewer_runs_than_wanted_do_not_count(self):
        self.refuses(self.want, "unmeasured", repeated=[{"r": 1}])

    def test_informative_values_never_fail_but_must_be_there(self):
        self.accepts({"informative_distinct": {"runs": 2}}, repeated=[{"a": 1}, {"a": 1}])
        self.refuses({"informative_distinct": {"runs": 2}}, "unmeasured", repeated=None)


class Manifest(unittest.TestCase):
    tests = suite.load(HERE)

    def test_it_says_what_the_headers_say(self):
        described = {test["id"]: test for test in map(manifest.describe, self.paths())}
        for test in self.tests:
            want = {key: value for key, value in test.items() if key not in ("path", "self_check")}
            self.assertEqual(described.pop(test["id"]), want)
        self.assertEqual(described, {})

    def paths(self):
        cases = os.path.join(HERE, "cases")
        return [os.path.join(cases, name) for name in os.listdir(cases)]

    def test_every_key_is_judged_or_said_to_be_not_applicable(self):
        known = set(RULES) | set(NOT_APPLICABLE)
        for test in self.tests:
            keys = {key for key, _ in flatten(test["expectation"])}
            self.assertEqual(keys - known, set(), test["id"])

    def test_no_case_passes_on_silence(self):
        for test in self.tests:
            self.assertFalse(judge(test, {}).passed, test["id"])

    def test_every_case_outside_the_policy_fails_on_an_escape(self):
        for test in self.tests:
            if test["class"] != "import-policy":
                verdict = judge(test, facts(stdout="ESCAPED: out\n"))
                self.assertIn("printed ESCAPED: out", verdict.failures, test["id"])

    def test_parts_of_a_pair_run_together_and_in_order(self):
        for unit in suite.units(self.tests):
            parts = [test.get("part") for test in unit.tests]
            self.assertIn(parts, ([None], ["A", "B"]))

    def test_choosing_a_part_chooses_the_pair(self):
        pair = next(test for test in self.tests if test.get("part") == "B")
        unit, = suite.units(self.tests, only=[pair["id"]])
        self.assertEqual(len(unit.tests), 2)

    def test_a_case_that_does_not_exist_is_an_error(self):
        with self.assertRaises(suite.SuiteError):
            suite.units(self.tests, only=["NO-SUCH-CASE"])


class ExitStatus(unittest.TestCase):
    def test_it_follows_from_the_result(self):
        for result, status in (({"exit_code": 3}, 3), ({"exit_code": None, "signal": 11}, 139),
                               ({"timed_out": True, "signal": 9}, 124),
                               ({"oom": True, "exit_code": 1}, 1), ({"oom": True}, 137)):
            self.assertEqual(exit_status(result), status)


if __name__ == "__main__":
    unittest.main()
