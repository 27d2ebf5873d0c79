"""Definitions of many agents, with an engine that only remembers them."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rekindle.documents.events import QuestionAsked
from rekindle.documents.screens.fleet_row import FleetRow
from rekindle.errors import EngineError, NotOnFleetError, OwnershipError, UsageError
from rekindle.fleet.commands import fleet_control
from rekindle.fleet.commands.fleet_control import FleetControl
from rekindle.fleet.engine.agent_list import AgentFilter
from rekindle.policy.fleet.agent_spec import AgentSettings
from rekindle.policy.settings.runtime_settings import FleetSettings

REMOTE = "https://example.org/shop.git"


class _Agents:
    """The definitions that an engine has."""

    def __init__(self):
        self.known = {}

    async def begin(self, name, definition, **_):
        if name in self.known:
            raise OwnershipError(name)
        self.known[name] = definition

    async def kept(self, name):
        if name not in self.known:
            raise NotOnFleetError(name)
        return SimpleNamespace(definition=self.known[name])

    async def define(self, name, definition):
        self.known[name] = definition


@pytest.fixture
def control(monkeypatch):
    async def list_nothing(*_):
        for nothing in ():
            yield nothing

    async def do_nothing(*_):
        return []

    monkeypatch.setattr(fleet_control, "list_agents", list_nothing)
    monkeypatch.setattr(fleet_control, "find_missing_attributes", do_nothing)
    monkeypatch.setattr(fleet_control.run_schedules, "drop_schedule", do_nothing)
    made = FleetControl(SimpleNamespace(namespace="default"), FleetSettings(), by="", origin="")
    made.agents = _Agents()
    return made


def spec(name="scout", **fields) -> AgentSettings:
    return AgentSettings(**{"name": name, "harness": "codex", "task": "Build the form."} | fields)


def define(control, *specs, replace=False):
    return asyncio.run(control.define(specs, replace=replace))


def test_one_bad_spec_does_not_stop_the_others(control):
    result = define(control, spec(), {"name": "x"}, spec(5), spec("a", task=None), spec("b"))
    assert result.done == ("scout", "b")
    assert {name: error.field for name, error in result.failed.items()} == {
        "#2": "spec",
        "#3": "name",
        "a": "task",
    }


def test_a_harness_that_does_not_exist_is_refused(control):
    result = define(control, spec(harness="claud-code"), spec("b", harness="claude"))
    assert result.done == ("b",)
    assert result.failed["scout"].field == "harness"
    assert "claude-code" in result.failed["scout"].hint


def test_an_agent_keeps_its_remote_unless_it_is_replaced(control):
    assert define(control, spec(repository=REMOTE)).done == ("scout",)
    assert define(control, spec()).failed["scout"].field == "repository"
    assert control.agents.known["scout"].remote == REMOTE
    assert define(control, spec(repository=REMOTE, task="Less.")).done == ("scout",)
    assert define(control, spec(), replace=True).done == ("scout",)
    assert control.agents.known["scout"].remote == ""


@pytest.mark.parametrize("cycles", [-1, "3", 1.5, True, None])
def test_a_number_of_cycles_is_checked(control, cycles):
    with pytest.raises(UsageError, match="cycles"):
        asyncio.run(control.run(["scout"], cycles))


def test_an_agent_that_cannot_be_read_hides_no_questions(control, monkeypatch):
    async def list_rows(_):
        return [FleetRow(agent=name, state="needs you") for name in ("late", "broken", "early")]

    async def kept(name):
        if name == "broken":
            raise EngineError("agent", "no worker answered", hint="start a worker")
        return SimpleNamespace(projection=name)

    def list_open(name, _):
        hour = 8 if name == "early" else 9
        asked = {"number": 1, "about": "permission", "choices": ("yes",), "default": "yes"}
        when = datetime(2026, 1, 1, hour, tzinfo=UTC)
        return [QuestionAsked(ts=when, question=f"{name}-1", **asked)]

    monkeypatch.setattr(control, "rows", list_rows)
    monkeypatch.setattr(control.agents, "kept", kept)
    monkeypatch.setattr(fleet_control.questions, "list_open_questions", list_open)
    found = asyncio.run(control.questions(AgentFilter()))
    assert [one.agent for one in found.opened] == ["early", "late"]
    assert set(found.failed) == {"broken"}
