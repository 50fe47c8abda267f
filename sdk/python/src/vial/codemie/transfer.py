"""transfer - uploads before, and exports after an execution."""
from __future__ import annotations

import logging
import mimetypes
import posixpath
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, Optional, Sequence

from .beneath import follow_beneath, parts_of, read_beneath, write_beneath
from .exceptions import ToolException
from .files import FileObject

logger = logging.getLogger(__name__)

PARALLEL = 3
URL = "sandbox:/v1/files/%s"


def upload(files: Sequence[FileObject], directory: str, repository: Optional[Any]) -> None:
    """Put files into a user's directory, up to three at once.

    Raises:
        ToolException: there is no repository, a name leads elsewhere, or it did not work.
    """
    if not files:
        return
    if repository is None:
        raise ToolException("Cannot upload files: file_repository not available")
    for file in files:
        try:
            parts_of(file.name)
        except ValueError:
            raise ToolException("Invalid file path for sandbox upload: %s" % file.name) from None
    with ThreadPoolExecutor(max_workers=min(PARALLEL, len(files))) as workers:
        done = workers.map(lambda file: _upload_one(file, directory, repository), files)
        failed = [why for why in done if why is not None]
    if failed:
        raise ToolException("Failed to upload %d file(s):\n%s" % (len(failed), "\n".join(failed)))


def _upload_one(file: FileObject, directory: str, repository: Any) -> Optional[str]:
    """None, or why it failed."""
    try:
        content = file.bytes_content()
        if content is None:
            read = getattr(repository, "read_file", None)  # who only stores exports has none
            stored = read(file_name=file.name, owner=file.owner, mime_type=file.mime_type) \
                if read is not None else None
            content = stored.bytes_content() if stored is not None else None
        if content is None:
            logger.warning("Skipped a file without content: %s", file.name)
            return None
        write_beneath(directory, file.name, content)
    except Exception as why:
        return "Failed to upload %s: %s" % (file.name, why)
    return None


def check_export_paths(paths: Optional[Sequence[str]], workdir: str) -> List[str]:
    """The paths, relative to the working directory and without detours.

    Raises:
        ToolException: one leads out of it.
    """
    checked = []
    for path in [paths] if isinstance(paths, str) else paths or ():
        if posixpath.isabs(path):
            raise ToolException("Export path must be relative to the working directory: '%s'"
                                % path)
        plain = posixpath.normpath(path) if path else "."
        if plain in (".", "..") or plain.startswith("../") or "\0" in plain:
            raise ToolException("Export path must resolve inside the working directory: '%s'"
                                % path)
        checked.append(plain)
    return checked


def export(paths: Sequence[str], directory: str, workdir: str, repository: Optional[Any],
           owner: str) -> List[str]:
    """Store files of a user's directory; a line about each.  What cannot be read is skipped."""
    if repository is None:
        if paths:
            logger.warning("Cannot export files: file_repository not available")
        return []
    lines = []
    for path in paths:
        name = posixpath.basename(path)
        try:
            content = read_beneath(directory, follow_beneath(directory, path, workdir))
            stored = repository.write_file(name="%s_%s" % (uuid.uuid4(), name),
                                           mime_type=mime_type_of(name), content=content,
                                           owner=owner)
        except Exception as why:
            logger.error("Failed to export file %s: %s", path, why)
            continue
        lines.append("File '%s': %s" % (name, URL % stored.to_encoded_url()))
    return lines


def mime_type_of(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
