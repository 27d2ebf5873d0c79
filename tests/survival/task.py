"""The task of every cell: twenty small files, and a ledger that shows lost and repeated work."""

import hashlib
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TOTAL: Final = 20
LEDGER: Final = "ledger.txt"
CHECK: Final = "sh check.sh"
"""The command that verifies the work; it fails until all files are right."""
LISTING: Final = (
    "sha256sum -c items.sha256 2>/dev/null | sed -n 's/^items.\\(..\\).txt: OK$/done \\1/p'"
)
LISTED: Final = "that is all"
"""The last line of a complete list."""
_PROMPT: Final = """\
# Task

Write the files items/01.txt to items/{total:02}.txt, in this order. The file of item NN has one
line: `item NN` and the first sixteen hexadecimal digits of the SHA-256 of the text `item NN`. In
the same command, append the line `NN DIGITS` to {ledger}, so that each item is there exactly once.

First look at what is already there: items.sha256 has the checksums of all files. Then write the
next missing item, one at a time. `{check}` passes once all items are right.
"""


def digits(item: int) -> str:
    return hashlib.sha256(f"item {item:02}".encode()).hexdigest()[:16]


def content(item: int) -> str:
    return f"item {item:02} {digits(item)}\n"


def write_command(item: int) -> str:
    """Return the shell command that writes an item and its line in the ledger."""
    line = shlex.quote(content(item).strip())
    return (
        f"mkdir -p items && echo {line} > items/{item:02}.txt"
        f" && echo '{item:02} {digits(item)}' >> {LEDGER} && echo 'written {item:02}'"
    )


def list_command() -> str:
    """Return the shell command that prints the numbers of the items that are right."""
    return f"{LISTING}; echo '{LISTED}'"


def prompt(ending: str) -> str:
    """Return the task; `ending` says how to report that it is finished."""
    told = _PROMPT.format(total=TOTAL, ledger=LEDGER, check=CHECK)
    return f"{told}\n{ending.strip()}\n" if ending else told


def prepare(project: Path, total: int = TOTAL) -> None:
    """Write the checksums and the check into an empty project; the check wants `total` items."""
    hashed = [hashlib.sha256(content(item).encode()).hexdigest() for item in range(1, TOTAL + 1)]
    sums = [f"{digest}  items/{item:02}.txt\n" for item, digest in enumerate(hashed, 1)]
    (project / "items.sha256").write_text("".join(sums))
    (project / "check.sh").write_text(f"head -n {total} items.sha256 | sha256sum --quiet -c -\n")


@dataclass(frozen=True, slots=True)
class Count:
    """What the project contains in the end."""

    done: int
    """Items whose file is right."""
    lost: int
    """Items in the ledger whose file is missing or wrong."""
    twice: int
    """Further lines in the ledger for an item that it already has."""


def count(project: Path) -> Count:
    written = Counter(_ledger(project))
    right = {item for item in range(1, TOTAL + 1) if _read(project, item) == content(item)}
    return Count(
        done=len(right),
        lost=len(written.keys() - right),
        twice=sum(times - 1 for times in written.values()),
    )


def begun(project: Path) -> int:
    """Return how many items are in the ledger, each counted once."""
    return len(set(_ledger(project)))


def _ledger(project: Path) -> list[int]:
    """Return the items of all complete lines."""
    path = project / LEDGER
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    known = {f"{item:02} {digits(item)}": item for item in range(1, TOTAL + 1)}
    return [known[line] for line in lines if line in known]


def _read(project: Path, item: int) -> str:
    path = project / f"items/{item:02}.txt"
    return path.read_text(errors="replace") if path.exists() else ""
