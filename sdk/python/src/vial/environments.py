"""environments - what code finds inside, built on this machine (docs/ENVIRONMENTS.md).

    vial.build_environment("plots", ["numpy", "matplotlib"], preload=["numpy"],
                           progress=lambda at: print(at.step, at.done, "of", at.total, at.what))
    vial.run("import numpy", environment="plots")
"""
from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from typing import Callable, List, NamedTuple, Optional, Sequence, Union

from . import _daemon
from ._command import failure
from .client import Sandbox
from .errors import DaemonError

logger = logging.getLogger(__name__)

_LINE = re.compile(r"[^:]+: (\S+)(?: (\d+)(?:/(\d+))?)?(?: (.*))?")
_SAME = "nothing to do"


class BuildProgress(NamedTuple):
    """How far a build is."""

    step: str   # "prepare", "resolve", "install", "compile"...
    done: int   # of the step
    total: int  # 0: not known
    what: str   # a package, a file; or ""


Requirements = Union[str, "os.PathLike[str]", Sequence[str]]


def build_environment(name: str, requirements: Optional[Requirements] = None, *,
                      image: Optional[str] = None, preload: Sequence[str] = (),
                      find_links: Sequence[str] = (), no_index: bool = False,
                      locked: bool = False, source: bool = False, force: bool = False,
                      config: Optional[str] = None,
                      progress: Optional[Callable[[BuildProgress], None]] = None) -> bool:
    """Build an environment on this machine, as `vial env build` does.

    A daemon has the environments that were there when it started. The private one of this process
    is replaced, unless it has sessions.

    Args:
        requirements: what pip shall install: a list, or the path of a file or directory. Default:
            `name` is one that vial ships, or one to build again.
        image: a container image instead: a tar, an OCI layout, or a name.
        preload: modules that a warm interpreter has imported.
        find_links, no_index: directories of wheels; and no others.
        locked: install exactly the versions of its lock.
        source: packages without a wheel may be built; their code runs, in a sandbox.
        force: build it even when it is there and the same.
        config: the operator's configuration.
        progress: is told what happens. What it raises ends the build, and is raised here.

    Returns:
        Whether there was something to do.

    Raises:
        InvalidRequest: an argument is wrong.
        ServerFault: the build failed; the text says why.
    """
    with tempfile.TemporaryDirectory(prefix="vial-build-") as scratch:
        argv = _argv(name, requirements, scratch, image=image, find_links=find_links,
                     preload=",".join(preload) or None, config=config)
        argv[3:3] = [option for option, is_on in (
            ("--no-index", no_index), ("--locked", locked), ("--source", source),
            ("--force", force)) if is_on]
        is_new = _build(argv, progress)
    if is_new:
        _replace_private()
    return is_new


def _argv(name: str, requirements: Optional[Requirements], scratch: str, *, image: Optional[str],
          find_links: Sequence[str], preload: Optional[str], config: Optional[str]) -> List[str]:
    binary = _daemon.find_binary()
    if binary is None:
        raise DaemonError("there is no vial command: install vial, or set VIAL_BINARY")
    argv = [binary, "env", "build"]
    for option, value in (("--image", image), ("--preload", preload), ("--config", config)):
        if value is not None:
            argv += [option, value]
    for folder in find_links:
        argv += ["--find-links", os.fspath(folder)]
    argv += ["--", name]
    if isinstance(requirements, (str, os.PathLike)):
        argv.append(os.fspath(requirements))
    elif requirements is not None:
        argv.append(os.path.join(scratch, "requirements.txt"))
        with open(argv[-1], "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in requirements)
    return argv


def _build(argv: List[str], progress: Optional[Callable[[BuildProgress], None]]) -> bool:
    said = ""
    with tempfile.TemporaryFile() as errors, \
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
                             text=True, errors="replace") as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said = line.strip()
                found = _LINE.fullmatch(said)
                if progress is not None and found is not None:
                    step, done, total, what = found.groups()
                    progress(BuildProgress(step, int(done or 0), int(total or 0), what or ""))
        except BaseException:
            process.terminate()  # what it has made so far is removed by itself
            raise
        status = process.wait()
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace").strip()
    if status != 0:
        raise failure(status, text.rpartition("\nvial: ")[2])
    return not said.endswith(_SAME)


def _replace_private() -> None:
    if not _daemon.is_running():
        return
    if Sandbox(_daemon.private_socket()).sessions():
        logger.warning("the private daemon has sessions, and does not know the new environment")
    else:
        _daemon.stop_private()
