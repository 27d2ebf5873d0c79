"""Lock files, and keep files open to notice if they are replaced."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rekindle.errors import translate_os_errors
from rekindle.system.files import durable_files, safe_folders
from rekindle.thresholds.storage import LOCK_POLL_SECONDS


class PinnedFile:
    """A file that is kept open to detect whether another file replaces it."""

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.path = path
        with translate_os_errors(path):
            self._fd = durable_files.open_plain(path, flags)

    def is_still_at_path(self) -> bool:
        """Return whether the file is still at its path."""
        with translate_os_errors(self.path):
            try:
                current = self.path.lstat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            held = os.fstat(self._fd)
        return (current.st_dev, current.st_ino) == (held.st_dev, held.st_ino)

    def size(self) -> int:
        with translate_os_errors(self.path):
            return os.fstat(self._fd).st_size

    def close(self) -> None:
        durable_files.close_descriptor(self._fd)


class FileLock(PinnedFile):
    """An exclusive lock on a file, held until this object is closed."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_CREAT)

    def acquire(self, wait: float) -> bool:
        deadline = time.monotonic() + wait
        while True:
            with translate_os_errors(self.path):
                try:
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        return False
                else:
                    return True
            time.sleep(LOCK_POLL_SECONDS)

    def write(self, start: int, data: bytes) -> None:
        """Overwrite part of the locked file in place, durably."""
        durable_files.overwrite_durably(self._fd, self.path, start, data)


@contextmanager
def hold_lock(path: Path, wait: float) -> Iterator[FileLock | None]:
    """Hold an exclusive lock on `path`, or yield None if it is not free within `wait` seconds.

    The kernel releases the lock when the process exits, so there are no stale locks.
    """
    while True:
        lock = FileLock(path)
        try:
            if not lock.acquire(wait):
                yield None
                return
            if lock.is_still_at_path():
                yield lock
                return
        finally:
            lock.close()


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock on `path`, without creating the file."""
    with translate_os_errors(path):
        try:
            with durable_files.hold_plain(path, os.O_RDONLY) as fd:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except (FileNotFoundError, NotADirectoryError, safe_folders.LinkedFolderError):
            return False  # Rekindle never stores its files behind a link
    return False
