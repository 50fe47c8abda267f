"""Batches: many runs in one request, with a verdict each."""
import asyncio

import pytest

import vial

ECHO = "print(input())"


def test_verdicts(sandbox):
    batch = sandbox.batch(ECHO, [("1", "1"), ("2", "3"), {"stdin": "x", "label": "any"}])
    assert [one.verdict for one in batch] == ["accepted", "wrong_answer", "accepted"]
    assert (batch.verdict, batch.accepted, batch.first_failure, len(batch)) == ("wrong_answer", 2, 1, 3)
    assert not batch.ok and not batch[1].ok and batch[2].label == "any"
    assert batch[1].difference == vial.Difference(1, 1, "3", "2")
    assert batch[0].result.stdout == "1\n" and batch[0].result.id


def test_everything_that_can_be_given(sandbox):
    batch = sandbox.batch(None, [
        {"code": "print(open('a').read())", "files": {"a": b"\xc3\xa4"}, "expected": "ä"},
        {"code": "import sys; print(sys.stdin.buffer.read())", "stdin": b"\xff", "expected": "b'\\xff'"},
        {"code": "print(0.30000001)", "expected": "0.3", "compare": "floats"},
        {"code": "while True: pass", "timeout": 0.2},
        {"code": "print(1)"}], parallel=1, stop_on_failure=True, detail="failures",
        limits={"memory": "128m"}, env={"A": "b"})
    assert [one.verdict for one in batch] == ["accepted"] * 3 + ["time_limit", "skipped"]
    assert [one.result is not None for one in batch] == [False] * 3 + [True, False]
    assert batch.verdicts == {"accepted": 3, "time_limit": 1, "skipped": 1}


def test_asynchronous(daemon):
    async def judge():
        async with vial.AsyncSandbox(daemon) as sandbox:
            return await sandbox.batch(ECHO, [("1", "1")] * 5)
    assert asyncio.run(judge()).ok


def test_refusals(sandbox):
    with pytest.raises(vial.InvalidRequest) as caught:
        sandbox.batch(ECHO, [{"nosuch": 1}])
    assert caught.value.field == "runs[0].nosuch"
