"""vial - run code you did not write, in sandboxes made by the Linux kernel.

    import vial

    print(vial.run("print(6 * 7)").stdout)

    with vial.Sandbox().session() as session:
        session.run("x = 6")
        print(session.run("x * 7").value)

The classes of other sandboxes, on top of this one, are in vial.agentfly, vial.toolweaver,
vial.nemo, vial.claw and vial.codemie.
"""
from __future__ import annotations

import functools
from typing import Any

from ._default import default
from ._steps import Checkpoint
from .aio import AsyncSandbox, AsyncSession
from .batch import Batch, Difference, Judged
from .client import Sandbox, Session
from .environments import BuildProgress, build_environment
from .errors import (
    APIError,
    Busy,
    DaemonError,
    Denied,
    InvalidRequest,
    NotFound,
    RemoteError,
    RequestTimeout,
    ServerFault,
    ServerUnavailable,
    TooLarge,
    VialError,
)
from .events import Call, Display, Event, Finished, Output, Started
from .files import AsyncSessionFiles, FileInfo, SessionFiles
from .results import ChangedFile, ExceptionInfo, ExportedFile, Frame, Network, Refusal, Result
from .rich import Opaque, Rich
from .streams import AsyncStream, Stream


def run(code: str, language: str = "python", **options: Any) -> Result:
    """Sandbox.run() of this process's default sandbox."""
    return default().run(code, language, **options)


@functools.cache
def _find_version() -> str:
    from importlib import metadata
    try:
        return metadata.version("vial")
    except metadata.PackageNotFoundError:
        return "unknown"  # not installed: run from its source


def __getattr__(name: str) -> Any:
    if name == "__version__":  # found out when somebody asks: that takes time
        return _find_version()
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


__all__ = [
    "APIError", "AsyncSandbox", "AsyncSession", "AsyncSessionFiles", "AsyncStream", "Batch",
    "BuildProgress", "Busy", "Call", "ChangedFile", "Checkpoint", "DaemonError", "Denied",
    "Difference", "Display", "Event", "ExceptionInfo", "ExportedFile", "FileInfo", "Finished",
    "Frame", "InvalidRequest", "Judged", "Network", "NotFound", "Opaque", "Output", "Refusal",
    "RemoteError", "RequestTimeout", "Result", "Rich", "Sandbox", "ServerFault",
    "ServerUnavailable", "Session", "SessionFiles", "Started", "Stream", "TooLarge", "VialError",
    "build_environment", "default", "run",
]
