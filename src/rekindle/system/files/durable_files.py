"""Read and write Rekindle's own files durably; only this module calls fsync.

A failed fsync is never retried on the same descriptor: the kernel may have dropped the dirty pages,
and a second fsync would report success for lost bytes.

Nothing below `.rekindle` is reached through a link, even if an agent replaces folders meanwhile
(`safe_folders`).
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from rekindle.errors import (
    OversizedError,
    StoreError,
    UnsafePathError,
    translate_os_errors,
)
from rekindle.policy.settings.runtime_settings import FILE_BYTES
from rekindle.system.files import safe_folders

FILE_MODE = 0o600
FOLDER_MODE = 0o700
TEMPORARY_PREFIX = ".tmp-"
TORN_MARK = b" torn\n"
"""Text appended to a line that was torn, and therefore never acknowledged by its writer."""
REFUSED_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors that a process gets if it may not read or write a path, for example in a sandbox."""
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(
    path: Path,
    data: bytes,
    *,
    mode: int = FILE_MODE,
    root: Path | None = None,
    is_durable: bool = True,
) -> None:
    """Write `data` to `path` so that a reader or a crash sees either the old content or the new.

    With `root`, a folder above `path`, links below it are refused. Without `is_durable`, a host
    crash may lose both the old and the new content.
    """
    # The name is unique, so that two writers never share a temporary file.
    temp = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with translate_os_errors(path), safe_folders.open_parent(path, root) as folder:
        fd = os.open(temp, flags, FILE_MODE, dir_fd=folder)
        try:
            try:
                if mode != FILE_MODE:
                    os.fchmod(fd, mode)
                _write_all(fd, data)
                if is_durable:
                    _sync(fd, path)
            finally:
                os.close(fd)
            os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=folder)
            raise
        if is_durable:
            _sync(folder, path.parent)


def append_durably(path: Path, data: bytes) -> int:
    """Append durably and return the start offset; if this fails, the file is unchanged.

    For a file of lines with a single writer. If a power loss or a full disk left the last line
    torn, the line is marked, so that it is never mistaken for a complete line, and the new data
    starts on the next line.
    """
    with translate_os_errors(path), safe_folders.open_parent(path) as folder:
        is_new = not _is_in(folder, path.name)
        fd = os.open(path.name, _APPENDING, FILE_MODE, dir_fd=folder)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            try:
                _write_all(fd, TORN_MARK + data if torn else data)
                _sync(fd, path)
            except BaseException:
                # Readers must not see unacknowledged data, and a later append must write these
                # pages again, because a failed fsync may have marked them clean.
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if is_new:
            _sync(folder, path.parent)
    return size + (len(TORN_MARK) if torn else 0)


def truncate_file(path: Path, end: int) -> None:
    """Cut off everything after the offset `end`, durably."""
    with translate_os_errors(path), hold_plain(path, os.O_WRONLY) as fd:
        os.ftruncate(fd, end)
        _sync(fd, path)


def write_from(path: Path, start: int, pieces: Iterable[bytes]) -> int:
    """Write pieces durably after the first `start` bytes of a file, and return the end offset.

    Bytes that are already after `start` are dropped: they were left by a killed writer, which never
    acknowledged them.
    """
    with translate_os_errors(path):
        is_new = not path_exists(path)
        with hold_plain(path, os.O_WRONLY | os.O_CREAT) as fd:
            os.ftruncate(fd, start)
            os.lseek(fd, start, os.SEEK_SET)
            for piece in pieces:
                _write_all(fd, piece)
            _sync(fd, path)
            end = os.lseek(fd, 0, os.SEEK_CUR)
    if is_new:
        sync_folder(path.parent)
    return end


def write_at(path: Path, start: int, data: bytes) -> None:
    """Overwrite bytes of a file in place, durably; this also works on a full disk."""
    with translate_os_errors(path):
        is_new = not path_exists(path)
        with hold_plain(path, os.O_WRONLY | os.O_CREAT) as fd:
            overwrite_durably(fd, path, start, data)
    if is_new:
        sync_folder(path.parent)


def overwrite_durably(fd: int, path: Path, start: int, data: bytes) -> None:
    """Overwrite bytes of an open file in place, durably."""
    with translate_os_errors(path):
        rest = memoryview(data)
        while rest:
            written = os.pwrite(fd, rest, start)
            start, rest = start + written, rest[written:]
        _sync(fd, path)


def read_bytes(path: Path, most: int = -1, *, root: Path | None = None) -> bytes | None:
    """Return the file's bytes, at most the first `most`, or None if the file does not exist.

    Links, pipes and oversized files are refused; with `root`, links below it are refused too.
    """
    with translate_os_errors(path):
        try:
            fd = open_plain(path, os.O_RDONLY, root)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            return file.read(most) if most >= 0 else _read_up_to(file, path, FILE_BYTES)


def read_user_file(path: Path, most: int) -> bytes:
    """Return the bytes of a regular file that the user named; links are followed.

    Raises:
        UnsafePathError: The path is a FIFO, device, socket or folder; reading could block forever.
        OversizedError: The file is larger than `most` bytes.
    """
    with translate_os_errors(path):
        # The file is checked again after opening, because it may have been replaced meanwhile.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _make_not_regular_error(path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _make_not_regular_error(path)
            return _read_up_to(file, path, most)


