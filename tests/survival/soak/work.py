"""The work of the soak: numbered items over many cycles, and a ledger that shows what went wrong.

The files have random names: after forty cycles, Rekindle would no longer count a series of numbered
files as progress.
"""

import hashlib
import re
import shlex
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from loopback.log import Part
from survival import player, task
from survival.player import Look, Move, View, Write
from survival.task import Count

EACH: Final = 3
"""Items of a cycle."""
_LISTED: Final = 8
"""Items at the end of a list; a list that grew would make each cycle larger than the last one."""
_WRITTEN: Final = re.compile(r"\bwritten \d{3,}$", re.MULTILINE)
_LETTERS: Final = str.maketrans("0123456789abcdef", "bcdfghjkmnpqrstv")
_PROMPT: Final = """\
# Task

Write {total} items, {each} in each cycle. items.sha256 has their files, in order, and the checksum
of each. For each item, append its line to {ledger} in the same command, so that each item is there
exactly once. First look at the last items that are already there. `{check}` passes once all items
are right.
"""


def name(item: int) -> str:
    return task.digits(item)[:8].translate(_LETTERS)


def line(item: int) -> str:
    """Return the line of an item in the ledger; its file has the same."""
    return f"{item:03} {task.digits(item)}"


def _content(item: int) -> str:
    return f"{line(item)}\n"


def prompt(total: int) -> str:
    return _PROMPT.format(total=total, each=EACH, ledger=task.LEDGER, check=task.CHECK)


def prepare(project: Path, total: int) -> None:
    """Write the checksums and the check into an empty project."""
    sums = [
        f"{hashlib.sha256(_content(item).encode()).hexdigest()}  items/{name(item)}.txt\n"
        for item in range(1, total + 1)
    ]
    (project / "items.sha256").write_text("".join(sums))
    (project / "check.sh").write_text("sha256sum --quiet -c items.sha256\n")


# The scripted model


def decide(view: View, parts: Iterable[Part], total: int) -> Move:
    """Return the next move: a cycle ends after an item that is the last one of a cycle."""
    if view.known is None:
        return Look()
    done = max(view.known, default=0)
    if done >= total:
        return player.report(view, player.DONE, "All items are written, and the check passes.")
    if done % EACH == 0 and _has_written(parts):
        names = ", ".join(name(item) for item in range(done + 1, min(done + EACH, total) + 1))
        return player.report(view, f"Next: {names}", "The cycle is complete.")
    return Write(done + 1)


def _has_written(parts: Iterable[Part]) -> bool:
    """Return whether any item was written in this conversation."""
    return any(part.form == "result" and _WRITTEN.search(part.text) for part in parts)


def command(move: player.Look | player.Write | player.Relay | player.Finish) -> str:
    """Return the shell command of a move."""
    match move:
        case Look():
            return (
                "sha256sum -c items.sha256 2>/dev/null"
                " | awk '/: OK$/ {printf \"done %03d\\n\", NR}'"
                f" | tail -n {_LISTED}; echo '{task.LISTED}'"
            )
        case Write(item):
            text = shlex.quote(line(item))
            return (
                f"mkdir -p items && echo {text} > items/{name(item)}.txt"
                f" && echo {text} >> {task.LEDGER} && echo 'written {item:03}'"
            )
        case _:
            return player.command(move)


# The count


def count(project: Path, total: int) -> Count:
    """Return what the project contains in the end."""
    written = Counter(_ledger(project, total))
    right = {
        item
        for item in range(1, total + 1)
        if _read(project / f"items/{name(item)}.txt") == _content(item)
    }
    return Count(
        done=len(right),
        lost=len(written.keys() - right),
        twice=sum(times - 1 for times in written.values()),
    )


def begun(project: Path, total: int) -> int:
    """Return how many items are in the ledger, each counted once."""
    return len(set(_ledger(project, total)))


def _ledger(project: Path, total: int) -> list[int]:
    """Return the items of all complete lines."""
    known = {line(item): item for item in range(1, total + 1)}
    lines = _read(project / task.LEDGER).splitlines()
    return [known[each] for each in lines if each in known]


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
