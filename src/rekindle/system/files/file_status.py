"""Get a file's kind and times, and a stamp that changes with the file."""

import errno
import os
import stat
import struct
import sys
from datetime import UTC, datetime
from pathlib import Path

from rekindle.errors import translate_os_errors

_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BTIME_AT = 80
_STATX_BYTES = 256
"""Size of Linux's struct statx in bytes. Python's stat has no birth time on Linux."""
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
}


def name_kind(path: Path) -> str:
    """Return what is at a path (`file`, `folder`, `link`, ...), or "" if nothing is there."""
    with translate_os_errors(path):
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return ""  # a folder in the path is a link to itself
    return _KINDS.get(stat.S_IFMT(mode), "device")


def make_file_stamp(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes with every write to a file, or None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def make_folder_stamp(folder: Path) -> tuple[object, ...] | None:
    """Return a value that changes with every write to a file in a folder, or None."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError:
        return None
    return make_file_stamp(folder), *(make_file_stamp(folder / name) for name in names)


def read_birth_time(path: Path) -> int:
    """Return the creation time of a file or folder in nanoseconds, or 0 if unavailable."""
    with translate_os_errors(path):
        birthtime: float | None = getattr(path.stat(), "st_birthtime", None)
    if birthtime is not None:  # not available on Linux
        return int(birthtime * 10**9)
    import ctypes  # noqa: PLC0415 - few commands need it

    statx = getattr(ctypes.CDLL(None), "statx", None)
    data = ctypes.create_string_buffer(_STATX_BYTES)
    if statx is None or statx(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, data) != 0:
        return 0
    if not int.from_bytes(data.raw[:4], sys.byteorder) & _STATX_BTIME:
        return 0
    seconds, nanoseconds = struct.unpack_from("=qI", data.raw, _STATX_BTIME_AT)
    return int(seconds) * 10**9 + int(nanoseconds)


def read_modified_time(path: Path) -> datetime:
    """Return the time of the last write to a file."""
    with translate_os_errors(path):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
