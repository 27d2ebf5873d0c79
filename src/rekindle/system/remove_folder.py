"""Remove a folder and its contents without following links."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from rekindle.errors import translate_os_errors
from rekindle.system.files import safe_folders

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(path: Path) -> None:
    """Remove a folder, file or link. A mount point is only emptied.

    The folder is opened once. If another process replaces it with a link, the link is not followed.
    """
    with translate_os_errors(path), safe_folders.open_parent(path) as parent:
        try:
            folder = os.open(path.name, _FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            os.unlink(path.name, dir_fd=parent)
            return
        try:
            _empty_folder(folder)
        finally:
            os.close(folder)
        with suppress(OSError):
            os.rmdir(path.name, dir_fd=parent)


def _empty_folder(folder: int) -> None:
    with os.scandir(folder) as scanned:
        entries = list(scanned)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.name, dir_fd=folder)
        else:
            os.unlink(entry.name, dir_fd=folder)
