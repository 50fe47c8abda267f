"""_tree - directories of this machine as tar, and back.

What comes back was written by a program that nobody trusts: nothing is written outside of the
directory, nothing through a link, and links are made last, of those only that lead to something
inside.
"""
from __future__ import annotations

import os
import stat
import tarfile
from typing import IO, BinaryIO, Iterator, List, Optional, Tuple, cast

BLOCK = tarfile.BLOCKSIZE


def _entry(name: str, status: os.stat_result, target: Optional[str]) -> bytes:
    info = tarfile.TarInfo(name)
    info.mode = stat.S_IMODE(status.st_mode) & 0o777
    info.mtime = int(status.st_mtime)
    if stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif target is not None:
        info.type, info.linkname = tarfile.SYMTYPE, target
    else:
        info.size = status.st_size
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _walk(root: str) -> Iterator[Tuple[str, str, os.stat_result]]:
    """(name below, path, status), directories first; what is no file is left out."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(os.path.join(root, below)) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                status = entry.stat(follow_symlinks=False)
                name = "%s/%s" % (below, entry.name) if below else entry.name
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(name)
                elif not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
                    continue
                yield name, entry.path, status


class TreeSource:
    """A directory, packed while it is sent."""

    can_repeat = True

    def __init__(self, root: str) -> None:
        self._entries: List[Tuple[bytes, Optional[str], int]] = []
        self.total: Optional[int] = 2 * BLOCK
        for name, path, status in _walk(root):
            is_link = stat.S_ISLNK(status.st_mode)
            head = _entry(name, status, os.readlink(path) if is_link else None)
            size = status.st_size if stat.S_ISREG(status.st_mode) else 0
            self._entries.append((head, path if size else None, size))
            self.total += len(head) + size + -size % BLOCK
        self._pieces: Iterator[bytes] = iter(())
        self._rest = b""

    def start(self) -> None:
        self._pieces, self._rest = self._make(), b""

    def _make(self) -> Iterator[bytes]:
        for head, path, size in self._entries:
            yield head
            if path is None:
                continue
            left = size
            with open(path, "rb") as file:
                while left:
                    piece = file.read(min(left, 1 << 18))
                    if not piece:
                        raise OSError("%s became shorter while it was sent" % path)
                    left -= len(piece)
                    yield piece
            yield b"\0" * (-size % BLOCK)
        yield b"\0" * (2 * BLOCK)

    def read(self, size: int) -> bytes:
        while len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._rest += piece
        piece, self._rest = self._rest[:size], self._rest[size:]
        return piece


def _parts(name: str) -> List[str]:
    """Of a name that leads down; else ValueError."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError("%r leads out of the directory" % name)
    return parts


def _leads_inside(parts: List[str], target: str) -> bool:
    """Up by no more than there is, then only down: no other link can bend that."""
    steps = [step for step in target.split("/") if step not in ("", ".")]
    ups = next((i for i, step in enumerate(steps) if step != ".."), len(steps))
    return not target.startswith("/") and ups < len(parts) and ".." not in steps[ups:]


class Unpacker:
    """Makes what a tar says, below a directory."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.made: List[str] = []
        self._links: List[Tuple[List[str], str]] = []

    def _hold(self, parts: List[str]) -> str:
        """The directory of these parts, made if need be; none of them is a link."""
        path = self._root
        for part in parts:
            path = os.path.join(path, part)
            if os.path.islink(path):
                raise ValueError("%s is a link, and is not followed" % path)
            if not os.path.isdir(path):
                os.mkdir(path)
        return path

    def _place(self, parts: List[str]) -> str:
        """Where a file goes; what is there but a directory makes room."""
        path = os.path.join(self._hold(parts[:-1]), parts[-1])
        if os.path.lexists(path) and not (os.path.isdir(path) and not os.path.islink(path)):
            os.unlink(path)
        return path

    def _add_file(self, parts: List[str], member: tarfile.TarInfo, content: IO[bytes]) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with open(os.open(self._place(parts), flags, (member.mode & 0o777) | 0o600), "wb") as file:
            while piece := content.read(1 << 18):
                file.write(piece)
        self.made.append("/".join(parts))

    def _add(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if member.isdir():
            self._hold(parts)
        elif member.isreg() and parts:
            self._add_file(parts, member, cast(IO[bytes], tar.extractfile(member)))
        elif member.issym() and parts and _leads_inside(parts, member.linkname):
            self._links.append((parts, member.linkname))

    def unpack(self, packed: BinaryIO) -> None:
        os.makedirs(self._root, exist_ok=True)
        with tarfile.open(fileobj=packed, mode="r|", encoding="utf-8",
                          errors="surrogateescape") as tar:
            for member in tar:
                self._add(tar, member)
        for parts, target in self._links:
            path = self._place(parts)
            if not os.path.isdir(path):
                os.symlink(target, path)
                self.made.append("/".join(parts))
