"""What keeps a run on a fleet from continuing."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import PipelineEnded, PipelineStarted, WorkerBegan
from rekindle.errors import NotOnFleetError
from rekindle.fleet.commands.fleet_runs import FleetRuns
from rekindle.fleet.engine.agent_list import ListedAgent
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
STEPS = ("a", "b", "c")


def make_run(*more):
    """Return a run with the workers ship-1-a, ship-1-b and ship-1-c."""
    log = [PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0")]
    for step in STEPS:
        agent = f"ship-1-{step}"
        log.append(WorkerBegan(ts=NOW, step=step, attempt=1, agent=agent, commit="c0"))
    return RegisteredPipeline(
        definition=RunDefinition(
            pipeline="ship",
            run=1,
            base="c0",
            definition=Pipeline(steps=[PipelineStep(id=step) for step in STEPS]),
            plan=RunPlan(pipeline="ship", steps=tuple(StepPlan(id=step) for step in STEPS)),
        ),
        agent=AgentDefinition(manifest="version: 1\n", pool="p", heartbeat_seconds=5),
        lines=tuple(events.render(event).decode() for event in [*log, *more]),
    )


class Fleet:
    """A fleet with one run. Its first worker runs, and the others are in safe mode."""

    def __init__(self, run, failure):
        self.agents = SimpleNamespace(client=None)
        self.client = SimpleNamespace(kept=lambda *_: run, find_failure=lambda *_: failure)

    @staticmethod
    def wait_for(answer):
        return answer

    @staticmethod
    def listed(only):
        states = dict(zip(only, ("running", "safe", "safe"), strict=True))
        return {
            name: ListedAgent(agent=name, state=state, host="one", pool="p", cycle=1)
            for name, state in states.items()
        }

    @staticmethod
    def kept(agent):
        if agent == "ship-1-c":  # it was removed after the list was read
            raise NotOnFleetError(agent)
        safe = events.SafeModeEntered(ts=NOW, seq=1, why="auth", words="log in")
        return SimpleNamespace(projection=fold_events(Projection(agent=agent), [safe]))


@pytest.fixture
def read(monkeypatch):
    """Return a function that reads the run's row."""

    def read_row(*more, failure=""):
        fleet = Fleet(make_run(*more), failure)
        runs = FleetRuns(None, None, fleet)
        monkeypatch.setattr(runs, "_client", fleet.client)
        return runs.read("ship", 1).row

    return read_row


def test_workers_in_safe_mode_are_shown(read):
    row = read()
    assert row.state == "needs you"
    [task] = row.tasks
    assert (task.step, "log in" in task.text) == ("b", True)
    assert task.commands == ("rekindle pipeline stop ship 1; rekindle pipeline resume ship 1",)


def test_the_error_of_a_task_is_shown_first(read):
    first, *_ = read(failure="the remote is full").tasks
    assert (first.step, first.commands) == ("", ())
    assert first.text == "a task fails, and the fleet repeats it: the remote is full"


def test_nothing_is_read_for_a_run_that_has_ended(read):
    row = read(PipelineEnded(ts=NOW, outcome="stopped"), failure="the remote is full")
    assert (row.state, row.tasks) == ("stopped", ())
