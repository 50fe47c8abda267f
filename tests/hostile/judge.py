"""judge - does what was measured meet what the manifest expects?

Each key of an expectation has one rule.  A key without a rule is a failure, and so is a
fact that a rule needs and nobody measured: silence never passes.

Facts are a nested dict; the keys are those that the rules below ask for.
"""
import re

from exports import repaired

LISTING_MAX = 10000    # entries of a listing that still counts as bounded
SURVIVE_S = 2          # by then every process of every run is gone

NOT_APPLICABLE = {
    "api": "status codes of an HTTP interface",
    "daemon_api_p95_ms_max": "latency of an HTTP interface",
    "import_policy": "no import policy is installed",
    "validate_only": "there is no mode that only validates",
}
# Cases that look for descriptors which are not theirs, or write to all they have.
DRIVER = {"FD-001", "FD-004", "FD-007"}
RULES = {}


class Unmeasured(Exception):
    """A rule asked for a fact that is not there."""


class Verdict:
    def __init__(self):
        self.failures = []
        self.notes = []

    @property
    def passed(self):
        return not self.failures


def judge(test, facts, policy=False, in_session=False):
    """The verdict on one case.  `policy`: an import policy was in force."""
    verdict = Verdict()
    verdict.failures += always(test, facts)
    if test["class"] == "import-policy" and not policy:
        verdict.notes.append("informative: no import policy is installed")
        return verdict
    if in_session and test["id"] in DRIVER and not facts.get("why_here"):
        verdict.notes.append("informative: in a session the driver is in the same process, and its "
                             "channel with it")
        return verdict
    expectation = test["expectation"]
    if policy and facts.get("status") == "refused":  # whatever it was to show, it was kept from
        verdict.notes.append("refused by the policy")
        expectation = {key: want for key, want in expectation.items() if key == "must_not_print"}
    for key, want in flatten(expectation):
        if key in NOT_APPLICABLE:
            verdict.notes.append("not applicable: %s (%s)" % (key, NOT_APPLICABLE[key]))
        elif key not in RULES:
            verdict.failures.append("no rule for %s" % key)
        else:
            try:
                failure = RULES[key](want, facts)
            except Unmeasured as error:
                failure = "unmeasured: %s needs %s" % (key, error)
            if failure:
                verdict.failures.append(failure)
    return verdict


def flatten(expectation, prefix=""):
    """Pairs of dotted key and value; what a rule judges as a whole stays whole."""
    for key, value in expectation.items():
        key = prefix + key
        if isinstance(value, dict) and key not in RULES and key not in NOT_APPLICABLE:
            yield from flatten(value, key + ".")
        else:
            yield key, value


def always(test, facts):
    """What holds for every run, whatever the manifest says."""
    failures = list(facts.get("complaints", ["unmeasured: complaints"]))
    if facts.get("canary_seen", True):
        failures.append("the canary is in what came out")
    failures += ["reached the host's canary: " + line for line in facts.get("connections", [])]
    left = facts.get("after", {}).get("survivors")
    if left is None:
        failures.append("unmeasured: survivors")
    elif left:
        failures.append("processes left: %s" % left)
    if facts.get("stage") == "compile" and not test["class"].startswith("compile"):
        failures.append("did not compile: %s" % facts.get("stderr", "")[:160])
    return failures


def kind(facts):
    """The manifest's word for how a run went."""
    status = need(facts, "status")
    if status in ("timeout", "memory", "killed", "broken", "hung"):
        return status
    if status == "refused" or re.search(r"^CONTAINED:", need(facts, "stdout"), re.M):
        return "contained"
    return "truncated" if need(facts, "truncated") else "ok"


def need(facts, *path):
    for key in path:
        if not isinstance(facts, dict) or facts.get(key) is None:
            raise Unmeasured(".".join(path))
        facts = facts[key]
    return facts


def rule(*keys):
    def register(function):
        for key in keys:
            RULES[key] = function
        return function
    return register


# ---- how it ended ----------------------------------------------------------------------------

@rule("kind")
def _kind(want, facts):
    return None  # the first of any_of


@rule("any_of")
def _any_of(want, facts):
    have = kind(facts)
    if have in want or ("truncated" in want and facts.get("truncated")):
        return None
    return "%s, want %s" % (have, "|".join(want))


@rule("must_not_print")
def _must_not_print(want, facts):
    text = need(facts, "stdout") + "\n" + need(facts, "stderr")
    found = re.search(r"^%s:.*" % want, text, re.M)
    return found and "printed " + found[0][:300]


@rule("must_print")
def _must_print(want, facts):
    if re.search(want, need(facts, "stdout"), re.M) or need(facts, "status") == "refused":
        return None  # what was not run could not print
    return "did not print %s" % want


@rule("result.exit_code")
def _result_exit_code(want, facts):
    return differs("exit code", facts.get("exit_code"), want)


@rule("result.signal")
def _result_signal(want, facts):
    return differs("signal", facts.get("signal"), want)


