"""Workflows that run during an upgrade: the new version replays what the old one did."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner
from temporalio.workflow import NondeterminismError

from fleet.record import HISTORIES, LIVES
from rekindle.fleet.agent import host_leases
from rekindle.fleet.agent import workflow as module
from rekindle.fleet.agent.agent_listing import AgentListing
from rekindle.fleet.agent.workflow import AgentWorkflow
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.policy.exits import restart
from rekindle.policy.fleet import agent_leases
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.thresholds.control_limits import FLEET_LISTING_SECONDS

RECORDED = sorted(HISTORIES.glob("*/*.json"))


def name(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


def replayed(path: Path, agent: type, text: str = "", **how) -> None:
    history = WorkflowHistory.from_json(f"default/{path.stem}", text or path.read_text())
    replayer = Replayer(workflows=[agent], data_converter=make_data_converter(()), **how)
    asyncio.run(replayer.replay_workflow(history))


@pytest.mark.parametrize("path", RECORDED, ids=name)
def test_what_was_done_before_is_done_again(path):
    replayed(path, AgentWorkflow)


def list_update_tasks(path: Path) -> list[int]:
    """List the workflow tasks that accepted an update after the agent was shown as running."""
    events = json.loads(path.read_text())["events"]
    shown = [int(event["eventId"]) for event in events if "UPSERT" in event["eventType"]]
    found, started = set(), 0
    for event in events:
        if event["eventType"].endswith("WORKFLOW_TASK_STARTED"):
            started = int(event["eventId"])
        elif event["eventType"].endswith("UPDATE_ACCEPTED") and int(event["eventId"]) > shown[2]:
            found.add(started)
    return sorted(found)[:3]


def move_events(path: Path, first: int) -> str:
    """Return a history in which the figures are old at the first event to be moved."""
    recorded = json.loads(path.read_text())
    for event in recorded["events"]:
        if int(event["eventId"]) >= first:
            moment = datetime.fromisoformat(event["eventTime"])
            moment += timedelta(seconds=FLEET_LISTING_SECONDS + 100)
            event["eventTime"] = moment.isoformat().replace("+00:00", "Z")
    return json.dumps(recorded)


MOVED = [
    (path, first)
    for path in RECORDED
    if path.parent.name == "0.1.0" and path.stem in {"cycles", "asked", "person"}
    for first in list_update_tasks(path)
]


@pytest.mark.parametrize(
    ("path", "first"), MOVED, ids=[f"{name(path)}-{first}" for path, first in MOVED]
)
def test_a_run_from_before_is_not_listed_again_within_a_state(path, first):
    """Its history lacks the command, even if the figures were old or the definition was new."""
    replayed(path, AgentWorkflow, move_events(path, first))


def test_without_the_patch_it_would_be(monkeypatch):
    monkeypatch.setattr(workflow, "patched", lambda _: True)
    path, first = MOVED[0]
    with pytest.raises(NondeterminismError):
        replayed(
            path,
            AgentWorkflow,
            move_events(path, first),
            workflow_runner=UnsandboxedWorkflowRunner(),
        )


def test_every_life_is_among_them():
    assert {path.stem for path in RECORDED} >= {life.__name__ for life in LIVES}


def test_they_cover_every_branch_of_the_workflow():
    """Otherwise a change could stay unnoticed."""
    seen = "".join(path.read_text() for path in RECORDED)
    for turn in (
        "EVENT_TYPE_ACTIVITY_TASK_FAILED",
        "EVENT_TYPE_TIMER_FIRED",
        "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED",
        "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED",
        "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED",
        "EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW",
        '"offer"',
        '"begin_cycle"',
        '"write_brief"',
        '"hear"',
        '"notify"',
        "EVENT_TYPE_MARKER_RECORDED",
    ):
        assert turn in seen, turn


@workflow.defn(name="Agent")
class Sleeps(AgentWorkflow):
    """A workflow that sleeps before it works."""

    @workflow.run
    async def run(self, kept: RegisteredAgent) -> RegisteredAgent:
        return await super().run(kept)

    async def _continue_on_host(self) -> None:
        await workflow.sleep(1)
        await super()._continue_on_host()


@workflow.defn(name="Agent")
class Forgets(AgentWorkflow):
    """A workflow that forgets the last host of the agent, and asks again."""

    @workflow.run
    async def run(self, kept: RegisteredAgent) -> RegisteredAgent:
        return await super().run(kept)

    async def _continue_on_host(self) -> None:
        self._registered = agent_leases.release_lease(self._registered, is_gone=True)
        await super()._continue_on_host()


@pytest.mark.parametrize("changed", [Sleeps, Forgets])
def test_a_change_that_the_past_does_not_bear_is_seen(changed):
    path = next(path for path in RECORDED if path.stem == "cycles")
    with pytest.raises(NondeterminismError):
        replayed(path, changed, workflow_runner=UnsandboxedWorkflowRunner())


def rename_activities(monkeypatch):
    """Rename the activities of a host."""
    start = host_leases.start_beside
    monkeypatch.setattr(host_leases, "start_begin", lambda agent, host: start(agent, "x", host))


def hide_agents(monkeypatch):
    """Hide all agents from the engine's list."""
    monkeypatch.setattr(AgentListing, "show", lambda *_: None)


@pytest.mark.parametrize("change", [rename_activities, hide_agents])
def test_another_activity_and_another_attribute_are_seen(change, monkeypatch):
    change(monkeypatch)
    path = next(path for path in RECORDED if path.stem == "cycles")
    with pytest.raises(NondeterminismError):
        replayed(path, AgentWorkflow, workflow_runner=UnsandboxedWorkflowRunner())


def test_a_changed_policy_is_noticed_too(monkeypatch):
    """It is replayed with the recorded past."""
    later = restart.WaitUntil(until=datetime(2999, 1, 1, tzinfo=UTC), why="new", after=0)
    monkeypatch.setattr(module, "decide_move", lambda *_, **__: later)
    path = next(path for path in RECORDED if path.stem == "cycles")
    with pytest.raises(NondeterminismError):
        replayed(path, AgentWorkflow, workflow_runner=UnsandboxedWorkflowRunner())
