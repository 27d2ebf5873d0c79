"""Read and write Rekindle's own files durably. Only this module calls fsync.

After a failed fsync, the same descriptor is never synced again: the kernel may have dropped the
dirty pages, and a second fsync would report success for lost bytes.

Links below `.rekindle` are never followed, even while an agent replaces folders (`safe_folders`).
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
_TEMPORARY_ENDING = "~"
TORN_MARK = b" torn\n"
"""Text appended to a torn line, which its writer never acknowledged."""
REFUSED_ERRNOS = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
"""Errors for paths that this process cannot read or write, for example in a sandbox."""
_APPENDING = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def replace_file(
    path: Path,
    data: bytes | Iterable[bytes],
    *,
    mode: int = FILE_MODE,
    root: Path | None = None,
    is_durable: bool = True,
) -> None:
    """Replace a file atomically: readers see either the old content or the new.

    The content can be given in pieces, if it may not fit into memory. With `root`, links below that
    folder are refused. Without `is_durable`, a power loss may lose both the old and the new
    content.
    """
    # A unique name keeps two writers from sharing a temporary file. Its ending hides the file from
    # programs that read all files with the same ending as `path`.
    temp = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}{_TEMPORARY_ENDING}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with translate_os_errors(path), safe_folders.open_parent(path, root) as folder:
        fd = os.open(temp, flags, FILE_MODE, dir_fd=folder)
        try:
            try:
                if mode != FILE_MODE:
                    os.fchmod(fd, mode)
                for piece in (data,) if isinstance(data, bytes) else data:
                    _write_all(fd, piece)
                if is_durable:
                    _sync_file(fd, path)
            finally:
                os.close(fd)
            os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=folder)
            raise
        if is_durable:
            _sync_file(folder, path.parent)


def append_durably(path: Path, data: bytes) -> int:
    """Append durably and return the start offset. If this fails, the file is unchanged.

    The file must be line-based and have a single writer. If a power loss or a full disk left a torn
    last line, it is marked as torn, and the new data starts on the next line.
    """
    with translate_os_errors(path), safe_folders.open_parent(path) as folder:
        is_new = not _is_in(folder, path.name)
        fd = os.open(path.name, _APPENDING, FILE_MODE, dir_fd=folder)
        try:
            size = os.fstat(fd).st_size
            torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            try:
                _write_all(fd, TORN_MARK + data if torn else data)
                _sync_file(fd, path)
            except BaseException:
                # Readers must not see unacknowledged data. The pages must also be rewritten,
                # because a failed fsync may have marked them clean.
                with suppress(OSError):
                    os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
        if is_new:
            _sync_file(folder, path.parent)
    return size + (len(TORN_MARK) if torn else 0)


def truncate_file(path: Path, end: int) -> None:
    """Truncate a file durably at the offset `end`."""
    with translate_os_errors(path), hold_plain(path, os.O_WRONLY) as fd:
        os.ftruncate(fd, end)
        _sync_file(fd, path)


def write_from(path: Path, start: int, pieces: Iterable[bytes]) -> int:
    """Write data durably after the first `start` bytes of a file, and return the end offset.

    Anything already there was left by a killed writer and is overwritten.
    """
    with translate_os_errors(path):
        is_new = not path_exists(path)
        with hold_plain(path, os.O_WRONLY | os.O_CREAT) as fd:
            os.ftruncate(fd, start)
            os.lseek(fd, start, os.SEEK_SET)
            for piece in pieces:
                _write_all(fd, piece)
            _sync_file(fd, path)
            end = os.lseek(fd, 0, os.SEEK_CUR)
    if is_new:
        sync_folder(path.parent)
    return end


def write_at(path: Path, start: int, data: bytes) -> None:
    """Overwrite part of a file in place, durably. This works even on a full disk."""
    with translate_os_errors(path):
        is_new = not path_exists(path)
        with hold_plain(path, os.O_WRONLY | os.O_CREAT) as fd:
            overwrite_durably(fd, path, start, data)
    if is_new:
        sync_folder(path.parent)


def overwrite_durably(fd: int, path: Path, start: int, data: bytes) -> None:
    """Overwrite part of an open file in place, durably."""
    with translate_os_errors(path):
        rest = memoryview(data)
        while rest:
            written = os.pwrite(fd, rest, start)
            start, rest = start + written, rest[written:]
        _sync_file(fd, path)


def read_bytes(path: Path, most: int = -1, *, root: Path | None = None) -> bytes | None:
    """Return a file's content, or None if it does not exist.

    Refuse links, pipes and files larger than `most` bytes. With `root`, also refuse links among the
    folders between `root` and the file.
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
    with open_user_file(path) as file:
        return _read_up_to(file, path, most)


