"""One row per agent of a fleet, as the engine lists it, and the sums over many agents."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.documents.screens.agent_row import STATES, AgentState

UsageKey = Literal["team", "pool", "host"]
"""What to add up the usage by."""
ChangeKind = Literal["state", "question", "ended", "removed"]
"""What has happened to an agent.

`ended` if its run is over, `question` if it has a new question, `removed` if it is not on the fleet
anymore, and `state` for all other changes.
"""


class FleetRow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent on a fleet, from the engine's list."""

    agent: str
    state: AgentState
    reason: str = ""
    team: str = ""
    """Team of the agent; empty if it has none."""
    pool: str = ""
    host: str = ""
    """Host that runs the agent, or ran it last; empty if there was none."""
    asks: bool = False
    """Whether the agent has an open question."""
    cycle: int = 0
    """Number of the agent's cycle when the list was last updated for it."""
    usd: float | None = None
    """Spending of all its runs in dollars, when the list was last updated; None if unknown."""
    tokens: int | None = None
    """Tokens that all its runs have used, when the list was last updated; None if unknown."""
    changed: datetime | None = None
    """When the list was last updated for the agent; None before the first time."""
    is_over: bool = False
    """Whether its run is over."""
    run: int = 0
    """Number of the event that asked for its run, which is greater for a later run; 0 before."""
    is_removed: bool = False
    """Whether the agent is not on the fleet anymore."""


class FleetChange(msgspec.Struct, frozen=True):
    """A change of an agent. If an agent changes several times in a moment, the last one counts."""

    kind: ChangeKind
    row: FleetRow
    cursor: str
    """Position after this change, from which a later watch continues."""


class FleetUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What the agents of one team, pool or host do and have spent."""

    name: str
    """Name of the team, pool or host; empty for agents without one."""
    agents: int = 0
    running: int = 0
    waiting: int = 0
    """Number of agents that wait: for a host, for their team, for a limit or after a failure."""
    needs_person: int = 0
    """Number of agents that need a person, or are broken."""
    cycles: int = 0
    usd: float = 0.0
    """Known spending in dollars."""
    tokens: int = 0


def find_change_kind(row: FleetRow, before: FleetRow | None, run: int = 0) -> ChangeKind:
    """Return what has happened to an agent since it was last seen, if it was.

    `run` is the number of the run that the program has asked for: the end of an earlier one is not
    what it waits for.
    """
    if row.is_removed:
        return "removed"
    was_over = before is not None and before.is_over
    if row.is_over and row.run >= run and not (was_over and _is_same_run(row, before)):
        return "ended"
    return "question" if row.asks and not (before and before.asks) else "state"


def _is_same_run(row: FleetRow, before: FleetRow | None) -> bool:
    return before is not None and (before.run, before.cycle) == (row.run, row.cycle)


def sum_usage(rows: Iterable[FleetRow], by: UsageKey) -> list[FleetUsage]:
    """Return the usage of each team, pool or host, by name."""
    sums: dict[str, FleetUsage] = {}
    for row in rows:
        name: str = getattr(row, by)
        before = sums.get(name) or FleetUsage(name=name)
        sums[name] = FleetUsage(
            name=name,
            agents=before.agents + 1,
            running=before.running + (row.state == "running"),
            waiting=before.waiting + (row.state == "waiting"),
            needs_person=before.needs_person + STATES[row.state].needs_person,
            cycles=before.cycles + row.cycle,
            usd=before.usd + (row.usd or 0.0),
            tokens=before.tokens + (row.tokens or 0),
        )
    return [sums[name] for name in sorted(sums)]
