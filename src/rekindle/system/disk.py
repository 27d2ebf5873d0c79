"""Durable files. The only module that knows fsync, flock and rename.

A failed fsync is never repeated on the same descriptor: after it the kernel may have dropped the
dirty pages, and a second fsync would report success for bytes that are not there.

Nothing below `.rekindle` is reached through a link, whatever an agent replaces meanwhile (`walk`).
"""

import errno
import fcntl
import os
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from rekindle.errors import NotDurableError, OversizedError, UnsafePathError, storing
from rekindle.policy.settings import FILE_BYTES
from rekindle.system import walk
from rekindle.thresholds.storage import LOCK_POLL_SECONDS

FILE_MODE = 0o600
FOLDER_MODE = 0o700
TEMPORARY_PREFIX = ".tmp-"
TORN = b" torn\n"
"""How a line ends that its writer never acknowledged."""
REFUSED = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""What the kernel answers a process that may not write or read there, such as one in a sandbox."""
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_AT_FDCWD = -100
_STATX_BTIME = 0x800
_STATX_BTIME_AT = 80
_STATX_BYTES = 256
"""Of Linux's struct statx, from which Python reads no time of birth."""
_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "FIFO",
    stat.S_IFSOCK: "socket",
}


def replace(path: Path, data: bytes, *, mode: int = FILE_MODE, root: Path | None = None) -> None:
    """Put `data` at `path` so that a reader or a crash sees the old content or the new.

    With `root`, a folder that `path` is below, links below it are refused.
    """
    # A name of its own, so that two writers never share a temporary file.
    temp = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with storing(path), walk.open_parent(path, root) as folder:
        fd = os.open(temp, flags, FILE_MODE, dir_fd=folder)
        try:
            try:
                if mode != FILE_MODE:
                    os.fchmod(fd, mode)
                _write_all(fd, data)
                _sync(fd, path)
            finally:
                os.close(fd)
            os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=folder)
            raise
        _sync(folder, path.parent)


def append(path: Path, data: bytes) -> int:
    """Append durably and return where it starts; on failure the file is as it was.

    For a file of lines with one writer. If the tail is torn, by a power loss or a full disk, it
    is marked, so that it can never pass for a whole line, and the new data starts on the next.
    """
    with storing(path), walk.open_parent(path) as folder:
        is_new = not _is_in(folder, path.name)
        fd = os.open(path.name, _APPENDING, FILE_MODE, dir_fd=folder)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            try:
                _write_all(fd, TORN + data if torn else data)
                _sync(fd, path)
            except BaseException:
                # Readers must not see what nobody will acknowledge; and a later append must write
                # these pages anew, for a failed fsync may have marked them clean.
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if is_new:
            _sync(folder, path.parent)
    return size + (len(TORN) if torn else 0)


def cut(path: Path, end: int) -> None:
    """Cut off what is behind `end`, durably."""
    with storing(path):
        fd = open_plain(path, os.O_WRONLY)
        try:
            os.ftruncate(fd, end)
            _sync(fd, path)
        finally:
            os.close(fd)


def write_from(path: Path, start: int, pieces: Iterable[bytes]) -> int:
    """Put pieces durably behind the first `start` bytes of a file, and return where they end.

    What stood there is gone: of a writer that was killed, nobody has been told.
    """
    with storing(path):
        is_new = not exists(path)
        fd = open_plain(path, os.O_WRONLY | os.O_CREAT)
        try:
            os.ftruncate(fd, start)
            os.lseek(fd, start, os.SEEK_SET)
            for piece in pieces:
                _write_all(fd, piece)
            _sync(fd, path)
            end = os.lseek(fd, 0, os.SEEK_CUR)
        finally:
            os.close(fd)
    if is_new:
        sync_folder(path.parent)
    return end


def write_at(path: Path, start: int, data: bytes) -> None:
    """Overwrite bytes of a file in place, durably; a full disk needs no new block for that."""
    with storing(path):
        is_new = not exists(path)
        fd = open_plain(path, os.O_WRONLY | os.O_CREAT)
        try:
            _write_all_at(fd, start, data)
            _sync(fd, path)
        finally:
            os.close(fd)
    if is_new:
        sync_folder(path.parent)


