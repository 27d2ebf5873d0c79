"""Find changed files in a folder without git."""

import os
from collections import deque
from itertools import islice
from pathlib import Path

from rekindle.formats.identifiers import to_one_line
from rekindle.policy.progress.artefacts import may_hold_artefacts
from rekindle.policy.settings.runtime_settings import UNVERSIONED_FILES
from rekindle.thresholds.texts import PATH_CHARACTERS


def list_changed(folder: str, since: float) -> tuple[str, ...]:
    """Return the files in a folder that were written after a given time.

    In a huge folder, only some of the files are checked, starting at the top. Links are not
    followed.
    """
    changed: list[str] = []
    waiting, remaining = deque([""]), UNVERSIONED_FILES
    while waiting and remaining > 0:
        below = waiting.popleft()
        try:
            with os.scandir(Path(folder, below)) as entries:
                listed = sorted(islice(entries, remaining), key=lambda entry: entry.name)
        except OSError:
            continue  # removed or unreadable
        remaining -= len(listed)
        for entry in listed:
            path = f"{below}{entry.name}"
            if not may_hold_artefacts(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(f"{path}/")
            elif entry.is_file(follow_symlinks=False) and _read_changed_at(entry) >= since:
                changed.append(to_one_line(path, PATH_CHARACTERS))
    return tuple(changed)


def _read_changed_at(entry: "os.DirEntry[str]") -> float:
    """Return when a file was last changed, or 0 if it does not exist.

    A copied or unpacked file may have an old modification time, but its inode's change time is new.
    """
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return 0.0
    return max(status.st_mtime, status.st_ctime)
