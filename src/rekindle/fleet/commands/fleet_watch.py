"""Find out what has changed on a fleet, with one request for all agents."""

import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from temporalio.client import Client

from rekindle.documents.screens.fleet_row import FleetChange, FleetRow, find_change_kind
from rekindle.errors import UsageError
from rekindle.fleet.engine.agent_list import (
    AgentFilter,
    list_agents,
    make_fleet_row,
    render_changes,
    render_filter,
)
from rekindle.thresholds.control_limits import (
    FLEET_WATCH_OVERLAP_SECONDS,
    FLEET_WATCH_RESYNC_SECONDS,
)

_OVERLAP = timedelta(seconds=FLEET_WATCH_OVERLAP_SECONDS)


class FleetWatch:
    """Remembers the agents as they were last seen.

    Times are the engine's, because the clocks of programs and hosts may differ.
    """

    def __init__(
        self, client: Client, cursor: str, team: str | None, runs: Mapping[str, int]
    ) -> None:
        self._client, self._team, self._runs = client, team, runs
        self._last = _parse_cursor(cursor) if cursor else None
        self._begins_at = self._last - _OVERLAP if self._last else None
        """Time of the newest change; None before the first one."""
        self._known: dict[str, FleetRow] = {}
        self._listed_at = time.monotonic()

    async def poll(self) -> list[FleetChange]:
        """Return the new changes, oldest first.

        The first request without a cursor returns all agents. So does one every few minutes, in
        case the engine's list was so late that the requests in between did not see a change.
        """
        asked_at, listed_at = time.monotonic(), self._listed_at
        if self._last is None or asked_at - listed_at >= FLEET_WATCH_RESYNC_SECONDS:
            listed_at = asked_at
            query = render_filter(self._client, AgentFilter(team=self._team))
        else:
            query = render_changes(self._last - _OVERLAP, self._team)
        found = [listed async for listed in list_agents(self._client, query)]
        self._listed_at = listed_at
        # An agent that was removed and defined again has two entries.
        found.sort(key=lambda listed: (not listed.is_removed, listed.at))
        newest = {listed.agent: listed for listed in found}
        changes = []
        for listed in sorted(newest.values(), key=lambda listed: listed.at):
            self._last = max(listed.at, self._last or listed.at)
            row, before = make_fleet_row(listed), self._known.get(listed.agent)
            if row == before:
                continue
            self._known[row.agent] = row
            if before is None and self._begins_at and listed.at < self._begins_at:
                continue  # before the cursor, and found by listing all agents
            kind = find_change_kind(row, before, self._runs.get(row.agent, 0))
            changes.append(FleetChange(kind, row, self._last.isoformat()))
        return changes


def _parse_cursor(cursor: str) -> datetime:
    try:
        time_at = datetime.fromisoformat(cursor)
    except ValueError:
        time_at = None
    if time_at is None or time_at.tzinfo is None:
        raise UsageError(
            f"{cursor!r} is not a cursor",
            hint="pass the `cursor` of a change, or nothing to begin with all agents",
        )
    return time_at
