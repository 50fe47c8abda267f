"""_default - the clients that are used when none is given, one of each kind per process."""
from __future__ import annotations

import functools
from typing import Iterable, Optional

from .aio import AsyncSandbox
from .client import Sandbox


@functools.cache
def default() -> Sandbox:
    """This process's default sandbox."""
    return Sandbox()


@functools.cache
def default_async() -> AsyncSandbox:
    return AsyncSandbox()


def pick_environment(there: Iterable[str], wanted: Iterable[str]) -> Optional[str]:
    """The first of those wanted that is there."""
    names = set(there)
    return next((name for name in wanted if name in names), None)