def read(path: Path, most: int = -1) -> bytes | None:
    """The file's bytes, or its first so many; None where there is none.

    Links and pipes are refused, and whole files that are larger than any of ours.
    """
    with storing(path):
        try:
            fd = open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            return file.read(most) if most >= 0 else _read_up_to(file, path, FILE_BYTES)


def read_named(path: Path, most: int) -> bytes:
    """Return the bytes of a file that the user names: a regular one, links followed.

    Raises:
        UnsafePathError: It is a FIFO, a device, a socket or a folder, and could block or never end.
        OversizedError: It is larger than `most`.
    """
    with storing(path):
        # What is opened is looked at once more: another object may have taken its place.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _not_regular(path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _not_regular(path)
            return _read_up_to(file, path, most)


def _not_regular(path: Path) -> UnsafePathError:
    return UnsafePathError(
        str(path), "is not a regular file", hint="put a regular file there, or a link to one"
    )


def _read_up_to(file: BinaryIO, path: Path, most: int) -> bytes:
    if os.fstat(file.fileno()).st_size > most:
        raise OversizedError(str(path), most)
    data = file.read(most + 1)  # it may have grown since
    if len(data) > most:
        raise OversizedError(str(path), most)
    return data


def read_end(path: Path, most: int) -> bytes | None:
    """Return the last bytes of a plain file; None if there is none."""
    with storing(path):
        try:
            fd = open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return os.pread(fd, most, max(0, os.fstat(fd).st_size - most))
        finally:
            os.close(fd)


def open_plain(path: Path, flags: int) -> int:
    """A descriptor of a plain file of ours; the caller closes it."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with walk.open_parent(path) as folder:
        fd = os.open(path.name, flags, FILE_MODE, dir_fd=folder)
    try:
        _refuse_unless_plain(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def close(fd: int) -> None:
    """Let go of a descriptor that nothing depends on: what an fsync confirmed stays confirmed."""
    with suppress(OSError):
        os.close(fd)


def exists(path: Path) -> bool:
    """Whether anything stands there; a disk that cannot say is an error, not a no."""
    with storing(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def entries(folder: Path) -> Iterator[str]:
    """Yield the names in a folder; none if there is no folder."""
    with storing(folder):
        try:
            fd = walk.open_folder(folder)
        except FileNotFoundError:
            return
        try:
            with os.scandir(fd) as found:
                for entry in found:
                    yield entry.name
        finally:
            os.close(fd)


def make_folder(path: Path) -> None:
    """A folder that only its owner can enter, durable in its parent."""
    with storing(path), walk.open_parent(path) as folder:
        try:
            os.mkdir(path.name, FOLDER_MODE, dir_fd=folder)
        except FileExistsError:
            refuse_link(path)
            return
        _sync(folder, path.parent)


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link where a folder of ours should be: it could point anywhere."""
    with storing(path):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISDIR(mode):
        raise UnsafePathError(
            str(path), "is not a folder", hint="remove it, or move what it points to here"
        )


def make_private(path: Path) -> None:
    """A file that somebody saved with a mode of their own is for its owner alone again."""
    with storing(path):
        fd = open_plain(path, os.O_RDONLY)
        try:
            if stat.S_IMODE(os.fstat(fd).st_mode) != FILE_MODE:
                os.fchmod(fd, FILE_MODE)
        finally:
            os.close(fd)


