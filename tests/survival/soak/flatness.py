"""Whether a measure is flat: its last quarter is not above its second quarter.

The first quarter is left out, because a process that has just started still grows. The medians of
two quarters are compared, so that a single fault does not decide. A fault costs processor time and
disk by itself, and the faults of two quarters differ, so the costs are those of cycles without one.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median
from typing import Final

from survival.soak.cycles import Cycle


@dataclass(frozen=True, slots=True)
class Bar:
    """How far the last quarter may be above the second one."""

    share: float
    slack: float = 0.0


BARS: Final[Mapping[str, Bar]] = {
    "supervisor_memory": Bar(1.05),
    "daemon_memory": Bar(1.05),
    "supervisor_descriptors": Bar(1.0, 2),
    "daemon_descriptors": Bar(1.0, 2),
    "processor": Bar(1.25),
    "disk": Bar(1.25),
}
"""The bar of each measure of a cycle, with headroom for a machine that does other work too."""
COSTS: Final = ("processor", "disk")
"""Measures of cycles without a fault only."""
LEAST_CYCLES: Final = 8
"""Cycles below which there is no trend."""


@dataclass(frozen=True, slots=True)
class Trend:
    """The medians of two quarters, and the most that the later one may be."""

    second: float
    last: float
    most: float

    @property
    def is_flat(self) -> bool:
        return self.last <= self.most


def find_trend(values: Sequence[float], bar: Bar) -> Trend:
    quarter = len(values) // 4
    second, last = median(values[quarter : 2 * quarter]), median(values[-quarter:])
    return Trend(second, last, second * bar.share + bar.slack)


def find_trends(cycles: Sequence[Cycle], struck: Collection[int]) -> dict[str, Trend]:
    """Return the trend of each measure; `one_supervisor` is the memory of the longest life.

    `struck` has the cycles with a fault, counted from 0.
    """
    calm = [one for number, one in enumerate(cycles) if number not in struck]
    series = {
        name: ([getattr(one, name) for one in (calm if name in COSTS else cycles)], bar)
        for name, bar in BARS.items()
    }
    lives = [list(life) for _, life in groupby(cycles, key=lambda one: one.life)]
    longest = max(lives, key=len, default=[])
    bar = BARS["supervisor_memory"]
    series["one_supervisor"] = ([one.supervisor_memory for one in longest], bar)
    return {
        name: find_trend(values, bar)
        for name, (values, bar) in series.items()
        if len(values) >= LEAST_CYCLES
    }
