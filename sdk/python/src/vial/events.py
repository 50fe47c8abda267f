"""events - what a stream tells while a program runs."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Union

from .results import Result
from .rich import Rich


@dataclass(frozen=True)
class Started:
    """It runs, under this id."""

    id: str


@dataclass(frozen=True)
class Output:
    """It has printed something.  `stream` is "stdout" or "stderr"."""

    stream: str
    data: str


@dataclass(frozen=True)
class Display:
    """It has shown something: a figure, a table, what it gave to display()."""

    data: Rich


@dataclass(frozen=True)
class Call:
    """It calls one of the caller's functions."""

    call: int
    name: str
    args: List[Any]
    kwargs: Dict[str, Any]


@dataclass(frozen=True)
class Finished:
    """It is over."""

    result: Result


Event = Union[Started, Output, Display, Call, Finished]
