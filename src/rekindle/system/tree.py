"""The tree of processes: which process is below which other."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import NamedTuple


class Row(NamedTuple):
    """A process as the kernel lists it."""

    parent: int
    group: int
    born: int
    """Its start, in the kernel's own unit: with the number, this names one process for good."""


Table = Mapping[int, Row]
Identity = tuple[int, int]
"""The number of a process, and its start."""


def below(roots: Collection[int], table: Table, but: Collection[Identity] = ()) -> set[int]:
    """Return the processes below `roots`, without those in `but` and everything below them."""
    children: dict[int, list[int]] = defaultdict(list)
    for pid, row in table.items():
        if (pid, row.born) not in but:
            children[row.parent].append(pid)
    found: set[int] = set()
    left = list(roots)
    while left:
        new = [pid for pid in children[left.pop()] if pid not in found]
        found.update(new)
        left.extend(new)
    return found
