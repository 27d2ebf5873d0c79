"""Copies of a project, with its files outside the project's folder."""

import shutil
from pathlib import Path

from rekindle.stores.folders.private_files import find_private_project


def copy_project(original: Path, copy: Path) -> None:
    """Replace a project by a copy, with its seals and commands."""
    source, target = find_private_project(original).path, find_private_project(copy).path
    for path in (copy, target):
        if path.exists():
            shutil.rmtree(path)
    shutil.copytree(original, copy)
    copy_private(source, target)


def copy_private(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copytree(source, target)
