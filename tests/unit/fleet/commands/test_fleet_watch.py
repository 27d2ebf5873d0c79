"""Watching a fleet from a cursor on, also when all agents are listed again."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rekindle.fleet.commands import fleet_watch
from rekindle.fleet.commands.fleet_watch import FleetWatch
from rekindle.fleet.engine.agent_list import ListedAgent
from rekindle.thresholds.control_limits import FLEET_WATCH_OVERLAP_SECONDS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = NOW - timedelta(seconds=FLEET_WATCH_OVERLAP_SECONDS + 60)


class Listed:
    """The engine's list, which answers every request with all agents."""

    def __init__(self) -> None:
        self.agents: dict[str, ListedAgent] = {}
        self.queries: list[str] = []

    def put(self, name: str, at: datetime, state: str = "over", run: int = 1) -> None:
        self.agents[name] = ListedAgent(name, state, "-", "p", 1, at=at, changed=at, run=run)

    async def list_agents(self, _client, query):
        self.queries.append(query)
        for listed in self.agents.values():
            yield listed


@pytest.fixture
def listed(monkeypatch) -> Listed:
    made = Listed()
    monkeypatch.setattr(fleet_watch, "list_agents", made.list_agents)
    return made


def watch(cursor: str = "", **runs: int) -> FleetWatch:
    return FleetWatch(SimpleNamespace(namespace="default"), cursor, None, runs)


def poll(watching: FleetWatch) -> list[tuple[str, str]]:
    return [(change.kind, change.row.agent) for change in asyncio.run(watching.poll())]


def test_a_list_of_all_agents_does_not_repeat_those_before_the_cursor(listed, monkeypatch):
    monkeypatch.setattr(fleet_watch, "FLEET_WATCH_RESYNC_SECONDS", 0)
    listed.put("old", LONG_AGO)
    listed.put("new", NOW)
    watching = watch(NOW.isoformat())
    assert poll(watching) == [("ended", "new")]
    assert "RekindleChanged" not in listed.queries[0], "all agents were listed"
    listed.put("old", NOW + timedelta(seconds=1), "running", run=2)
    assert poll(watching) == [("state", "old")]


def test_without_a_cursor_all_agents_come_first(listed):
    listed.put("old", LONG_AGO)
    listed.put("new", NOW)
    watching = watch()
    assert poll(watching) == [("ended", "old"), ("ended", "new")]
    assert poll(watching) == []


def test_the_end_of_the_run_before_is_not_an_end(listed):
    listed.put("a", LONG_AGO, run=5)
    watching = watch(a=9)
    assert poll(watching) == [("state", "a")]
    listed.put("a", NOW, run=9)
    assert poll(watching) == [("ended", "a")]
