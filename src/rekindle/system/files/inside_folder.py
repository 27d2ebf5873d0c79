"""Read and replace files of a project without following the links that an agent may create.

Each folder is opened relative to the one above it, starting from the project's, and the kernel
refuses links. Nothing outside the project is read or written, even if an agent replaces folders
meanwhile.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rekindle.errors import (
    OversizedError,
    UnsafePathError,
    translate_os_errors,
)
from rekindle.system.files.durable_files import TEMPORARY_PREFIX

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
"""Modes of a user's ordinary files, which other tools may read."""


def read(root: Path, name: str, most: int) -> bytes | None:
    """Return the bytes of a plain file below `root`; None if it does not exist.

    Raises:
        StoreError: The file or a folder above it is a link or another object, or it is too large.
    """
    path = root / name
    with translate_os_errors(path):
        try:
            with _hold_parent(root, name) as folder:
                fd = os.open(path.name, os.O_RDONLY | _PLAIN, dir_fd=folder)
        except FileNotFoundError:
            return None
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise UnsafePathError(str(path), "is not a plain file", hint="remove it")
            data = file.read(most + 1)
    if len(data) > most:
        raise OversizedError(str(path), most)
    return data


def replace(root: Path, name: str, data: bytes) -> None:
    """Write `data` to a path below `root` atomically; create missing folders.

    Raises:
        StoreError: A folder above it is a link or another object, or the disk refuses.
    """
    path = root / name
    temp = f"{TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}"
    with translate_os_errors(path), _hold_parent(root, name, make=True) as folder:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, _FILE_MODE, dir_fd=folder)
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            os.replace(temp, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(OSError):
                os.unlink(temp, dir_fd=folder)
            raise


def make_folder(root: Path, name: str) -> None:
    """Create the missing folders above a file.

    Raises:
        StoreError: One of them is a link or another object, or the disk refuses.
    """
    with translate_os_errors(root / name), _hold_parent(root, name, make=True):
        pass


@contextmanager
def _hold_parent(root: Path, name: str, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of the folder that contains a file."""
    fd = os.open(root, _FOLDER)
    try:
        for part in Path(name).parts[:-1]:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, _FOLDER_MODE, dir_fd=fd)
            inner = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=fd)
            os.close(fd)
            fd = inner
        yield fd
    finally:
        os.close(fd)
