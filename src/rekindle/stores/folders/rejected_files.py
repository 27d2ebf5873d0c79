"""Name and count `*.rejected` files: edits, drafts and log lines that could not be used."""

import re
from contextlib import suppress
from pathlib import Path

from rekindle.errors import RekindleError
from rekindle.system import remove_folder
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import REJECTED_FILES


def find_free_path(path: Path) -> Path:
    """Return an unused `.rejected` path for a file, with the number after the highest in use."""
    existing = _list_rejected(path)
    # An agent can create a file with the highest possible number; the first free number is used
    # then.
    numbers = (max(existing, default=0) + 1, *range(1, len(existing) + 2))
    names = (f"{path.name}{f'.{number}' if number > 1 else ''}.rejected" for number in numbers)
    return path.with_name(
        next(name for name in names if _parse_number(path, name) not in {0, *existing})
    )


def remove_older(path: Path, newest: Path) -> None:
    """Remove the rejected versions of a file, except for `newest` and a few before it.

    No link is followed. Errors are ignored: an old file that cannot be removed must not block the
    writer.
    """
    with suppress(RekindleError):
        existing = _list_rejected(path)
        others = sorted(number for number, name in existing.items() if name != newest.name)
        for number in others[: max(0, len(others) + 1 - REJECTED_FILES)]:
            with suppress(RekindleError):
                remove_folder.remove_folder(path.with_name(existing[number]))


def _list_rejected(path: Path) -> dict[int, str]:
    """Return the names of the rejected versions of a file, keyed by number."""
    names = {_parse_number(path, name): name for name in durable_files.list_entries(path.parent)}
    return {number: name for number, name in names.items() if number}


def _parse_number(path: Path, name: str) -> int:
    """Return the number in a rejected version's name, or 0 if the name is of another file."""
    # Longer numbers are not accepted, because the file name could become too long.
    pattern = rf"{re.escape(path.name)}(?:\.([1-9][0-9]{{0,8}}))?\.rejected"
    match = re.fullmatch(pattern, name)
    return int(match[1] or 1) if match else 0