def stamp(path: Path) -> tuple[int, ...] | None:
    """Changes whenever a file is written or replaced; None: it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino


def born(path: Path) -> int:
    """Return when a file or folder was made, in nanoseconds; 0 if the system does not say."""
    with storing(path):
        birthtime: float | None = getattr(path.stat(), "st_birthtime", None)
    if birthtime is not None:  # not on Linux
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


def modified(path: Path) -> datetime:
    """When a file was last written."""
    with storing(path):
        return datetime.fromtimestamp(path.lstat().st_mtime, UTC)


def set_aside(path: Path, to: Path) -> None:
    """Rename durably."""
    with storing(path), walk.open_parent(path) as source, walk.open_parent(to) as target:
        os.replace(path.name, to.name, src_dir_fd=source, dst_dir_fd=target)
        if to.parent != path.parent:
            _sync(target, to.parent)
        _sync(source, path.parent)


def remove(path: Path, *, root: Path | None = None) -> None:
    """Remove a file or a link, if there is one; with `root`, links below it are refused."""
    with storing(path), suppress(FileNotFoundError), walk.open_parent(path, root) as folder:
        os.unlink(path.name, dir_fd=folder)


def sync_folder(path: Path) -> None:
    with storing(path):
        fd = walk.open_folder(path)
        try:
            _sync(fd, path)
        finally:
            os.close(fd)


def sync_descriptor(fd: int, path: Path) -> None:
    with storing(path):
        _sync(fd, path)


def sweep_temporary(folder: Path, of: str = "") -> None:
    """Remove what a killed writer left half-written; only for the holder of the folder's lock.

    `of`: only what was to become that file, in a folder that is not ours.
    """
    for name in list(entries(folder)):
        if name.startswith(TEMPORARY_PREFIX) and name.endswith(of):
            remove(folder / name)


class Pinned:
    """A file that is kept open, so that no other file is taken for it."""

    def __init__(self, path: Path, flags: int = os.O_RDONLY) -> None:
        self.path = path
        with storing(path):
            self._fd = open_plain(path, flags)

    def is_in_place(self) -> bool:
        """Return whether the file is still the one at its path: it may have been removed."""
        with storing(self.path):
            try:
                there = self.path.lstat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            mine = os.fstat(self._fd)
        return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)

    def size(self) -> int:
        with storing(self.path):
            return os.fstat(self._fd).st_size

    def close(self) -> None:
        close(self._fd)


class Lock(Pinned):
    """The exclusive lock of a file, held as long as this object is open."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, os.O_RDWR | os.O_CREAT)

    def acquire(self, wait: float) -> bool:
        deadline = time.monotonic() + wait
        while True:
            with storing(self.path):
                try:
                    fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        return False
                else:
                    return True
            time.sleep(LOCK_POLL_SECONDS)

    def write(self, start: int, data: bytes) -> None:
        """Overwrite bytes of the locked file in place, durably."""
        with storing(self.path):
            _write_all_at(self._fd, start, data)
            _sync(self._fd, self.path)


@contextmanager
def locked(path: Path, wait: float) -> Iterator[Lock | None]:
    """Hold the exclusive lock of `path`; yields None where it is not free in time.

    The kernel releases it when the process ends, however it ends: there are no stale locks.
    """
    while True:
        lock = Lock(path)
        try:
            if not lock.acquire(wait):
                yield None
                return
            if lock.is_in_place():
                yield lock
                return
        finally:
            lock.close()


def is_locked(path: Path) -> bool:
    """Whether somebody holds the exclusive lock of `path`; asking makes and keeps nothing."""
    with storing(path):
        try:
            fd = open_plain(path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError, walk.LinkedFolderError):
            return False  # behind a link no file is ours
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
    return False


def kind_of(path: Path) -> str:
    """Return what stands at a path, in a word: `file`, `folder`, `link`...; empty: nothing."""
    with storing(path):
        try:
            mode = path.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            return ""  # a folder above it is a link to itself
    return _KINDS.get(stat.S_IFMT(mode), "device")


def _is_in(folder: int, name: str) -> bool:
    try:
        os.lstat(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _write_all_at(fd: int, start: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(fd, rest, start)
        start, rest = start + written, rest[written:]


def _sync(fd: int, path: Path) -> None:
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone leaves it in the drive's cache
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)
    except OSError as error:
        raise NotDurableError(
            str(path),
            f"the disk did not confirm the write ({error.strerror})",
            errno=error.errno,
            hint="check the disk before you go on (dmesg, smartctl)",
        ) from error


def _refuse_unless_plain(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise UnsafePathError(str(path), "is not a plain file", hint="remove it")
