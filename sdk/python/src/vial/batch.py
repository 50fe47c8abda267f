"""batch - many runs in one request, and the verdicts on them (docs/API.md)."""
from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from ._request import file_list, merge_limits, without_none
from .results import Result, parse_result

Text = Union[str, bytes, None]
# (stdin, expected), or any members of a run, and `expected`, `label`, `compare`, `tolerance`.
Case = Union[Mapping[str, Any], Tuple[Text, Text]]


@dataclass(frozen=True)
class Difference:
    """Where an output first leaves what was expected; None: it has ended there."""

    line: int
    column: int
    expected: Optional[str]
    got: Optional[str]


@dataclass(frozen=True)
class Judged:
    """One run of a batch."""

    index: int
    verdict: str
    label: Optional[str] = None
    difference: Optional[Difference] = None
    result: Optional[Result] = None
    error: Optional[str] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        return self.verdict == "accepted"


@dataclass(frozen=True)
class Batch:
    """All runs of a batch, in the order in which they were given."""

    results: List[Judged]
    verdict: str
    verdicts: Dict[str, int]
    first_failure: Optional[int] = None
    max_wall_ms: float = 0.0
    max_cpu_ms: float = 0.0
    max_memory: Optional[int] = None
    raw: Dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def ok(self) -> bool:
        """Whether all were accepted."""
        return self.verdict == "accepted"

    @property
    def accepted(self) -> int:
        """How many were."""
        return self.verdicts.get("accepted", 0)

    def __iter__(self) -> Iterator[Judged]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Judged:
        return self.results[index]


def _put(body: Dict[str, Any], name: str, text: Text) -> None:
    if isinstance(text, bytes):
        body[name + "_base64"] = base64.b64encode(text).decode("ascii")
    elif text is not None:
        body[name] = text


def _case_body(case: Case) -> Dict[str, Any]:
    if not isinstance(case, Mapping):
        stdin, expected = case
        case = {"stdin": stdin, "expected": expected}
    body = {name: value for name, value in case.items()
            if name not in ("stdin", "expected", "files", "limits", "timeout")}
    for name in ("stdin", "expected"):
        _put(body, name, case.get(name))
    body["files"] = file_list(case.get("files"))
    body["limits"] = merge_limits(case.get("limits"), timeout=case.get("timeout")) or None
    return without_none(body)


def batch_body(shared: Dict[str, Any], runs: Sequence[Case], *, compare: Optional[str],
               tolerance: Optional[float], parallel: Optional[int], stop_on_failure: bool,
               detail: Optional[str]) -> Dict[str, Any]:
    return without_none({
        **shared, "runs": [_case_body(case) for case in runs], "compare": compare,
        "tolerance": tolerance, "parallel": parallel, "detail": detail,
        "stop_on_failure": stop_on_failure or None})


def _parse_judged(data: Dict[str, Any]) -> Judged:
    difference, result, error = data.get("difference"), data.get("result"), data.get("error")
    return Judged(
        index=int(data.get("index") or 0), verdict=str(data.get("verdict")),
        label=data.get("label"),
        difference=Difference(int(difference["line"]), int(difference["column"]),
                              difference.get("expected"), difference.get("got"))
        if isinstance(difference, dict) else None,
        result=parse_result(result, id=data.get("id")) if isinstance(result, dict) else None,
        error=str(error.get("message")) if isinstance(error, dict) else None, raw=data)


def parse_batch(data: Dict[str, Any]) -> Batch:
    """Of the server's JSON.  Members that are new to us stay in `raw`."""
    summary = data.get("summary") or {}
    return Batch(results=[_parse_judged(item) for item in data.get("results") or ()],
                 verdict=str(summary.get("verdict")), verdicts=dict(summary.get("verdicts") or {}),
                 first_failure=summary.get("first_failure"),
                 max_wall_ms=summary.get("max_wall_ms") or 0.0,
                 max_cpu_ms=summary.get("max_cpu_ms") or 0.0,
                 max_memory=summary.get("max_memory"), raw=data)
