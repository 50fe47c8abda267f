"""_default - the clients that are used when none is given, one of each kind per process."""
from __future__ import annotations

import asyncio
import contextlib
import functools
import weakref
from typing import Any, Iterable, List, Mapping, MutableMapping, Optional

from . import errors
from .aio import AsyncSandbox, AsyncSession
from .client import Sandbox
from .results import Result


@functools.cache
def default() -> Sandbox:
    """This process's default sandbox."""
    return Sandbox()


@functools.cache
def default_async() -> AsyncSandbox:
    return AsyncSandbox()


def close_with(owner: Any, address: str, session: str) -> None:
    """When nobody has closed the session of an object, close it when the object goes."""
    weakref.finalize(owner, _close_quietly, address, session)


def _close_quietly(address: str, session: str) -> None:
    try:
        Sandbox(address, retries=0).close_session(session)
    except errors.VialError:
        pass  # it is closed, or its server is gone


async def run_or_interrupt(session: AsyncSession, code: str, **options: Any) -> Result:
    """A step that ends when whoever awaits it is cancelled, as a coroutine of one's own would.

    Not so where more than one is waited for: it would not be known whose step is under way.
    """
    waiting = _waiting.setdefault(session, [])
    waiting.append(code)
    try:
        return await session.run(code, **options)
    except asyncio.CancelledError:
        if len(waiting) == 1:
            with contextlib.suppress(errors.VialError):
                await asyncio.shield(session.interrupt())
        raise
    finally:
        waiting.remove(code)


_waiting: MutableMapping[AsyncSession, List[str]] = weakref.WeakKeyDictionary()


def pick_environment(there: Iterable[str], wanted: Iterable[str]) -> Optional[str]:
    """The first of those wanted that is there."""
    names = set(there)
    return next((name for name in wanted if name in names), None)


def pick_image(there: Iterable[Mapping[str, Any]], image: str, usual: str,
               wanted: Iterable[str]) -> Optional[str]:
    """The environment that is made of an image: by its reference, which the server looks up.

    The usual image need not be there: what is wanted has what it has.
    """
    items = list(there)
    if not image or (image == usual and all(item.get("image") != image for item in items)):
        return pick_environment((item["name"] for item in items), wanted)
    return image
