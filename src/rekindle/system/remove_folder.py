"""Remove a folder with everything in it, without following links."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from rekindle.errors import storing
from rekindle.system import walk

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_folder(path: Path) -> None:
    """Remove a folder, a file or a link that is there; a folder that is a mount point stays, empty.

    The folder is opened once. If another process exchanges it for a link meanwhile, the removal
    continues in the folder that was opened.
    """
    with storing(path), walk.open_parent(path) as parent:
        try:
            folder = os.open(path.name, _FLAGS, dir_fd=parent)
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            os.unlink(path.name, dir_fd=parent)
            return
        try:
            _empty(folder)
        finally:
            os.close(folder)
        with suppress(OSError):
            os.rmdir(path.name, dir_fd=parent)


def _empty(folder: int) -> None:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.name, dir_fd=folder)
        else:
            os.unlink(entry.name, dir_fd=folder)
