"""Files that were changed in a folder without git, as the file system knows it."""

import os
from collections import deque
from itertools import islice
from pathlib import Path

from rekindle.documents.identity import one_line
from rekindle.policy.artefacts import is_searched
from rekindle.policy.settings import UNVERSIONED_FILES
from rekindle.thresholds.texts import PATH_CHARACTERS


def list_changed(folder: str, since: float) -> tuple[str, ...]:
    """Return the files below a folder that were written after a moment.

    A huge folder is read in part, the files at its top first. Links are not followed.
    """
    changed: list[str] = []
    waiting, left = deque([""]), UNVERSIONED_FILES
    while waiting and left > 0:
        below = waiting.popleft()
        try:
            with os.scandir(Path(folder, below)) as entries:
                found = sorted(islice(entries, left), key=lambda entry: entry.name)
        except OSError:
            continue  # removed meanwhile, or not ours to read
        left -= len(found)
        for entry in found:
            path = f"{below}{entry.name}"
            if not is_searched(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            elif entry.is_file(follow_symlinks=False) and _changed_at(entry) >= since:
                changed.append(one_line(path, PATH_CHARACTERS))
    return tuple(changed)


def _changed_at(entry: "os.DirEntry[str]") -> float:
    """Return when a file was changed; 0 if it is gone.

    Unpacked or copied files may keep an old modification time, but not the time of the inode.
    """
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return 0.0
    return max(found.st_mtime, found.st_ctime)