def _make_not_regular_error(path: Path) -> UnsafePathError:
    return UnsafePathError(
        str(path),
        "is not a regular file",
        hint="put a regular file there, or a link to a regular file",
    )


def _read_up_to(file: BinaryIO, path: Path, most: int) -> bytes:
    if os.fstat(file.fileno()).st_size > most:
        raise OversizedError(str(path), most)
    data = file.read(most + 1)  # the file may have grown meanwhile
    if len(data) > most:
        raise OversizedError(str(path), most)
    return data


def read_last_bytes(path: Path, most: int) -> bytes | None:
    """Return the last bytes of a regular file, or None if it does not exist."""
    with translate_os_errors(path):
        try:
            with hold_plain(path, os.O_RDONLY) as fd:
                return os.pread(fd, most, max(0, os.fstat(fd).st_size - most))
        except FileNotFoundError:
            return None


def open_plain(path: Path, flags: int, root: Path | None = None) -> int:
    """Open a regular file without following links; the caller must close the descriptor."""
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with safe_folders.open_parent(path, root) as folder:
        fd = os.open(path.name, flags, FILE_MODE, dir_fd=folder)
    try:
        _refuse_unless_plain(fd, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


@contextmanager
def hold_plain(path: Path, flags: int) -> Iterator[int]:
    """Yield a descriptor for a regular file, opened without following links, then close it."""
    fd = open_plain(path, flags)
    try:
        yield fd
    finally:
        close_descriptor(fd)


def close_descriptor(fd: int) -> None:
    """Close a descriptor and ignore errors: data that fsync has confirmed is safe anyway."""
    with suppress(OSError):
        os.close(fd)


def path_exists(path: Path) -> bool:
    """Return whether anything exists at the path; raise an error if the disk cannot be read."""
    with translate_os_errors(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def list_entries(folder: Path) -> Iterator[str]:
    """Yield the names in a folder, or none if the folder does not exist."""
    with translate_os_errors(folder):
        try:
            fd = safe_folders.open_folder(folder)
        except FileNotFoundError:
            return
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    yield entry.name
        finally:
            os.close(fd)


def make_folder(path: Path) -> None:
    """Create a folder durably; only its owner can enter it."""
    with translate_os_errors(path), safe_folders.open_parent(path) as folder:
        try:
            os.mkdir(path.name, FOLDER_MODE, dir_fd=folder)
        except FileExistsError:
            refuse_link(path)
            return
        _sync(folder, path.parent)


def refuse_link(path: Path) -> None:
    """Raise an error if one of Rekindle's folders is a symbolic link: it could point anywhere."""
    with translate_os_errors(path):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
    if not stat.S_ISDIR(mode):
        raise UnsafePathError(
            str(path), "is not a folder", hint="remove the link, or move its target here"
        )


def make_private(path: Path) -> None:
    """Make a file accessible only to its owner again, in case an editor changed its mode."""
    with translate_os_errors(path), hold_plain(path, os.O_RDONLY) as fd:
        if stat.S_IMODE(os.fstat(fd).st_mode) != FILE_MODE:
            os.fchmod(fd, FILE_MODE)


def rename_durably(path: Path, to: Path) -> None:
    with (
        translate_os_errors(path),
        safe_folders.open_parent(path) as source,
        safe_folders.open_parent(to) as target,
    ):
        os.replace(path.name, to.name, src_dir_fd=source, dst_dir_fd=target)
        if to.parent != path.parent:
            _sync(target, to.parent)
        _sync(source, path.parent)


def remove_file(path: Path, *, root: Path | None = None) -> None:
    """Remove a file or a link, if it exists; with `root`, links below it are refused."""
    with (
        translate_os_errors(path),
        suppress(FileNotFoundError),
        safe_folders.open_parent(path, root) as folder,
    ):
        os.unlink(path.name, dir_fd=folder)


def sync_folder(path: Path) -> None:
    with translate_os_errors(path):
        fd = safe_folders.open_folder(path)
        try:
            _sync(fd, path)
        finally:
            os.close(fd)


def sync_descriptor(fd: int, path: Path) -> None:
    with translate_os_errors(path):
        _sync(fd, path)


def sweep_temporary(folder: Path, of: str = "") -> None:
    """Remove temporary files of killed writers; the caller must hold the folder's lock.

    With `of`, remove only temporary files for the file of that name; this is used in folders that
    do not belong to Rekindle.
    """
    for name in list(list_entries(folder)):
        if name.startswith(TEMPORARY_PREFIX) and name.endswith(of):
            remove_file(folder / name)


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


def _sync(fd: int, path: Path) -> None:
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone leaves the data in the drive's cache
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        else:
            os.fsync(fd)
    except OSError as error:
        raise StoreError(
            str(path),
            f"the disk did not confirm the write ({error.strerror})",
            errno=error.errno,
            hint="check the disk before you continue (dmesg, smartctl)",
        ) from error


def _refuse_unless_plain(fd: int, path: Path) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise UnsafePathError(str(path), "is not a regular file", hint="remove it")
