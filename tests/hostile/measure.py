"""measure - run one unit and write down every fact the judge may ask for."""
import json
import os
import re
import shutil
import subprocess
import threading
import time

import exports
import leftovers
from canary import PATTERN
from probes import Connector, Neighbour

FLAGS = {  # limits of the manifest: the flags that set them, and the unit
    "wall_s": (("--timeout",), ""), "cpu_s": (("--cpu-time",), ""),
    "memory_mb": (("--memory",), "m"), "pids": (("--processes",), ""),
    "nofile": (("--open-files",), ""), "disk_mb": (("--workspace", "--file-size"), "m"),
    "stdout_bytes": (("--output",), ""), "stderr_bytes": (("--output",), ""),
}
COMPILED_IN = {"-pthread", "-lm"}  # what the compile stage passes anyway
GROWTH_S = 0.7                     # a file that is still written grows within this time
HEAD_START_S = 1.5                 # of the first of two concurrent parts
RACE_ATTEMPTS = 10


class Skip(Exception):
    """This host cannot run the case; the reason is the text."""


class Bench:
    """What all measurements of one suite share."""

    def __init__(self, vial, directory, hello_rss_mb):
        self.vial = vial
        self.directory = directory
        self.hello_rss_mb = hello_rss_mb

    def fresh(self, *names):
        path = os.path.join(self.directory, *names)
        os.makedirs(path)
        os.chmod(path, 0o755)
        return path


def measure(bench, unit):
    """{id: facts} of the unit's tests."""
    leftovers.become_subreaper()
    home = bench.fresh(unit.name.replace("/", "+"))
    bench = Bench(bench.vial, home, bench.hello_rss_mb)
    kept = bench.fresh("kept") if "workspace kept" in unit.mode else None
    try:
        if "concurrent" in unit.mode:
            return _concurrent(bench, unit, kept)
        passing = _passing(bench, unit, kept)
        return {test["id"]: Case(bench, test, kept, passing=passing).facts()
                for test in unit.tests}
    finally:
        leftovers.end(leftovers.survivors())
        subprocess.run(["rm", "-rf", home], check=False)


def _passing(bench, unit, kept):
    """Where the first part leaves its session for the second; None: each has its own."""
    if not bench.vial.resets or kept or len(unit.tests) != 2:
        return None
    return os.path.join(bench.directory, "session")


def _concurrent(bench, unit, kept):
    """All parts at once; processes are counted when the last has ended."""
    facts = {}

    def part(test):
        facts[test["id"]] = Case(bench, test, kept, shared=True).facts()

    threads = [threading.Thread(target=part, args=(test,)) for test in unit.tests]
    for thread in threads:
        thread.start()
        time.sleep(HEAD_START_S)
    for thread in threads:
        thread.join()
    after = _processes_after(bench.vial)
    for test in unit.tests:
        facts.setdefault(test["id"], {}).setdefault("after", {}).update(after)
    return facts


def _processes_after(vial):
    taken, left = leftovers.wait_no_survivors(limit_s=3)
    leftovers.end(left)
    if vial.served:
        more, surplus = vial.served.wait_no_surplus(limit_s=3)
        taken, left = taken + more, {**left, **surplus}
    return {"survivors": left, "survivors_s": taken}


