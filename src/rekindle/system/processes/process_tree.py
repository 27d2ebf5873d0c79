"""Find a process's descendants in the process tree."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple


class ProcessRow(NamedTuple):
    """A row of the kernel's process table."""

    parent: int
    group: int
    born: int
    """Start time in the kernel's unit; unique together with the pid."""


ProcessTable = Mapping[int, ProcessRow]
ProcessIdentity = tuple[int, int]
"""Pid and start time of a process."""


def find_descendants(
    roots: Collection[int], table: ProcessTable, but: Collection[ProcessIdentity] = ()
) -> set[int]:
    """Return the descendants of `roots`, except `but` and its descendants."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, row in table.items():
        if (pid, row.born) not in but:
            children[row.parent].append(pid)
    descendants: set[int] = set()
    unvisited = list(roots)
    while unvisited:
        new = [pid for pid in children[unvisited.pop()] if pid not in descendants]
        descendants.update(new)
        unvisited.extend(new)
    return descendants
