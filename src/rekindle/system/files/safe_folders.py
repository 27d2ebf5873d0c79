"""Open folders below `.rekindle` without following links.

An agent can write in its workspace, so it can replace one of Rekindle's folders with a symbolic
link at any time, even between a check and a write. This module opens each folder relative to its
parent, and the kernel refuses links. Creating, renaming or removing files through `dir_fd` then
affects only the folder that was opened.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REKINDLE_FOLDER_NAME = ".rekindle"
"""Name of the folder in a project where Rekindle stores its state."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class LinkedFolderError(OSError):
    """A folder below `.rekindle` is a link."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def open_folder(path: Path, root: Path | None = None) -> int:
    """Open a folder; the caller must close the descriptor.

    Links are followed only above the last `.rekindle` in the path, because a project may be reached
    through a link. With `root`, a folder above `path`, links are followed only down to that folder.

    Raises:
        LinkedFolderError: `.rekindle`, or a name below it or below `root`, is a link.
        OSError: The folder cannot be opened.
    """
    above, names = _split_path(f"{path}/")
    if root is not None:
        above, names = str(root), list(path.relative_to(root).parts)
    fd = os.open(above, _FLAGS)
    for name in names:
        try:
            inner = os.open(name, _FLAGS | os.O_NOFOLLOW, dir_fd=fd)
        except OSError as error:
            # Linux returns ENOTDIR for links too. Anything else that is not a folder is treated as
            # missing.
            is_refused = error.errno in {errno.ENOTDIR, errno.ELOOP}
            if is_refused and stat.S_ISLNK(os.lstat(name, dir_fd=fd).st_mode):
                raise LinkedFolderError(path) from None
            raise
        finally:
            os.close(fd)
        fd = inner
    return fd


@contextmanager
def open_parent(path: Path, root: Path | None = None) -> Iterator[int]:
    """Open the folder that contains `path`."""
    fd = open_folder(path.parent, root)
    try:
        yield fd
    finally:
        os.close(fd)


def _split_path(path: str) -> tuple[str, list[str]]:
    """Split a path into the part that may contain links and the remaining names."""
    at = path.rfind(f"/{REKINDLE_FOLDER_NAME}/")
    if at >= 0:
        return path[:at] or "/", path[at + 1 : -1].split("/")
    if path.startswith(f"{REKINDLE_FOLDER_NAME}/"):
        return ".", path[:-1].split("/")
    return path, []