@contextmanager
def open_user_file(path: Path) -> Iterator[BinaryIO]:
    """Open a regular file that the user named; links are followed.

    Raises:
        UnsafePathError: The path is a FIFO, device, socket or folder; reading could block forever.
    """
    with translate_os_errors(path):
        # Check the open file again, because it may have been replaced.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _make_not_regular_error(path)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise _make_not_regular_error(path)
            yield file


def _make_not_regular_error(path: Path) -> UnsafePathError:
    return UnsafePathError(
        str(path),
        "is not a regular file",
        hint="put a regular file there, or a link to a regular file",
    )


def _read_up_to(file: BinaryIO, path: Path, most: int) -> bytes:
    if os.fstat(file.fileno()).st_size > most:
        raise OversizedError(str(path), most)
    data = file.read(most + 1)  # the file may have grown
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
    """Open a regular file without following links. The caller closes the descriptor."""
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
    """Open a regular file without following links, and close it after the block."""
    fd = open_plain(path, flags)
    try:
        yield fd
    finally:
        close_descriptor(fd)


def close_descriptor(fd: int) -> None:
    """Close a descriptor and ignore errors, because fsync has already confirmed the data."""
    with suppress(OSError):
        os.close(fd)


def path_exists(path: Path) -> bool:
    """Return whether anything exists at the path. Raise an error if the disk cannot be read."""
    with translate_os_errors(path):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
    return True


def list_entries(folder: Path) -> Iterator[str]:
    """Yield the names in a folder, or nothing if it does not exist."""
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
    """Create a folder durably, accessible only to its owner."""
    with translate_os_errors(path), safe_folders.open_parent(path) as folder:
        try:
            os.mkdir(path.name, FOLDER_MODE, dir_fd=folder)
        except FileExistsError:
            refuse_link(path)
            return
        _sync_file(folder, path.parent)


def refuse_link(path: Path) -> None:
    """Raise an error if one of Rekindle's folders is a symbolic link."""
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
    """Restrict a file to its owner, in case an editor changed its mode."""
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
            _sync_file(target, to.parent)
        _sync_file(source, path.parent)


def remove_file(path: Path, *, root: Path | None = None) -> None:
    """Remove a file or link if it exists. With `root`, links below that folder are refused."""
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
            _sync_file(fd, path)
        finally:
            os.close(fd)


def sync_file_system(folder: Path) -> None:
    """Flush the file system that contains a folder."""
    import ctypes  # noqa: PLC0415 - slows every start

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    with translate_os_errors(folder):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if call is None or call(fd) != 0:
                os.sync()
        finally:
            os.close(fd)


def sync_descriptor(fd: int, path: Path) -> None:
    with translate_os_errors(path):
        _sync_file(fd, path)


def sweep_temporary(folder: Path, of: str = "") -> None:
    """Remove temporary files left by killed writers. The caller holds the folder's lock.

    With `of`, remove only the temporary files for that name. Use it in folders that do not belong
    to Rekindle.
    """
    for name in list(list_entries(folder)):
        if name.startswith(TEMPORARY_PREFIX) and name.removesuffix(_TEMPORARY_ENDING).endswith(of):
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


def _sync_file(fd: int, path: Path) -> None:
    try:
        if hasattr(fcntl, "F_FULLFSYNC"):  # on macOS, fsync leaves data in the drive's cache
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
