"""Read and replace a project's files without following links.

Each folder is opened relative to its parent, starting at the project's folder, and the kernel
refuses links. Nothing outside the project is read or written, even if an agent replaces folders in
the meantime.
"""

import os
from contextlib import suppress
from pathlib import Path

from rekindle.errors import OversizedError, translate_os_errors
from rekindle.system.files import durable_files, safe_folders

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
"""Modes for ordinary files and folders that other tools may read."""


def read(root: Path, name: str, most: int) -> bytes | None:
    """Return the bytes of a regular file below `root`, or None if it does not exist.

    Raises:
      StoreError: The file is too large, or part of the path is a link or a special file.
    """
    data = durable_files.read_bytes(root / name, most + 1, root=root)
    if data is not None and len(data) > most:
        raise OversizedError(str(root / name), most)
    return data


def replace(root: Path, name: str, data: bytes) -> None:
    """Write `data` to a path below `root` atomically, and create missing folders.

    Raises:
        StoreError: A parent is a link or not a folder, or the disk reports an error.
    """
    make_folder(root, name)
    path = root / name
    temp = f"{durable_files.TEMPORARY_PREFIX}{os.urandom(8).hex()}-{path.name}"
    with translate_os_errors(path), safe_folders.open_parent(path, root) as folder:
        fd = os.open(temp, _NEW_FILE, _FILE_MODE, dir_fd=folder)
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
        StoreError: A parent is a link or not a folder, or the disk reports an error.
    """
    path = root / name
    with translate_os_errors(path):
        for above in reversed(Path(name).parents[:-1]):
            with safe_folders.open_parent(root / above, root) as folder, suppress(FileExistsError):
                os.mkdir(above.name, _FOLDER_MODE, dir_fd=folder)
        os.close(safe_folders.open_folder(path.parent, root))