@rule("result.signal_any")
def _result_signal_any(want, facts):
    have = facts.get("signal")
    return None if have in want else "signal %s, want one of %s" % (have, want)


@rule("result.status")
def _result_status(want, facts):
    return differs("status", need(facts, "status"), want)


@rule("result.status_any")
def _result_status_any(want, facts):
    have = need(facts, "status")
    return None if have in want else "status %s, want %s" % (have, "|".join(want))


@rule("result.not_status")
def _result_not_status(want, facts):
    have = need(facts, "status")
    return "status %s" % have if have in want else None


@rule("result.wall_ms_max")
def _result_wall_ms_max(want, facts):
    return above("wall ms", need(facts, "wall_ms"), want)


@rule("result.cpu_ms_max")
def _result_cpu_ms_max(want, facts):
    return above("cpu ms", need(facts, "cpu_ms"), want)


# ---- what it printed -------------------------------------------------------------------------

@rule("result.stdout_bytes_max")
def _result_stdout_bytes_max(want, facts):
    return above("bytes of stdout", len(need(facts, "stdout").encode("utf-8", "replace")), want)


@rule("result.stderr_bytes_max")
def _result_stderr_bytes_max(want, facts):
    return above("bytes of stderr", len(need(facts, "stderr").encode("utf-8", "replace")), want)


@rule("result.truncated_flag")
def _result_truncated_flag(want, facts):
    flagged = need(facts, "truncated") or need(facts, "status") != "exited"
    return None if flagged == want else "truncation is not flagged"


@rule("result.stdout_contains")
def _result_stdout_contains(want, facts):
    return None if want in need(facts, "stdout") else "stdout lacks %r" % want


@rule("result.not_contains")
def _result_not_contains(want, facts):
    found = re.search(want, need(facts, "stdout"))
    return found and "stdout contains %r" % found[0][:80]


@rule("result.json_valid", "export.json_valid")
def _result_json_valid(want, facts):
    return None if need(facts, "valid_json") == want else "the result is not valid JSON"


@rule("result.clean_error")
def _result_clean_error(want, facts):
    """Whatever was wrong with the source, the language says so, and vial itself is fine."""
    if kind(facts) in ("broken", "hung"):
        return "no clean result"
    if facts.get("exit_code") not in (0, None) and not need(facts, "stderr").strip():
        return "exit code %s without a word" % facts["exit_code"]
    return None


# ---- what was left ---------------------------------------------------------------------------

@rule("after.no_survivors_s")
def _after_no_survivors_s(want, facts):
    need(facts, "after", "survivors")  # that there are none: always()
    return above("seconds until no process was left", need(facts, "after", "survivors_s"), want)


@rule("after.cleanup_ok")
def _after_cleanup_ok(want, facts):
    left = need(facts, "after", "leftovers")
    return "left behind: %s" % "; ".join(left)[:300] if left else None


@rule("after.cleanup_s_max")
def _after_cleanup_s_max(want, facts):
    return above("seconds to clean up", need(facts, "after", "cleanup_s"), want)


@rule("after.no_core_file")
def _after_no_core_file(want, facts):
    files = need(facts, "after", "core_files")
    return "core file: %s" % files if files else None


@rule("after.no_sysv_ipc")
def _after_no_sysv_ipc(want, facts):
    return above("System V objects left", need(facts, "after", "sysv_ipc"), 0)


@rule("after.file_stops_growing")
def _after_file_stops_growing(want, facts):
    first, later = need(facts, "after", "file_sizes")
    return None if first == later else "%s grew from %d to %d bytes" % (want, first, later)


@rule("next_run_ok")
def _next_run_ok(want, facts):
    return None if need(facts, "next_run_ok") == want else "the next run failed"


# ---- what it cost others ---------------------------------------------------------------------

@rule("daemon_rss_growth_mb_max", "export.daemon_rss_growth_mb_max")
def _daemon_rss_growth_mb_max(want, facts):
    return above("MB more than a hello in the vial process", need(facts, "rss_growth_mb"), want)


@rule("neighbour_p95_ms_max")
def _neighbour_p95_ms_max(want, facts):
    added = need(facts, "neighbour", "added_p95_ms")
    return above("ms added to a neighbour's run (p95)", added, want)


@rule("during.host_connect_refused")
def _during_host_connect_refused(want, facts):
    attempts = need(facts, "during", "connects")
    for port in want:
        tried, reached = attempts.get(port, (0, 0))
        if not tried:
            raise Unmeasured("connections to port %d" % port)
        if reached:
            return "the host could connect to port %d" % port
    return None


# ---- what came out ---------------------------------------------------------------------------

@rule("export.never_contains", "during.never_contains")
def _export_never_contains(want, facts):
    found = re.search(want.encode(), need(facts, "export", "content"))
    return found and "exported %r" % found[0][:80]