class Case:
    """One test and its runs."""

    def __init__(self, bench, test, workspace=None, shared=False, passing=None):
        self.bench = bench
        self.test = test
        self.want = test["expectation"]
        self.after = self.want.get("after", {})
        self.home = bench.fresh(test["id"])
        self.source = os.path.basename(test["path"])
        self.workspace = workspace
        self.shared = shared  # another part runs meanwhile
        self.passing = passing  # a file with the session's name
        self.runs = 0
        self.out = None       # where the attack's exports went
        self.witness = None   # {name: (kind, size)} of what the guest really made
        if "file_stops_growing" in self.after and not workspace:
            self.workspace = bench.fresh(test["id"], "workspace")

    def facts(self):
        before = leftovers.Snapshot() if "cleanup_ok" in self.after else None
        cores, objects = leftovers.core_files(), leftovers.ipc_objects()
        if exports.needs_witness(self.want):
            self.witness = self._call_witness()
        run, facts = self._attack()
        after = facts.setdefault("after", {})
        if not self.shared:
            after.update(_processes_after(self.bench.vial))
        if "file_stops_growing" in self.after:
            self._watch_file(after)
        after["core_files"] = sorted(leftovers.core_files() - cores) + _core_names(run)
        after["sysv_ipc"] = leftovers.ipc_objects() - objects
        if before:
            limit = self.after.get("cleanup_s_max", 3)
            after["cleanup_s"], after["leftovers"] = leftovers.wait_clean(before, limit)
        self._follow_up(facts)
        return facts

    def _attack(self):
        """The run itself, with what has to happen beside it."""
        during = self.want.get("during", {})
        neighbour = connector = None
        if "neighbour_p95_ms_max" in self.want:
            neighbour = Neighbour(self.bench.vial, self.home)
        if "host_connect_refused" in during:
            connector = Connector(during["host_connect_refused"])
        helpers = [helper for helper in (neighbour, connector) if helper]
        for helper in helpers:
            helper.start()
        out = self.out = self._export_directory()
        run = self._run(self._arguments(self.workspace, out))
        for helper in helpers:
            helper.stop()
        facts = self._describe(run)
        if out:
            facts["export"] = exports.collect(run, out, self.source)
            facts["export"]["witness"] = self.witness
            facts["canary_seen"] |= bool(PATTERN.search(facts["export"].get("content", b"")))
        if neighbour:
            facts["neighbour"] = neighbour.facts()
        if connector:
            facts["during"] = {"connects": connector.attempts}
        return run, facts

    def _follow_up(self, facts):
        """Further runs that some expectations need."""
        if "next_run_ok" in self.want:
            facts["next_run_ok"] = self._hello_works()
        if "export_names" in self.want.get("during", {}):
            self._race(facts)
        if "upload" in self.want:
            facts["upload"] = self._upload()
        repeat = self.want.get("distinct_across_runs") or self.want.get("informative_distinct")
        if repeat:
            facts["repeated"] = self._repeat(repeat["runs"], repeat["prefix"])

    # ---- one run ---------------------------------------------------------------------------

    def _run(self, arguments, limits=None):
        command = self._command(arguments)
        self.runs += 1
        wall_s = (limits or self.test.get("limits", {})).get("wall_s", 30)
        return self.bench.vial.run(command, os.path.join(self.home, "run%d" % self.runs), wall_s,
                                   terminal=self.test["class"] == "tty")

    def _command(self, arguments):
        vial, test = self.bench.vial, self.test
        flags = set(test.get("cflags", "").split())
        if test["language"] != "c" or flags <= COMPILED_IN or test["id"].startswith("SRC-"):
            return vial.command(test["language"], arguments, source=test["path"])
        upload = ["--file", "attack=" + self._compiled(sorted(flags))]
        return vial.command("bash", arguments + upload, code="chmod 700 attack && exec ./attack")

    def _compiled(self, flags):
        """A program that needs flags of its own is built out here, and only run in there."""
        path = os.path.join(self.home, "attack")
        command = ["cc", "-O1", "-static", "-o", path, self.test["path"]] + flags
        if not os.path.exists(path):
            built = subprocess.run(command, capture_output=True, text=True, check=False)
            if built.returncode:
                raise Skip("cc %s fails here: %s" % (" ".join(flags), built.stderr.strip()[:120]))
        return path

    def _arguments(self, workspace=None, out=None, limits=None):
        arguments = []
        for name, value in dict(self.test.get("limits", {}), **(limits or {})).items():
            names, unit = FLAGS[name]
            for flag in names:
                arguments += [flag, "%s%s" % (value, unit)]
        if self.test["class"] == "export-size":
            arguments += ["--file-size", "1t"]  # let the exporter meet the monster
        if workspace:
            arguments += ["--dir", workspace + ":rw"]
        if self.passing:
            arguments += ["--passing", self.passing]
        if out:
            for pattern in exports.patterns(self.want, self.witness):
                arguments += ["--export", pattern]
            arguments += ["--export-to", out]
        return arguments

    def _export_directory(self):
        if any(key in self.want for key in ("export", "upload")) or \
                "export_names" in self.want.get("during", {}):
            return self.bench.fresh(self.test["id"], "out%d" % self.runs)
        return None

    def _describe(self, run):
        result = run.result
        text = (result.get("stdout") or "") + (result.get("stderr") or "")
        return {
            "status": run.status, "exit_code": result.get("exit_code"),
            "signal": result.get("signal"), "stage": result.get("stage"),
            "stdout": result.get("stdout", ""), "stderr": result.get("stderr", ""),
            "truncated": bool(result.get("truncated")), "valid_json": bool(result),
            "wall_ms": run.wall_ms(), "reported_wall_ms": result.get("wall_ms"),
            "compile_ms": result.get("compile_ms"), "cpu_ms": result.get("cpu_ms"),
            "peak_memory": result.get("peak_memory"), "limit": result.get("limit"),
            "rss_growth_mb": max(run.rss_mb - self.bench.hello_rss_mb, run.daemon_mb),
            "why_here": run.why_here,
            "complaints": list(run.complaints),
            "canary_seen": bool(PATTERN.search(text.encode("utf-8", "replace"))),
        }

    # ---- what some cases need besides --------------------------------------------------------

    def _hello_works(self):
        self.runs += 1
        run = self.bench.vial.hello(os.path.join(self.home, "run%d" % self.runs))
        return run.says_hi()

    def _watch_file(self, after):
        path = os.path.join(self.workspace, self.after["file_stops_growing"])
        try:
            first = os.stat(path).st_size
            time.sleep(GROWTH_S)
            after["file_sizes"] = (first, os.stat(path).st_size)
        except OSError:
            pass  # unmeasured, and judged so

    def _call_witness(self):
        workspace = self.bench.fresh(self.test["id"], "witness")
        run = self._run(self._arguments(workspace))
        return exports.tree(workspace, self.source) if run.status == "exited" else None

    def _race(self, facts):
        """
        A run exports when its guests are dead, so there is no race to win; that must hold
        wherever in the middle of a swap the end finds them.
        """
        attempts = 0
        for _ in range(RACE_ATTEMPTS):
            out = self._export_directory()
            run = self._run(self._arguments(self.workspace, out, limits={"wall_s": 0.3}))
            found = exports.collect(run, out, self.source)
            if "found" in found:
                attempts += 1
                facts["export"].setdefault("found", {}).update(found["found"])
                facts["export"]["content"] = facts["export"].get("content", b"") + found["content"]
        facts["during"] = {"attempts": attempts}

    def _upload(self):
        """Send exported archives in again and see that they arrive whole and stay closed."""
        want = self.want["upload"]
        out = self.out
        files = [name for name in want["files"] if os.path.isfile(os.path.join(out, name))]
        arguments = []
        for name in files:
            arguments += ["--file", "%s=%s" % (name, os.path.join(out, name))]
        self.runs += 1
        run = self.bench.vial.run(self.bench.vial.command("python", arguments, code=_LISTING),
                                  os.path.join(self.home, "run%d" % self.runs))
        try:
            inside = json.loads(run.result.get("stdout", ""))
        except ValueError:
            return None
        sizes = {name: os.path.getsize(os.path.join(out, name)) for name in files}
        extra = {name: size for name, size in inside.items()
                 if name not in sizes and not re.match(r"main\.\w+$", name)}
        host_files = [path for path in want.get("host_absent", []) if os.path.lexists(path)]
        for path in host_files:
            os.unlink(path)
        return {"arrived": [name for name in files if inside.get(name) == sizes[name]],
                "bytes": sum(extra.values()), "host_files": host_files,
                "outside": [name for name in extra if "evil" in name] + _strays(self.home)}

    def _repeat(self, count, prefix):
        values = []
        for _ in range(count):
            run = self._run(self._arguments(self.workspace))
            for line in run.result.get("stdout", "").splitlines():
                if line.startswith(prefix):
                    values.append(json.loads(line[len(prefix):]))
            shutil.rmtree(os.path.join(self.home, "run%d" % self.runs), ignore_errors=True)
        return values


_LISTING = """import json, os
print(json.dumps({os.path.relpath(os.path.join(d, f)): os.path.getsize(os.path.join(d, f))
                  for d, _, files in os.walk(".") for f in files}))
"""


def _strays(home):
    """Members called evil*.txt that an unpacker let out, up to the parent of our directory."""
    top = os.path.dirname(os.path.dirname(home))
    return [name for directory in (home, os.path.dirname(home), top)
            for name in os.listdir(directory) if re.match(r"(\.\.\\)?evil\d?\.txt$", name)]


def _core_names(run):
    return [entry["path"] for entry in run.result.get("files_changed", [])
            if re.match(r"core(\.\d+)?$", os.path.basename(entry["path"]))]
