"""docs/sdk/PROMISES.md names tests: all of them are there."""
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "sdk" / "PROMISES.md"
COUNTS = {"S0": 29, "S1": 25, "S2": 38, "S3": 27, "S4": 40}


def rows():
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| S"):
            number, _, shown = [part.strip() for part in line.strip("|").split(" | ")]
            yield number, re.findall(r"`([^`]+)`", shown)


def test_every_promise_is_there():
    wanted = ["%s-%d" % (name, number) for name, count in COUNTS.items()
              for number in range(1, count + 1)]
    assert [number for number, _ in rows()] == wanted


def test_every_test_is_there():
    cases = {json.loads(line)["id"] for path in (ROOT / "tests/conformance/cases").glob("*.jsonl")
             for line in path.read_text(encoding="utf-8").splitlines() if line}
    for number, tests in rows():
        assert tests, number
        for name in tests:
            if "::" in name:
                file, function = name.split("::")
                assert "def %s(" % function in (ROOT / "sdk/python/tests" / file).read_text(encoding="utf-8"), name
            else:
                assert name in cases or (ROOT / name).exists(), name
