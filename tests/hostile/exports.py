"""exports - what came out of a workspace, against what was in it.

The witness is the same case run before in a host directory, where everything the
guest made can be looked at directly: the truth that exports are compared with.
"""
import os
import re
import stat

PATTERNS = ("*", ".*", "*/*", "**/*")
BEHIND = ("/passwd", "/hostile_canary", "/etc/passwd", "/etc/hostile_canary")
PLAIN_NAME = re.compile(r"[\w./-]+$", re.ASCII)
FILE_MAX = 4 << 20     # bytes read of one exported file
TOTAL_MAX = 64 << 20


def patterns(expectation, witness):
    """Everything; by name what the manifest names; and through each link what may lie behind it."""
    named = list(expectation.get("export", {}).get("refused", []))
    named += expectation.get("during", {}).get("export_names", [])
    named += expectation.get("upload", {}).get("files", [])
    for name, (kind, _) in (witness or {}).items():
        if kind == "link" and PLAIN_NAME.match(name):
            named += [name] + [name + behind for behind in BEHIND]
    return list(PATTERNS) + named


def needs_witness(expectation):
    return any(key in expectation.get("export", {})
               for key in ("never_follow", "refused", "names_roundtrip"))


def collect(run, directory, source):
    """Facts about what `run` exported into `directory`; the program itself does not count."""
    facts = {"blocked": run.hung, "crashed": run.status in ("broken", "hung")}
    entries = run.result.get("exports")
    if entries is None:
        return facts
    found = tree(directory, source)
    changed = run.result.get("files_changed", [])
    return dict(facts, **{
        "ms": run.wall_ms() - (run.result.get("wall_ms") or 0),
        "one_line": run.line.count(b"\n") == 1,
        "saved": sorted({entry["path"] for entry in entries if entry.get("saved")}),
        "errors": {entry["path"]: entry["error"] for entry in entries if entry.get("error")},
        "found": found,
        "content": _content(directory, found),
        "changed": [entry["path"] for entry in changed],
        "changed_cut": bool(run.result.get("files_changed_cut")),
    })


def tree(directory, source):
    """{relative name: (kind, size)} of all but directories; odd bytes of names are surrogates."""
    found = {}
    for base, directories, files in os.walk(directory):
        links = [name for name in directories if os.path.islink(os.path.join(base, name))]
        for name in files + links:
            path = os.path.join(base, name)
            status = os.lstat(path)
            found[os.path.relpath(path, directory)] = (_kind(status.st_mode), status.st_size)
    found.pop(source, None)
    return found


def repaired(name):
    """A name as a result shows it: bytes that are not UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def _kind(mode):
    return "file" if stat.S_ISREG(mode) else "link" if stat.S_ISLNK(mode) else "special"


def _content(directory, found):
    content, total = [], 0
    for name, (kind, _) in found.items():
        if kind == "file" and total < TOTAL_MAX:
            with open(os.path.join(directory, name), "rb") as file:
                content.append(file.read(FILE_MAX))
            total += len(content[-1])
    return b"\n".join(content)
