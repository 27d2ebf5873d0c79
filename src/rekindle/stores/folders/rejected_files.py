"""Name and remove `*.rejected` files: edits, drafts and log lines that were not usable."""

import re
from contextlib import suppress
from pathlib import Path

from rekindle.errors import RekindleError
from rekindle.system import remove_folder
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import REJECTED_FILES


def find_free_path(path: Path) -> Path:
    """Return the next unused `.rejected` path for a file."""
    existing = _list_rejected(path)
    # If an agent has used the highest possible number, take the first free one.
    numbers = (max(existing, default=0) + 1, *range(1, len(existing) + 2))
    names = (f"{path.name}{f'.{number}' if number > 1 else ''}.rejected" for number in numbers)
    return path.with_name(
        next(name for name in names if _parse_number(path, name) not in {0, *existing})
    )


def remove_older(path: Path, newest: Path) -> None:
    """Remove all but the last few rejected versions of a file.

    Links are not followed. Errors are ignored, because an old file must not block the writer.
    """
    with suppress(RekindleError):
        existing = _list_rejected(path)
        others = sorted(number for number, name in existing.items() if name != newest.name)
        for number in others[: max(0, len(others) + 1 - REJECTED_FILES)]:
            with suppress(RekindleError):
                remove_folder.remove_folder(path.with_name(existing[number]))


def _list_rejected(path: Path) -> dict[int, str]:
    """Return the names of a file's rejected versions, by number."""
    names = {_parse_number(path, name): name for name in durable_files.list_entries(path.parent)}
    return {number: name for number, name in names.items() if number}


def _parse_number(path: Path, name: str) -> int:
    """Return the number in a rejected version's name, or 0 for other files."""
    # With more digits, the file name could become too long.
    pattern = rf"{re.escape(path.name)}(?:\.([1-9][0-9]{{0,8}}))?\.rejected"
    match = re.fullmatch(pattern, name)
    return int(match[1] or 1) if match else 0
