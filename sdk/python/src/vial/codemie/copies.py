"""copies - programs that run in a copy of their user's directory.

A sandbox that has the directory itself is made for one program, and starts an interpreter for it. A
server's are warm: they take files with the program, and hand back what it made of them. Who does
no more than read and write files cannot tell the two apart.
"""
from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import replace
from typing import Any, Mapping

from ..client import Sandbox
from ..results import Result
from .beneath import names_beneath, read_beneath, remove_beneath, write_beneath

PROGRAM = ".main.py"  # beside the user's files, and none of them
PLACE = "/sandbox"  # of a copy
PROGRAM_THERE = "/run/vial/main.py"  # what it is called beside the directory itself
DEPTH = 6
CHANGED = [dot + "*" + "/*" * depth for depth in range(DEPTH) for dot in ("", ".")]
FILES_MAX = 64
BYTES_MAX = 1 << 20         # more is quicker left where it is,
BYTES_LOADED_MAX = 4 << 20  # unless there is an import to be saved

# What warm interpreters have loaded, and others would have to.
_LOADED = re.compile(r"\b(?:pandas|numpy|matplotlib)\b")

# What sees more of a directory than its files, or leaves other things in it: a mention will do.
_MORE = re.compile(
    r"(?<![A-Za-z0-9])_*(?:os|posix|sys|pathlib|shutil|glob|subprocess|tempfile|inspect|importlib|"
    r"pkgutil|runpy|zipfile|tarfile|py7zr|ctypes|builtins|file__|show|posixpath|genericpath|ntpath|"
    r"memmap|baseFilename|database_list)(?![A-Za-z0-9])")


def will_do(code: str, workdir: str, directory: str) -> bool:
    """Whether a copy is as good for this program, and soon made."""
    most = BYTES_LOADED_MAX if _LOADED.search(code) else BYTES_MAX
    return not _MORE.search(code) and workdir not in code and PLACE not in code \
        and _is_plain(directory, most)


def _is_plain(directory: str, most: int) -> bool:
    """Few small files, and nothing that a copy would not have."""
    count = size = 0
    for folder, folders, names in os.walk(directory, followlinks=False):
        if folder != directory and not folders and not names:
            return False  # it would not be there
        for name in folders + names:
            told = os.lstat(os.path.join(folder, name))
            is_file = stat.S_ISREG(told.st_mode)
            count += 1
            size += told.st_size if is_file else 0
            if (is_file and told.st_mode & 0o111) or not (is_file or stat.S_ISDIR(told.st_mode)) \
                    or set("*?\\") & set(name) or not name.isprintable() \
                    or count > FILES_MAX or size > most:
                return False
    return True


def _as_there(text: str) -> str:
    """What a traceback says, as it would be said beside the directory itself."""
    return text.replace("%s/%s" % (PLACE, PROGRAM), PROGRAM_THERE)


class Trial:
    """A program that ran in a copy.  Nothing of what it did is in the directory yet."""

    def __init__(self, client: Sandbox, code: str, directory: str, options: Mapping[str, Any]
                 ) -> None:
        self._directory = directory
        self._before = {name: read_beneath(directory, name) for name in names_beneath(directory)}
        result = client.run(code, name=PROGRAM, files=self._before,
                            exports=[*self._before, *CHANGED], **options)
        self.result = replace(result, stdout=_as_there(result.stdout),
                              stderr=_as_there(result.stderr))
        self._after = {item.path: item.content for item in self.result.exports
                       if item.path != PROGRAM}

    @property
    def is_whole(self) -> bool:
        """Whether keep() keeps everything."""
        changed = {item.path for item in self.result.files_changed} - {PROGRAM}
        return not self.result.files_changed_cut \
            and all(self._after.get(path) is not None for path in changed)

    @property
    def is_same(self) -> bool:
        """Whether it would have ended like this in the directory itself, where files take no
        memory."""
        return self.is_whole and not (self.result.oom and self.result.signal is not None) \
            and not self._shows_its_place()

    def _shows_its_place(self) -> bool:
        """Whether it says anywhere what its directory is called, which the user's is not."""
        changed = (content for path, content in self._after.items()
                   if content is not None and content != self._before.get(path)
                   and "__pycache__" not in path)
        return PLACE in self.result.stdout or PLACE in self.result.stderr \
            or any(PLACE.encode() in content for content in changed)

    def keep(self) -> Result:
        """Do to the directory what was done to the copy."""
        changed = {item.path for item in self.result.files_changed}
        for path, content in self._after.items():
            if content is None and path not in changed:
                with contextlib.suppress(OSError):
                    remove_beneath(self._directory, path)
        for path, content in self._after.items():
            if content is not None and self._before.get(path) != content:
                write_beneath(self._directory, path, content)
        return self.result
