"""_files - what is done with the files of a session, written once for both kinds of clients."""
from __future__ import annotations

import base64
import contextlib
import functools
import io
import os
import tempfile
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, Dict, List, Mapping, Optional, Union, cast
from urllib.parse import quote, urlencode

from ._exchange import Progress, Request, Source
from ._talk import Talk
from ._tree import TreeSource, Unpacker

Path = Union[str, "os.PathLike[str]"]
Local = Union[str, "os.PathLike[str]", BinaryIO]


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _leaf(path: str) -> str:
    return os.path.basename(path.rstrip("/"))


def _name(item: Mapping[str, Any], member: str) -> Optional[str]:
    """A name that may be no text comes as base64, too."""
    coded = item.get(member + "_base64")
    if coded is not None:
        return base64.b64decode(coded).decode("utf-8", "surrogateescape")
    return item.get(member)


@dataclass(frozen=True)
class FileInfo:
    """One entry of a directory; `path` is relative to the workspace."""

    name: str
    path: str
    type: str  # "file", "directory", "link" or "other"
    size: int
    mtime: float
    mode: int
    target: Optional[str] = None  # of a link

    @property
    def is_dir(self) -> bool:
        return self.type == "directory"

    @classmethod
    def parse(cls, item: Mapping[str, Any]) -> FileInfo:
        return cls(_name(item, "name") or "", _name(item, "path") or "", str(item.get("type")),
                   int(item.get("size") or 0), float(item.get("mtime") or 0),
                   int(str(item.get("mode") or "0"), 8), _name(item, "target"))


class FileSource:
    """What is left of an open file."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._first: Optional[int] = None
        self.total: Optional[int] = None
        try:
            self._first = file.tell()
            self.total = file.seek(0, os.SEEK_END) - self._first
            file.seek(self._first)
        except (OSError, AttributeError):
            self._first = self.total = None
        self.can_repeat = self._first is not None

    def start(self) -> None:
        if self._first is not None:
            self._file.seek(self._first)

    def read(self, size: int) -> bytes:
        return self._file.read(size)


class NewFile:
    """One that has its name when all of it is there."""

    def __init__(self, name: str, leaf: str) -> None:
        self._name = os.path.join(name, leaf) if os.path.isdir(name) else name
        handle, self._temp = tempfile.mkstemp(prefix=".vial-",
                                              dir=os.path.dirname(self._name) or ".")
        self.file = open(handle, "wb")  # noqa: SIM115

    def keep(self) -> None:
        self.file.close()
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(self._temp, 0o666 & ~umask)
        os.replace(self._temp, self._name)

    def close(self) -> None:
        self.file.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._temp)


class FilesCore:
    """Of one session."""

    def __init__(self, talk: Talk, session: str) -> None:
        self._talk = talk
        self._session = session

    def _path(self, path: str, what: str = "files", **query: Any) -> str:
        made = "%s/%s/%s" % (self._session, what, quote(_bytes(path), safe="/"))
        return made + ("?" + urlencode(query) if query else "")

    def _whole(self, what: str, path: str, **query: Any) -> str:
        return "%s/%s?%s" % (self._session, what, urlencode({"path": _bytes(path), **query}))

    # ---- up ----

    async def _send(self, method: str, path: str, source: Source, progress: Optional[Progress]
                    ) -> Dict[str, Any]:
        return await self._talk.json(Request(method, path, progress=progress, source=source))

    async def write(self, path: str, content: Union[str, bytes], mode: Optional[int]) -> int:
        data = content.encode() if isinstance(content, str) else bytes(content)
        query = {} if mode is None else {"mode": "%o" % mode}
        answer = await self._send("PUT", self._path(path, **query), FileSource(io.BytesIO(data)),
                                  None)
        return int(answer.get("size") or 0)

    async def upload(self, local: Local, path: Optional[str], mode: Optional[int],
                     progress: Optional[Progress]) -> int:
        if isinstance(local, (str, os.PathLike)):
            name = os.fspath(local)
            with await self._talk.net.call(functools.partial(open, name, "rb")) as file:
                if mode is None:
                    mode = os.fstat(file.fileno()).st_mode & 0o777
                return await self.upload(cast(BinaryIO, file), path or _leaf(name), mode, progress)
        if path is None:
            raise ValueError("path: an open file has no name of its own here")
        query = {} if mode is None else {"mode": "%o" % mode}
        answer = await self._send("PUT", self._path(path, **query), FileSource(local), progress)
        return int(answer.get("size") or 0)

    async def upload_dir(self, local: Path, path: str, progress: Optional[Progress]) -> int:
        source = await self._talk.net.call(lambda: TreeSource(os.fspath(local)))
        answer = await self._send("POST", self._whole("archive", path), source, progress)
        return int(answer.get("entries") or 0)

    # ---- down ----

    async def _receive(self, path: str, take: Callable[[bytes], object],
                       progress: Optional[Progress]) -> int:
        incoming = await self._talk.open(Request("GET", path, accept="*/*"))
        got, total = 0, incoming.length or 0
        try:
            while piece := await incoming.piece():
                await self._talk.net.call(functools.partial(take, piece))
                got += len(piece)
                if progress is not None:
                    progress(got, total)
        finally:
            incoming.close()
        return got

    async def read(self, path: str) -> bytes:
        return (await self._talk.send(Request("GET", self._path(path), accept="*/*"))).body

    async def download(self, path: str, local: Optional[Local], progress: Optional[Progress]
                       ) -> int:
        if local is None:
            local = _leaf(path)
        if not isinstance(local, (str, os.PathLike)):
            return await self._receive(self._path(path), local.write, progress)
        new = await self._talk.net.call(functools.partial(NewFile, os.fspath(local), _leaf(path)))
        try:
            size = await self._receive(self._path(path), new.file.write, progress)
            await self._talk.net.call(new.keep)
        finally:
            new.close()
        return size

    async def download_dir(self, path: str, local: Path, progress: Optional[Progress]
                           ) -> List[str]:
        unpacker = Unpacker(os.fspath(local))
        with tempfile.TemporaryFile() as packed:
            await self._receive(self._whole("archive", path, format="tar"), packed.write, progress)
            packed.seek(0)
            await self._talk.net.call(lambda: unpacker.unpack(cast(BinaryIO, packed)))
        return unpacker.made

    # ---- the rest ----

    async def list(self, path: str, recursive: bool, limit: Optional[int]) -> List[FileInfo]:
        query: Dict[str, Any] = {"recursive": "true"} if recursive else {}
        query["limit"] = 1000000 if limit is None else limit
        answer = await self._talk.json(Request("GET", self._whole("files", path, **query)))
        found = [FileInfo.parse(item) for item in answer.get("entries") or ()]
        return sorted(found, key=lambda info: info.path)

    async def make_dir(self, path: str) -> None:
        await self._talk.send(Request("PUT", self._path(path, "directories"), timeout=60))

    async def remove(self, path: str, recursive: bool) -> None:
        query = {"recursive": "true"} if recursive else {}
        await self._talk.send(Request("DELETE", self._path(path, **query), timeout=120))
