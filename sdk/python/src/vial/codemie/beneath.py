"""beneath - files below a directory that a sandbox can write.

What lies there is a guest's work: a link may lead out of it, a file may be a pipe.  So no link is
ever followed, and only regular files are opened.
"""
from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Iterator, List

SIZE_MAX = 1 << 30
LINKS_MAX = 40


def parts_of(name: str) -> List[str]:
    """The parts of a relative name, or ValueError: it leads elsewhere."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if name.startswith("/") or not parts or ".." in parts or "\0" in name:
        raise ValueError("not a name inside: %r" % name)
    return parts


@contextlib.contextmanager
def _folder(root: str, parts: List[str], make: bool) -> Iterator[int]:
    """The directory that the last part is in, open."""
    flags = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_RDONLY
    fd = os.open(root, flags)
    try:
        for part in parts:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=fd)
            inner = os.open(part, flags, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)


def follow_beneath(root: str, name: str, inside: str) -> str:
    """Where the links on the way to a file lead: a relative name again, or ValueError.

    `inside` is what the guest calls the directory.  The answer is a hint: whoever opens it follows
    no link, so that it cannot lead out if it changes meanwhile.
    """
    parts = parts_of(name)
    done: List[str] = []
    for _ in range(LINKS_MAX):
        while parts:
            try:
                target = os.readlink(os.path.join(root, *done, parts[0]))
            except OSError:  # it is none
                done.append(parts.pop(0))
                continue
            break
        else:
            return "/".join(done)
        place = os.path.normpath(os.path.join(inside, *done, target, *parts[1:]))
        parts, done = parts_of(os.path.relpath(place, inside)), []
    raise ValueError("too many links: %r" % name)


def read_beneath(root: str, name: str) -> bytes:
    parts = parts_of(name)
    with _folder(root, parts[:-1], make=False) as folder:
        fd = os.open(parts[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                     dir_fd=folder)
        with open(fd, "rb") as file:
            told = os.fstat(fd)
            if not stat.S_ISREG(told.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", name)
            if told.st_size > SIZE_MAX:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
            return file.read(SIZE_MAX)


def write_beneath(root: str, name: str, content: bytes) -> str:
    """Write a file, with the directories that it needs.  Gives its path."""
    parts = parts_of(name)
    with _folder(root, parts[:-1], make=True) as folder:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(parts[-1], dir_fd=folder)  # whatever it is now
        fd = os.open(parts[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
                     0o644, dir_fd=folder)
        with open(fd, "wb") as file:
            file.write(content)
    return os.path.join(root, *parts)


def remove_beneath(root: str, name: str) -> None:
    parts = parts_of(name)
    with _folder(root, parts[:-1], make=False) as folder:
        os.unlink(parts[-1], dir_fd=folder)


def names_beneath(root: str) -> Iterator[str]:
    """All regular files, as relative names."""
    for folder, _, names in os.walk(root, followlinks=False):
        for name in names:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    yield os.path.relpath(path, root)
