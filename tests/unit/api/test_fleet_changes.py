"""Programs that watch a fleet while its engine is down for a moment."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rekindle.api import fleet_changes
from rekindle.api.fleet import Fleet
from rekindle.errors import EngineError, UsageError
from rekindle.fleet.commands import fleet_watch
from rekindle.fleet.commands.fleet_control import FleetControl
from rekindle.fleet.engine.agent_list import ListedAgent
from rekindle.fleet.engine.engine_thread import EngineThread
from rekindle.policy.settings.runtime_settings import FleetSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Listed:
    """The engine's list, which fails on demand."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}
        self.queries: list[str] = []
        self.is_down = False

    async def list_agents(self, _client, query):
        self.queries.append(query)
        if self.is_down:
            raise RPCError("connection refused", RPCStatusCode.UNAVAILABLE, b"")
        for name, state in self.states.items():
            yield ListedAgent(name, state, "-", "p", 1, at=NOW)


@pytest.fixture
def listed(monkeypatch) -> Listed:
    made = Listed()
    monkeypatch.setattr(fleet_watch, "list_agents", made.list_agents)
    monkeypatch.setattr(fleet_changes, "FLEET_WATCH_SECONDS", 0)
    return made


@pytest.fixture
def fleet():
    client = SimpleNamespace(namespace="default")
    with Fleet(FleetControl(client, FleetSettings(), by="", origin=""), EngineThread("e")) as made:
        yield made


def test_polls_continue_after_an_error(fleet, listed):
    listed.states["a"] = "running"
    polls = fleet.polls()
    assert [change.row.agent for change in next(polls)] == ["a"]
    listed.is_down = True
    for _ in range(2):
        with pytest.raises(EngineError, match="connection refused"):
            next(polls)
    listed.is_down, listed.states["b"] = False, "running"
    assert [change.row.agent for change in next(polls)] == ["b"]


def test_a_watch_continues_after_an_error(fleet, listed):
    listed.states |= {"a": "running", "b": "running"}
    changes = fleet.watch()
    assert next(changes).row.agent == "a"
    listed.is_down = True
    assert next(changes).row.agent == "b"
    with pytest.raises(EngineError, match="connection refused"):
        next(changes)
    listed.is_down, listed.states["a"] = False, "stopped"
    assert next(changes).row.agent == "a"


def test_a_list_of_all_agents_that_failed_is_repeated(fleet, listed, monkeypatch):
    listed.states["a"] = "running"
    polls = fleet.polls()
    next(polls)
    now = fleet_watch.time.monotonic() + fleet_watch.FLEET_WATCH_RESYNC_SECONDS
    monkeypatch.setattr(fleet_watch, "time", SimpleNamespace(monotonic=lambda: now))
    listed.is_down = True
    with pytest.raises(EngineError):
        next(polls)
    listed.is_down = False
    next(polls)
    assert listed.queries[0] == listed.queries[1] == listed.queries[2]
    next(polls)
    assert listed.queries[3] != listed.queries[0]


@pytest.mark.parametrize("begin", [Fleet.watch, Fleet.polls])
def test_a_wrong_cursor_is_refused_at_once(fleet, begin):
    with pytest.raises(UsageError, match="is not a cursor"):
        begin(fleet, after="yesterday")
