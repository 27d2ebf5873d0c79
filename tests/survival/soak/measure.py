"""What Rekindle's own processes and its files cost: read from /proc and from the disk."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

ROLES: Final = {"run": "supervisor", "daemon": "daemon"}
"""The commands that stay, and what each of them is; hooks and commands run for a moment only."""
_PAGE_KIB: Final = os.sysconf("SC_PAGE_SIZE") // 1024
_TICK: Final = 1 / os.sysconf("SC_CLK_TCK")
_REFERENCE: Final = json.dumps([{"item": number, "done": True} for number in range(200)])
_REFERENCE_ROUNDS: Final = 20
"""Some milliseconds."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A process of Rekindle at one moment."""

    role: str
    life: tuple[int, int]
    """Its process id and its start, which together are unique."""
    memory: int
    """KiB of resident memory."""
    descriptors: int
    seconds: float
    """Processor time since its start."""


def find(root: int) -> list[Seen]:
    """Return the supervisor and the daemon below a process."""
    return list(_descend(root))


def _descend(pid: int) -> Iterator[Seen]:
    """Yield the topmost ones, because a fork looks like its parent until it starts a program."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:  # it has just exited
        return
    for child in children:
        if seen := _read(child):
            yield seen
        else:
            yield from _descend(child)


def _read(pid: int) -> Seen | None:
    folder = Path(f"/proc/{pid}")
    try:
        words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        role = _find_role(words)
        if not role:
            return None
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        return Seen(
            role=role,
            life=(pid, int(fields[19])),
            memory=int((folder / "statm").read_text().split()[1]) * _PAGE_KIB,
            descriptors=len(list((folder / "fd").iterdir())),
            seconds=(int(fields[11]) + int(fields[12])) * _TICK,
        )
    except OSError:
        return None


def _find_role(words: list[str]) -> str:
    for before, word in pairwise(words):
        if before == "rekindle":
            return ROLES.get(word, "")
    return ""


def time_reference() -> float:
    """Return the processor time of a fixed piece of work, which other programs slow down too."""
    began = time.thread_time()
    for _ in range(_REFERENCE_ROUNDS):
        json.loads(_REFERENCE)
    return time.thread_time() - began


def measure_disk(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{inner}/{name}").st_size
            except OSError:  # it was temporary
                continue
    return total
