"""The measures of each cycle, collected while the work is done."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

from survival.soak.measure import Seen


@dataclass
class Cycle:
    """What one cycle cost."""

    supervisor_memory: int = 0
    """KiB, the most that was seen; so are the next three."""
    daemon_memory: int = 0
    supervisor_descriptors: int = 0
    daemon_descriptors: int = 0
    processor: float = 0.0
    """Seconds of all of Rekindle's processes that stay."""
    disk: int = 0
    """Bytes by which the project's folder .rekindle grew."""
    elsewhere: int = 0
    """Bytes by which the user's folder of Rekindle and the snapshots in git grew."""
    seconds: float = 0.0
    reference: float = 1.0
    """Mean processor time of a fixed piece of work during the cycle, in seconds."""
    life: int = 0
    """Number of the supervisor that finished the cycle, counted from 0."""


@dataclass
class Cycles:
    """The finished cycles, and the one that is under way."""

    measure_disk: Callable[[], tuple[int, int]]
    """Returns the bytes in .rekindle, and elsewhere."""
    finished: list[Cycle] = field(default_factory=list)
    _now: Cycle = field(default_factory=Cycle)
    _spent: dict[Any, float] = field(default_factory=dict)
    """Processor time of each process, as last seen."""
    _lives: list[Any] = field(default_factory=list)
    _references: list[float] = field(default_factory=list)
    _before: tuple[float, tuple[int, int], float] = (0.0, (0, 0), 0.0)
    """Processor time, disk and time at the end of the last cycle."""

    def begin(self, at: float) -> None:
        self._before = (0.0, self.measure_disk(), at)

    def note(self, found: Iterable[Seen], reference: float) -> None:
        """Note one moment."""
        self._references.append(reference)
        for seen in found:
            now = self._now
            for what, value in (("memory", seen.memory), ("descriptors", seen.descriptors)):
                key = f"{seen.role}_{what}"
                setattr(now, key, max(getattr(now, key), value))
            self._spent[seen.life] = seen.seconds
            if seen.role == "supervisor" and seen.life not in self._lives:
                self._lives.append(seen.life)

    def finish(self, at: float) -> None:
        """End the cycle that is under way."""
        spent, disk = sum(self._spent.values()), self.measure_disk()
        now, (spent_before, disk_before, at_before) = self._now, self._before
        now.processor = round(spent - spent_before, 2)
        now.disk, now.elsewhere = disk[0] - disk_before[0], disk[1] - disk_before[1]
        now.seconds = round(at - at_before, 2)
        now.life = len(self._lives) - 1
        now.reference, self._references = mean(self._references), []
        self.finished.append(now)
        self._now, self._before = Cycle(), (spent, disk, at)


def adjust_processor(cycles: Iterable[Cycle]) -> None:
    """Convert processor times to the usual speed of the run.

    Two virtual cores often share one real core, so the same work takes up to twice as long while
    other programs work too.
    """
    found = list(cycles)
    usual = median(one.reference for one in found) if found else 1.0
    for one in found:
        one.processor = round(one.processor * usual / one.reference, 3)
