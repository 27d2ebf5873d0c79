"""The files in which a CLI keeps its sessions, as far as they are looked at from outside."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO

from rekindle.thresholds.storage import (
    JSON_LINE_BYTES,
    TRANSCRIPT_BEGINNING_BYTES,
    TRANSCRIPT_FIRST_BYTES,
    TRANSCRIPT_TAIL_BYTES,
)

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = _FLAGS | os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)
"""With O_PATH, as on Linux, a folder need not be readable."""


def opened(path: str, *, buffering: int = -1) -> BinaryIO:
    """Open a file of a CLI, which may be anything: opening a pipe would wait for its writer.

    No link is followed, also not to a folder: an agent could lead from its workspace to any session
    of the user. `path` is a real path, as a harness returns it.

    Raises:
        OSError: It is not there, is not a plain file of this user, or a name of `path` is a link.
    """
    *folders, name = path.split("/")
    folder = _open_folder(folders)
    try:
        fd = os.open(name, _FLAGS | os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a plain file of this user", path)
    return os.fdopen(fd, "rb", buffering)


def _open_folder(names: list[str]) -> int:
    """Open a folder, each name in the folder above it; the caller closes the descriptor."""
    fd = os.open("/" if names and not names[0] else ".", _FOLDER_FLAGS)
    for name in filter(None, names):
        above = fd
        try:
            fd = os.open(name, _FOLDER_FLAGS, dir_fd=above)
        finally:
            os.close(above)
    return fd


def tail(path: str) -> bytes:
    try:
        with opened(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TRANSCRIPT_TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def beginning(path: str) -> bytes:
    try:
        with opened(path) as file:
            return file.read(TRANSCRIPT_BEGINNING_BYTES)
    except OSError:
        return b""


def first_line(path: str) -> str:
    """What it says of itself; no more than is needed to see whose it is."""
    try:
        with opened(path) as file:
            return file.readline(TRANSCRIPT_FIRST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def since(path: str, start: int) -> bytes:
    """The whole lines from a place on."""
    try:
        with opened(path) as file:
            file.seek(start)
            found = file.read(JSON_LINE_BYTES)
            return found[: found.rfind(b"\n") + 1]
    except OSError:
        return b""


def ends(path: str) -> bytes:
    """Its beginning and its end."""
    try:
        with opened(path) as file:
            return file.read(TRANSCRIPT_TAIL_BYTES) + tail(path)
    except OSError:
        return b""


def lines(path: str) -> Iterator[bytes]:
    """Line by line; what is longer than any line of one comes in pieces."""
    try:
        with opened(path) as file:
            yield from iter(lambda: file.readline(JSON_LINE_BYTES), b"")
    except OSError:
        return


def size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - as above
    except OSError:
        return 0


def changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - as above
    except OSError:
        return 0.0


def stamp(path: str) -> str:
    """Changes whenever it is written or replaced; empty: there is nothing in it."""
    try:
        found = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return ""
    return f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}" if found.st_size else ""
