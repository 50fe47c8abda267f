"""report - progress while it runs, one line per failing case, one line at the end."""
import json
import sys

TEXT_MAX = 4000


class Report:
    def __init__(self, total, policy=False, in_session=False, stream=sys.stdout):
        self.total = total
        self.policy = policy  # one was in force
        self.in_session = in_session
        self.stream = stream
        self.live = stream.isatty()
        self.records = []
        self.counts = {"passed": 0, "failed": 0, "skipped": 0}

    def passed(self, test, facts, notes=()):
        self._add("passed", test, facts, list(notes))

    def failed(self, test, facts, reasons, notes=()):
        self._add("failed", test, facts, list(reasons) + list(notes))
        self.line("FAIL %-10s %-16s %-8s %s" % (test["id"], test["class"], test["severity"],
                                                "; ".join(reasons)))

    def skipped(self, test, reason):
        self._add("skipped", test, {}, [reason])

    def line(self, text):
        self._erase()
        print(text.encode("utf-8", "backslashreplace").decode(), file=self.stream, flush=True)

    def progress(self, running):
        if self.live:
            self._erase()
            done = sum(self.counts.values())
            self.stream.write("[%d/%d] %s" % (done, self.total, " ".join(running))[:100])
            self.stream.flush()

    def finish(self):
        """The last line; returns the exit status."""
        reasons = {}
        for record in self.records:
            if record["verdict"] == "skipped":
                reasons.setdefault(record["reasons"][0], []).append(record["id"])
        here = {}
        for record in self.records:
            if record["facts"].get("why_here"):
                here.setdefault(record["facts"]["why_here"], []).append(record["id"])
        for reason, ids in here.items():
            self.line("HERE %s: %s" % (", ".join(ids), reason))
        for reason, ids in reasons.items():
            self.line("SKIP %s: %s" % (", ".join(ids), reason))
        self.line("%(passed)d passed, %(failed)d failed, %(skipped)d skipped" % self.counts)
        return 1 if self.counts["failed"] or not self.counts["passed"] else 0

    def write_json(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.records, file, indent=1, default=_plain)
            file.write("\n")

    def _add(self, verdict, test, facts, reasons):
        self.counts[verdict] += 1
        self.records.append({"id": test["id"], "class": test["class"], "verdict": verdict,
                             "reasons": reasons, "facts": _shortened(facts)})

    def _erase(self):
        if self.live:
            self.stream.write("\r\033[K")


def _plain(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else sorted(value)


def _shortened(value):
    if isinstance(value, dict):
        items = list(value.items())[:200]
        return {key: _shortened(item) for key, item in items}
    if isinstance(value, (list, tuple, set)):
        return [_shortened(item) for item in list(value)[:200]]
    return value[:TEXT_MAX] if isinstance(value, (str, bytes)) else value
