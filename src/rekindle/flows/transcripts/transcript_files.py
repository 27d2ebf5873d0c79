"""Read a CLI's transcript files without trusting their paths or contents."""

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
"""Flags for opening a folder. On Linux, O_PATH works even without read permission."""


def open_transcript(path: str, *, buffering: int = -1) -> BinaryIO:
    """Open a CLI's file without following links and without blocking on a pipe.

    Otherwise an agent could read any of the user's sessions through a link in its workspace. `path`
    must be a real path, as returned by a harness.

    Raises:
        OSError: The file is missing or not a regular file of this user, or its path has a link.
    """
    *folders, name = path.split("/")
    folder = _open_folder(folders)
    try:
        fd = os.open(name, _FLAGS | os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        os.close(fd)
        raise OSError(errno.EINVAL, "is not a regular file of this user", path)
    return os.fdopen(fd, "rb", buffering)


def _open_folder(names: list[str]) -> int:
    """Open a folder one path component at a time. The caller closes the descriptor."""
    fd = os.open("/" if names and not names[0] else ".", _FOLDER_FLAGS)
    for name in filter(None, names):
        above = fd
        try:
            fd = os.open(name, _FOLDER_FLAGS, dir_fd=above)
        finally:
            os.close(above)
    return fd


def read_tail(path: str) -> bytes:
    try:
        with open_transcript(path) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TRANSCRIPT_TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def read_beginning(path: str) -> bytes:
    try:
        with open_transcript(path) as file:
            return file.read(TRANSCRIPT_BEGINNING_BYTES)
    except OSError:
        return b""


def read_first_line(path: str) -> str:
    """Return the start of the first line, long enough to identify the session."""
    try:
        with open_transcript(path) as file:
            return file.readline(TRANSCRIPT_FIRST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def read_lines_since(path: str, start: int) -> bytes:
    """Return the complete lines after an offset, or b"" if the file cannot be read."""
    try:
        with open_transcript(path) as file:
            file.seek(start)
            data = file.read(JSON_LINE_BYTES)
            return data[: data.rfind(b"\n") + 1]
    except OSError:
        return b""


def read_both_ends(path: str) -> bytes:
    """Return the start and the end of the file, or b"" if it cannot be read."""
    try:
        with open_transcript(path) as file:
            return file.read(TRANSCRIPT_TAIL_BYTES) + read_tail(path)
    except OSError:
        return b""


def read_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of the file. Very long lines are split into pieces."""
    try:
        with open_transcript(path) as file:
            yield from iter(lambda: file.readline(JSON_LINE_BYTES), b"")
    except OSError:
        return


def read_size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - paths are strings
    except OSError:
        return 0


def read_changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - paths are strings
    except OSError:
        return 0.0


def make_stamp(path: str) -> str:
    """Return a value that changes with the file, or "" if the file is empty."""
    try:
        status = os.stat(path)  # noqa: PTH116 - paths are strings
    except OSError:
        return ""
    return f"{status.st_size}:{status.st_mtime_ns}:{status.st_ino}" if status.st_size else ""
