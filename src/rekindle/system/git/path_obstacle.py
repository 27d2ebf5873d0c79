"""Find what is in the way of a new file in a work tree."""

import os
from pathlib import Path


def find_obstacle(root: Path, name: str) -> str:
    """Return the existing path that blocks a new file, or ""."""
    parts = name.split("/")
    for length in range(1, len(parts) + 1):
        prefix = "/".join(parts[:length])
        path = root / prefix
        if not os.path.lexists(path):
            return ""
        if length == len(parts) or path.is_symlink() or not path.is_dir():
            return prefix
    return ""
