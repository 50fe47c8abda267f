#!/usr/bin/env python3
"""Write MANIFEST.json from the header comments of the cases, which are the source of truth.

    manifest.py [DIR]           check that the manifest says what the headers say
    manifest.py --write [DIR]   make it so (what earlier self checks found is kept)
"""
import collections
import glob
import hashlib
import json
import os
import re
import sys

KINDS = ("contained", "timeout", "memory", "killed", "truncated", "ok")
HEADER = re.compile(r"(?:#|//) (id|title|class|lang|expect|severity|part|limits|checks|cflags"
                    r"|bounds|why): (.*)")
PART = re.compile(r"(\w) of (\S+)(?: \((.*)\))?")


def read_header(raw):
    header = {}
    for line in raw[:6000].decode("utf-8", "replace").splitlines():
        found = HEADER.match(line)
        if found:
            header.setdefault(found[1], found[2])
        elif header and not line.startswith(("#", "//")):
            break
    return header


def describe(path):
    """The manifest's entry for one file."""
    with open(path, "rb") as file:
        raw = file.read()
    header = read_header(raw)
    kinds = header["expect"].split("|")
    unknown = set(kinds) - set(KINDS)
    if unknown:
        raise ValueError("%s: unknown kind %s" % (path, ", ".join(unknown)))
    expectation = {"kind": kinds[0], "any_of": kinds, "must_not_print": "ESCAPED"}
    if kinds == ["contained"]:
        expectation["must_print"] = "^CONTAINED:"
    expectation.update(json.loads(header.get("checks", "{}")))
    test = {"id": header["id"], "file": "cases/" + os.path.basename(path),
            "language": header["lang"], "severity": header["severity"], "title": header["title"],
            "class": header["class"], "expectation": expectation}
    if "limits" in header:
        test["limits"] = json.loads(header["limits"])
    if "cflags" in header:
        test["cflags"] = header["cflags"]
    if "part" in header:
        test["part"], test["pair"], test["pair_mode"] = PART.match(header["part"]).groups()
    test["bounds"], test["why"] = header.get("bounds", ""), header.get("why", "")
    test["sha256"] = hashlib.sha256(raw).hexdigest()
    return test


def build(directory, old):
    """A manifest as the cases describe themselves, with the old one's contract and self checks."""
    checked = {test["id"]: test["self_check"] for test in old["tests"] if "self_check" in test}
    tests = [describe(path) for path in sorted(glob.glob(os.path.join(directory, "cases", "*")))]
    for test in tests:
        if test["id"] in checked:
            test["self_check"] = checked[test["id"]]
    tests.sort(key=lambda test: test["id"])
    return {"version": 1, "count": len(tests), "contract": old["contract"],
            "classes": collections.Counter(test["class"] for test in tests),
            "languages": collections.Counter(test["language"] for test in tests), "tests": tests}


def main():
    write = "--write" in sys.argv
    rest = [word for word in sys.argv[1:] if word != "--write"]
    directory = rest[0] if rest else os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(directory, "MANIFEST.json")
    with open(path, encoding="utf-8") as file:
        old = json.load(file)
    new = build(directory, old)
    if write:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(new, file, indent=1)
            file.write("\n")
    elif new != old:
        sys.exit("%s is not what the cases say: run manifest.py --write" % path)


if __name__ == "__main__":
    main()
