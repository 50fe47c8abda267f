"""files - the files of a session, for programs of both kinds.

    with sandbox.session() as session:
        session.files.upload("data.csv")
        session.run("import pandas; pandas.read_csv('data.csv').describe().to_csv('out.csv')")
        session.files.download("out.csv")

Names are relative to the workspace.  A session that is reset, or loses its interpreter, has a fresh
workspace: only the files that it was made with are in it.
"""
from __future__ import annotations

from typing import List, Optional, Union

from ._exchange import Progress
from ._files import FileInfo, FilesCore, Local, Path
from ._net import now


class SessionFiles:
    """Of one session: `session.files`."""

    def __init__(self, core: FilesCore) -> None:
        self._core = core

    def write(self, path: str, content: Union[str, bytes], *, mode: Optional[int] = None) -> int:
        """Put a file there, made of text or bytes; returns its size.

        Directories on the way are made. The file has its name only when all of it is there.
        `mode` is 0o644 by default.
        """
        return now(self._core.write(path, content, mode))

    def read(self, path: str) -> bytes:
        """All of a file.  Large ones are better downloaded."""
        return now(self._core.read(path))

    def list(self, path: str = "", *,
             recursive: bool = False, limit: Optional[int] = None) -> List[FileInfo]:
        """What is in a directory, sorted by path; "" is the workspace."""
        return now(self._core.list(path, recursive, limit))

    def make_dir(self, path: str) -> None:
        """Make a directory, and those on the way to it.  One that is there is fine."""
        now(self._core.make_dir(path))

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, a link, or a directory: one with something in it only if `recursive`."""
        now(self._core.remove(path, recursive))

    def upload(self, local: Local, path: Optional[str] = None, *, mode: Optional[int] = None,
               progress: Optional[Progress] = None) -> int:
        """Put a file of this machine there, without reading it into memory; returns its size.

        Args:
            local: the path of a file, or one that is open for reading bytes.
            path: its name there; that of the local file by default.
            mode: permissions; those of the local file by default.
            progress: is told (sent, total) bytes; a total of 0 is not known.
        """
        return now(self._core.upload(local, path, mode, progress))

    def download(self, path: str, local: Optional[Local] = None, *,
                 progress: Optional[Progress] = None) -> int:
        """Get a file, without reading it into memory; returns its size.

        Args:
            local: where it goes: a path (which has the old content until all of the new is
                there), a directory, or something open for writing bytes. Default: its own name,
                in the current directory.
            progress: is told (received, total) bytes.
        """
        return now(self._core.download(path, local, progress))

    def upload_dir(self, local: Path, path: str = "", *,
                   progress: Optional[Progress] = None) -> int:
        """Put all that is in a directory of this machine there; returns how many entries it has.

        Links are sent as links, and refused if they lead out of the workspace.
        """
        return now(self._core.upload_dir(local, path, progress))

    def download_dir(self, path: str, local: Path, *,
                     progress: Optional[Progress] = None) -> List[str]:
        """Get all that is in a directory; returns the names of what was made.

        Nothing is written outside of `local`, nor through a link; links that lead out of it are
        left out. `progress` is told (received, 0) bytes.
        """
        return now(self._core.download_dir(path, local, progress))


class AsyncSessionFiles:
    """Of one session: `session.files`."""

    def __init__(self, core: FilesCore) -> None:
        self._core = core

    async def write(self, path: str,
                    content: Union[str, bytes], *, mode: Optional[int] = None) -> int:
        """Put a file there, made of text or bytes; returns its size.

        Directories on the way are made. The file has its name only when all of it is there.
        `mode` is 0o644 by default.
        """
        return await self._core.write(path, content, mode)

    async def read(self, path: str) -> bytes:
        """All of a file.  Large ones are better downloaded."""
        return await self._core.read(path)

    async def list(self, path: str = "", *,
                   recursive: bool = False, limit: Optional[int] = None) -> List[FileInfo]:
        """What is in a directory, sorted by path; "" is the workspace."""
        return await self._core.list(path, recursive, limit)

    async def make_dir(self, path: str) -> None:
        """Make a directory, and those on the way to it.  One that is there is fine."""
        await self._core.make_dir(path)

    async def remove(self, path: str, *, recursive: bool = False) -> None:
        """Remove a file, a link, or a directory: one with something in it only if `recursive`."""
        await self._core.remove(path, recursive)

    async def upload(self, local: Local, path: Optional[str] = None, *, mode: Optional[int] = None,
                     progress: Optional[Progress] = None) -> int:
        """Put a file of this machine there, without reading it into memory; returns its size.

        Args:
            local: the path of a file, or one that is open for reading bytes.
            path: its name there; that of the local file by default.
            mode: permissions; those of the local file by default.
            progress: is told (sent, total) bytes; a total of 0 is not known.
        """
        return await self._core.upload(local, path, mode, progress)

    async def download(self, path: str, local: Optional[Local] = None, *,
                       progress: Optional[Progress] = None) -> int:
        """Get a file, without reading it into memory; returns its size.

        Args:
            local: where it goes: a path (which has the old content until all of the new is
                there), a directory, or something open for writing bytes. Default: its own name,
                in the current directory.
            progress: is told (received, total) bytes.
        """
        return await self._core.download(path, local, progress)

    async def upload_dir(self, local: Path, path: str = "", *,
                         progress: Optional[Progress] = None) -> int:
        """Put all that is in a directory of this machine there; returns how many entries it has.

        Links are sent as links, and refused if they lead out of the workspace.
        """
        return await self._core.upload_dir(local, path, progress)

    async def download_dir(self, path: str, local: Path, *,
                           progress: Optional[Progress] = None) -> List[str]:
        """Get all that is in a directory; returns the names of what was made.

        Nothing is written outside of `local`, nor through a link; links that lead out of it are
        left out. `progress` is told (received, 0) bytes.
        """
        return await self._core.download_dir(path, local, progress)


__all__ = ["AsyncSessionFiles", "FileInfo", "SessionFiles"]
