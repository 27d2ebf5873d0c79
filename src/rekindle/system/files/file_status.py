"""The kind of a file, its times, and a stamp that changes when the file does."""

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
"""Size of Linux's struct statx, in bytes. Python's stat does not return the birth time on Linux."""
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
}


def name_kind(path: Path) -> str:
    """Return the kind of entry at a path (`file`, `folder`, `link`...), or "" if there is none."""
    with translate_os_errors(path):
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return ""  # a folder above the path is a link to itself
    return _KINDS.get(stat.S_IFMT(mode), "device")


def make_file_stamp(path: Path) -> tuple[int, ...] | None:
    """Return a value that changes whenever a file is written or replaced; None if it is missing."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def read_birth_time(path: Path) -> int:
    """Return when a file or folder was created, in nanoseconds, or 0 if this is not available."""
    with translate_os_errors(path):
        birthtime: float | None = getattr(path.stat(), "st_birthtime", None)
    if birthtime is not None:  # None on Linux
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
    """Return the time at which a file was last written."""
    with translate_os_errors(path):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)
