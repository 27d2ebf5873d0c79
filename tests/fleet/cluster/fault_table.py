"""The table of a run with faults: what failed, how often, and how soon all was well again."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Measured:
    """One fault that happened."""

    what: str
    target: str
    running: int
    """Number of agents that had a session when it began."""
    seconds: list[float]
    """For each agent: until another host had it, or until its workflow accepted a command."""
    since: str
    """What the seconds count from: `begin` or `end` of the fault."""
    sessions: int = 0
    continued: int = 0
    """Number of these sessions that ran on in the same process, or ended by themselves."""
    interrupted: list[str] = field(default_factory=list)
    """How each of the other sessions ended, as its history says."""
    violations: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """All faults of one kind."""

    what: str
    times: int
    running: str
    median: float
    p90: float
    since: str
    continued: str
    violations: int


HEADS = (
    "fault",
    "times",
    "agents running",
    "median",
    "p90",
    "counted from",
    "sessions continued",
    "invariants broken",
)


def summarize(measured: Sequence[Measured]) -> list[Row]:
    """Return one row for each kind of fault, in the order of their first occurrence."""
    rows = []
    for what in dict.fromkeys(one.what for one in measured):
        those = [one for one in measured if one.what == what]
        seconds = [second for one in those for second in one.seconds]
        running = sorted({one.running for one in those})
        rows.append(
            Row(
                what,
                len(those),
                str(running[0]) if len(running) == 1 else f"{running[0]} to {running[-1]}",
                statistics.median(seconds) if seconds else math.nan,
                find_percentile(seconds, 0.9) if seconds else math.nan,
                those[0].since,
                f"{sum(one.continued for one in those)} of {sum(one.sessions for one in those)}",
                sum(sum(one.violations.values()) for one in those),
            )
        )
    return rows


def find_percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def render_markdown(rows: Sequence[Row], totals: Mapping[str, Any]) -> str:
    """Return the table, and below it the facts of the whole run."""
    cells = [HEADS, tuple("---" for _ in HEADS)]
    cells += [
        (
            row.what,
            str(row.times),
            row.running,
            f"{row.median:.1f} s",
            f"{row.p90:.1f} s",
            row.since,
            row.continued,
            str(row.violations),
        )
        for row in rows
    ]
    lines = ["| " + " | ".join(line) + " |" for line in cells]
    return "\n".join([*lines, "", *(f"- {name}: {value}" for name, value in totals.items())]) + "\n"
