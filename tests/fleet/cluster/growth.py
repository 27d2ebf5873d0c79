"""Find the number of agents at which the load on an engine stops growing in proportion."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

SHARE: Final = 0.8
"""Least share of the first step's updates per agent while growth is linear."""
LONGER: Final = 2.0
"""Factor of the first step's p95 latency at which growth is not linear any more."""
BUSY: Final = 0.05
"""Share of idle processor time below which the processors are the limit."""


class Step(msgspec.Struct, frozen=True):
    """The load of a number of running agents; amounts are per second."""

    agents: int
    failed: float
    """Agents that the overload has stopped."""
    updates: float
    p50_ms: float
    p95_ms: float
    transactions: float
    syncs: float
    sync_share: float
    """Share of the time in which PostgreSQL waited for the disk to confirm its log."""
    lock_ms: float
    """Wait for a shard, per update."""
    servers: float
    """Cores that the servers used; the next ones likewise."""
    database: float
    worker: float
    others: float
    idle: float
    waits: dict[str, float]
    """Sessions of PostgreSQL in a statement, on average, by what they wait for."""

    @property
    def each(self) -> float:
        """Updates per second and agent."""
        return self.updates / self.agents


def choose_step(repeats: Sequence[Step]) -> Step:
    """Return the measurement that other programs of the machine disturbed least."""
    return min(repeats, key=lambda one: one.others)


def find_limit(steps: Sequence[Step]) -> Step | None:
    """Return the first step that grew less than in proportion, or None."""
    first = steps[0]
    for step in steps[1:]:
        if step.each < SHARE * first.each or step.p95_ms >= LONGER * first.p95_ms:
            return step
    return None


def name_limit(step: Step, cores: int) -> str:
    """Return what a step waits for: `processors`, `disk`, `shard locks` or `database locks`."""
    if step.idle < BUSY * cores:
        return "processors"
    locks = sum(value for name, value in step.waits.items() if name.startswith("Lock "))
    shares: Mapping[str, float] = {
        "disk": step.sync_share,
        "shard locks": step.lock_ms / max(step.p50_ms, 1e-9),
        "database locks": locks / max(sum(step.waits.values()), 1e-9),
    }
    return max(shares, key=lambda one: shares[one])
