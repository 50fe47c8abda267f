"""files - files that go into and come out of a sandbox, and where they are kept."""
from __future__ import annotations

import base64
import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Optional, Protocol, Union

from .beneath import read_beneath, write_beneath


@dataclass
class FileObject:
    """A file: its name, MIME type and owner; the content may be elsewhere."""

    name: str
    mime_type: str
    owner: str
    path: Optional[str] = None
    content: Optional[Any] = None

    def bytes_content(self) -> Optional[bytes]:
        if self.content is None or isinstance(self.content, bytes):
            return self.content
        if isinstance(self.content, (bytearray, memoryview)):
            return bytes(self.content)
        return str(self.content).encode("utf-8", "replace")

    def string_content(self) -> Optional[str]:
        data = self.bytes_content()
        return None if data is None else data.decode("utf-8", "replace")

    def base64_content(self) -> str:
        """As a data: URL."""
        coded = base64.b64encode(self.bytes_content() or b"").decode("ascii")
        return "data:%s;base64,%s" % (self.mime_type, coded)

    def to_encoded_url(self) -> str:
        """MIME type, owner and name in one word."""
        told = json.dumps([self.mime_type, self.owner, self.name])
        return base64.urlsafe_b64encode(told.encode()).decode("ascii")

    @staticmethod
    def from_encoded_url(encoded_url: str) -> FileObject:
        try:
            mime_type, owner, name = json.loads(base64.urlsafe_b64decode(encoded_url))
        except (ValueError, TypeError):
            raise ValueError("Invalid encoded URL data: %s" % encoded_url) from None
        return FileObject(name=name, mime_type=mime_type, owner=owner)

    def is_image(self) -> bool:
        return self.mime_type.startswith("image") and self.mime_type != "image/svg+xml"

    def is_text_based(self) -> bool:
        return self.mime_type.startswith("text")

    def __repr__(self) -> str:
        return "<File: name=%s, mime_type = %s, owner=%s, path=%s>" % (
            self.name, self.mime_type, self.owner, self.path)


class FileRepository(Protocol):
    """Where exported files go, and uploads come from."""

    def write_file(self, name: str, mime_type: str, owner: str,
                   content: Optional[Union[str, bytes]] = None) -> FileObject:
        ...

    def read_file(self, file_name: str, owner: str, mime_type: Optional[str] = None) -> FileObject:
        ...


class DirectoryFileRepository:
    """Files in a directory, one below it for each owner.

    Args:
        root: the directory, which is made if it is not there. Default: a temporary one, for this
            object's life.
    """

    def __init__(self, root: Optional[str] = None) -> None:
        self._kept = tempfile.TemporaryDirectory(prefix="vial-files-") if root is None else None
        self.root = os.path.abspath(root or (self._kept.name if self._kept else "."))
        os.makedirs(self.root, exist_ok=True)

    def write_file(self, name: str, mime_type: str, owner: str,
                   content: Optional[Union[str, bytes]] = None) -> FileObject:
        made = FileObject(name=name, mime_type=mime_type, owner=owner, content=content)
        made.path = write_beneath(self.root, self._place(owner, name), made.bytes_content() or b"")
        return made

    def read_file(self, file_name: str, owner: str, mime_type: Optional[str] = None) -> FileObject:
        content = read_beneath(self.root, self._place(owner, file_name))
        return FileObject(name=file_name, mime_type=mime_type or "application/octet-stream",
                          owner=owner, content=content)

    @staticmethod
    def _place(owner: str, name: str) -> str:
        folder = "".join(c if c.isalnum() or c in "-_@" else "_" for c in owner) or "_"
        return "%s/%s" % (folder, os.path.basename(name) or "_")
