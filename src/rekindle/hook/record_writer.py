"""Append a record to an agent's inbox, or to a spool if the inbox is not writable."""

import fcntl
import os
import time

from rekindle.hook.host_facts import NAME_CHARACTERS, find_user_folder

INBOX_DEPTH = 5
"""Number of path components between a workspace and an inbox: .rekindle/agents/NAME/run/inbox."""
SPOOL_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes to spool while an inbox is not writable."""
_ATTEMPTS = 100


def append_record(
    place: str, record: bytes, prefix: str = "", limit: int = 0, *, depth: int = 1
) -> bool:
    """Append a record to a segment, with a shared lock. Return False on failure.

    Segment names are never reused, because the log records how far each segment was folded.
    """
    try:
        at = open_folder(place, depth)
    except OSError:
        return False
    try:
        return append_to_segment(at, record, prefix, limit)
    finally:
        os.close(at)


def append_to_segment(at: int, record: bytes, prefix: str, limit: int) -> bool:
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    for _ in range(_ATTEMPTS):
        try:
            names = [
                name for name in os.listdir(at) if name.startswith(prefix) and name.endswith(".seg")
            ]
            make = 0 if names else os.O_CREAT | os.O_EXCL
            name = max(names) if names else f"{prefix}{time.time_ns():020d}-{os.getpid():08x}.seg"
            fd = os.open(name, flags | make, 0o600, dir_fd=at)
        except FileExistsError:
            continue
        except FileNotFoundError:
            if not os.fstat(at).st_nlink:
                return False
            continue
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
            status = os.fstat(fd)
            # The fold may have removed the segment between open and lock, and a write would be
            # lost.
            if status.st_nlink:
                is_full = limit and status.st_size > limit
                return not is_full and os.write(fd, record) == len(record)
        except OSError:
            return False
        finally:
            os.close(fd)
    return False


def open_folder(path: str, depth: int) -> int:
    """Open a folder without following links in the last `depth` components of its path.

    The components are opened one at a time, because an agent could replace one with a link after a
    check.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    above, *names = path.rsplit("/", depth)
    fd = os.open(above or "/", flags)
    for name in names:
        try:
            inner = os.open(name, flags | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def spool_record(folder: str, record: bytes) -> None:
    """Store a record in a spool while the inbox is not writable. The fold reads it from there."""
    for spool in spool_folders():
        try:  # noqa: SIM105 - contextlib slows the start
            os.mkdir(spool, 0o700)  # noqa: PTH102 - pathlib slows the start
        except OSError:
            pass  # the check below also handles a folder that could not be created
        if is_ours_alone(spool) and append_record(spool, record, spool_prefix(folder), SPOOL_BYTES):
            return


def spool_folders() -> tuple[str, ...]:
    """Return the folders that store records while the inbox's disk is full, read-only or missing.

    If the host has an in-memory folder for the user, it comes first, because the home disk may be
    full too. /tmp is not used, because CLI sandboxes let an agent write there. A sandbox around the
    whole CLI makes only one of the user's folders visible.
    """
    if marks := os.environ.get("REKINDLE_MARKS"):
        return (marks,)
    return (f"/run/user/{os.getuid()}/rekindle", f"{find_user_folder()}/spool")


def is_ours_alone(path: str) -> bool:
    """Return whether a folder belongs to the user, is not a link, and is closed to other users."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return status.st_uid == os.getuid() and status.st_mode & 0o170777 == 0o040700  # noqa: PLR2004 - mode of a private folder


def spool_prefix(folder: str) -> str:
    """Return a file name prefix for the agent's folder."""
    # Agent names contain no plus sign, so `trades` and `trades-eu` have different prefixes.
    return "".join(c if c in NAME_CHARACTERS else "%" for c in folder)[-150:] + "+"
