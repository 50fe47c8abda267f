"""suite - a directory of hostile cases: MANIFEST.json and the files it names.

A unit is what runs together: one case, or the parts of a pair in their order.
"""
import hashlib
import json
import os


class SuiteError(Exception):
    """The directory is not what the manifest says."""


class Unit:
    """One case, or several that are parts of one attack."""

    def __init__(self, name, tests):
        self.name = name
        self.tests = tests

    @property
    def mode(self):
        return self.tests[0].get("pair_mode") or ""

    def expects(self, *path):
        """Does any part expect something of this key?  expects("after", "cleanup_ok")"""
        for test in self.tests:
            node = test["expectation"]
            for key in path:
                node = node.get(key) if isinstance(node, dict) else None
            if node is not None:
                return True
        return False

    def runs_alone(self):
        """What it measures belongs to the whole host, so nothing else may run meanwhile."""
        return (self.expects("neighbour_p95_ms_max") or self.expects("after", "cleanup_ok")
                or self.expects("after", "no_sysv_ipc"))

    def weight(self):
        """Roughly how long it takes: the longest are started first."""
        runs = [self.tests[0]["expectation"].get(key, {}).get("runs", 0)
                for key in ("distinct_across_runs", "informative_distinct")]
        return max(runs) / 4 + sum(test.get("limits", {}).get("wall_s", 1) for test in self.tests)


def load(directory):
    """The manifest's tests, each with `path`; every file is what its checksum says."""
    try:
        with open(os.path.join(directory, "MANIFEST.json"), encoding="utf-8") as file:
            tests = json.load(file)["tests"]
    except (OSError, ValueError, KeyError) as error:
        raise SuiteError("%s: no usable MANIFEST.json: %s" % (directory, error))
    for test in tests:
        path = test["path"] = os.path.join(os.path.abspath(directory), test["file"])
        try:
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
        except OSError as error:
            raise SuiteError("%s: %s" % (test["id"], error))
        if digest != test["sha256"]:
            raise SuiteError("%s: %s is not the file the manifest was made from" %
                             (test["id"], test["file"]))
    return tests


def units(tests, only=(), classes=()):
    """Group the selected tests; choosing one part of a pair chooses all of them."""
    grouped = {}
    for test in tests:
        grouped.setdefault(test.get("pair") or test["id"], []).append(test)
    chosen = []
    for name, parts in grouped.items():
        parts.sort(key=lambda test: test.get("part") or "")
        if only and not any(test["id"] in only for test in parts):
            continue
        if classes and not any(test["class"] in classes for test in parts):
            continue
        chosen.append(Unit(name, parts))
    unknown = set(only) - {test["id"] for test in tests}
    if unknown:
        raise SuiteError("no such case: %s" % ", ".join(sorted(unknown)))
    return chosen