@rule("export.never_follow")
def _export_never_follow(want, facts):
    found, witness = need(facts, "export", "found"), need(facts, "export", "witness")
    truly = {name: witness.get(name, ("nothing", 0)) for name in found}
    odd = _not_files(found) + _not_files(truly)
    return "exported what is no plain file: %s" % odd[:5] if odd else None


@rule("export.refused")
def _export_refused(want, facts):
    witness, found = need(facts, "export", "witness"), need(facts, "export", "found")
    taken = []
    for name in want:
        harmless = witness.get(name) == ("file", 0)  # the guest was refused before the exporter was
        if name in found and not (harmless and found[name] == ("file", 0)):
            taken.append(name)
        elif name in witness and name not in found and name not in need(facts, "export", "errors"):
            taken.append(name + " (silently)")
    return "not refused: %s" % ", ".join(taken) if taken else None


@rule("export.names_roundtrip")
def _export_names_roundtrip(want, facts):
    """Every file that is there is listed and saved under exactly its name."""
    made = {name for name, (what, _) in need(facts, "export", "witness").items() if what == "file"}
    saved = set(need(facts, "export", "found"))
    listed = set(need(facts, "export", "changed")) | set(need(facts, "export", "saved"))
    lost = made - saved
    invented = saved - made
    unlisted = {name for name in made if repaired(name) not in listed}
    problem = [(word, sorted(names)[:4]) for word, names in
               (("lost", lost), ("invented", invented), ("not listed", unlisted)) if names]
    return "; ".join("%s %r" % pair for pair in problem) if problem else None


@rule("export.header_injection")
def _export_header_injection(want, facts):
    broken = not need(facts, "export", "one_line")
    return None if broken == want else "a name broke the line of the result"


@rule("export.max_ms")
def _export_max_ms(want, facts):
    return above("ms to export", need(facts, "export", "ms"), want)


@rule("export.never_block")
def _export_never_block(want, facts):
    return "the exporter blocked" if need(facts, "export", "blocked") else None


@rule("export.no_crash")
def _export_no_crash(want, facts):
    return "the exporter crashed" if need(facts, "export", "crashed") else None


@rule("export.listing_bounded")
def _export_listing_bounded(want, facts):
    listed = len(need(facts, "export", "changed"))
    made = re.search(r"DONE: (\d+) files", need(facts, "stdout"))
    if listed > LISTING_MAX:
        return "%d entries listed" % listed
    if made and listed < int(made[1]) and not need(facts, "export", "changed_cut"):
        return "%d of %s files listed without saying so" % (listed, made[1])
    return None


@rule("during.export_names")
def _during_export_names(want, facts):
    odd = _not_files(need(facts, "export", "found"))
    return "exported what is no plain file: %s" % odd[:5] if odd else None


@rule("during.attempts")
def _during_attempts(want, facts):
    """How many are enough depends on the harness: a run exports after the race, not in it."""
    return None if need(facts, "during", "attempts") > 0 else "nothing was exported"


@rule("upload")
def _upload(want, facts):
    """Archives stay archives: uploaded as they are, unpacked nowhere."""
    upload = need(facts, "upload")
    lost = [name for name in want["files"] if name not in need(upload, "arrived")]
    if lost:
        return "did not arrive: %s" % ", ".join(lost)
    if need(upload, "host_files"):
        return "unpacked on the host: %s" % ", ".join(upload["host_files"])
    unpacked = want.get("if_unpacked", {})
    if unpacked.get("no_file_outside") and need(upload, "outside"):
        return "files outside: %s" % ", ".join(upload["outside"])
    return above("bytes unpacked", need(upload, "bytes"), unpacked.get("max_bytes", 0))


# ---- many runs -------------------------------------------------------------------------------

@rule("distinct_across_runs")
def _distinct_across_runs(want, facts):
    values = need(facts, "repeated")
    if len(values) < want["runs"]:
        raise Unmeasured("%d runs, has %d" % (want["runs"], len(values)))
    wanted = want.get("keys", "all")
    keys = {key for value in values for key in value} if wanted == "all" else set(wanted)
    shared = [key for key in sorted(keys - set(want.get("informative_keys", [])))
              if not _all_distinct(values, key)]
    return "the same in several runs: %s" % ", ".join(shared) if shared else None


@rule("informative_distinct")
def _informative_distinct(want, facts):
    need(facts, "repeated")  # reported, never a failure
    return None


def _all_distinct(values, key):
    """Pairwise different; a source of chance that this host lacks is empty in every run."""
    have = [value.get(key) for value in values]
    if all(value in (None, "") for value in have):
        return True
    return len({repr(value) for value in have}) == len(have)


def _not_files(tree):
    return sorted(name for name, (what, _) in tree.items() if what != "file")


def differs(what, have, want):
    return None if have == want else "%s %s, want %s" % (what, have, want)


def above(what, have, limit):
    return None if have <= limit else "%s: %s, at most %s" % (what, _round(have), limit)


def _round(number):
    return round(number, 1) if isinstance(number, float) else number
