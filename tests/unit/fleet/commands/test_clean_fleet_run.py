"""Which workers of a run are removed from a fleet."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import PipelineEnded, PipelineStarted, WorkerBegan
from rekindle.errors import NotOnFleetError, OwnershipError
from rekindle.fleet.commands import clean_fleet_run
from rekindle.fleet.commands.fleet_runs import make_reading
from rekindle.policy.fleet.agent_registry import AgentDefinition, HeldLease, RegisteredAgent
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.projection.projection import Projection

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
RUN = "default/pipelines/ship/1"


def make_run(*more):
    """Return a run with the workers ship-1-a and ship-1-b."""
    log = [PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0")]
    for step in "ab":
        agent = f"ship-1-{step}"
        log.append(WorkerBegan(ts=NOW, step=step, attempt=1, agent=agent, commit="c0"))
    definition = RunDefinition(
        pipeline="ship",
        run=1,
        base="c0",
        definition=Pipeline(steps=[PipelineStep(id="a"), PipelineStep(id="b")]),
        plan=RunPlan(pipeline="ship", steps=(StepPlan(id="a"), StepPlan(id="b"))),
    )
    agent = AgentDefinition(manifest="version: 1\n", pool="p", heartbeat_seconds=5)
    lines = tuple(events.render(event).decode() for event in [*log, *more])
    return make_reading(RegisteredPipeline(definition=definition, agent=agent, lines=lines))


def make_agent(name, workflow=RUN, unpushed=None, **fields):
    worker = PipelineWorker(workflow=workflow, attempt=1)
    return RegisteredAgent(
        agent=name,
        definition=AgentDefinition(manifest="", pool="p", heartbeat_seconds=5, worker=worker),
        projection=Projection(agent=name, unpushed=unpushed),
        **fields,
    )


class Fleet:
    """A fleet's store with some agents."""

    def __init__(self, *agents):
        self._agents = {agent.agent: agent for agent in agents}
        self.removed = []
        self.agents = SimpleNamespace(
            client=SimpleNamespace(namespace="default"),
            read_last=self.kept,
            remove=self.removed.append,
        )

    def kept(self, agent):
        if agent not in self._agents:
            raise NotOnFleetError(agent)
        return self._agents[agent]

    def exists(self, agent):
        return agent in self._agents

    @staticmethod
    def wait_for(answer):
        return answer


@pytest.fixture
def clean(monkeypatch):
    """Return a function that cleans a run whose remote has no branches."""
    remote = SimpleNamespace(remove_branches=lambda *_, **__: ([], []))
    monkeypatch.setattr(clean_fleet_run, "RemoteCleanup", lambda *_: remote)
    stopped = PipelineEnded(ts=NOW, outcome="stopped")
    return lambda fleet, *ends: clean_fleet_run.clean_fleet_run(
        None, fleet, make_run(*(ends or (stopped,))), every=False
    )


def test_another_agent_with_the_name_of_a_worker_is_kept(clean):
    fleet = Fleet(make_agent("ship-1-a"), make_agent("ship-1-b", workflow="default/pipelines/b/1"))
    assert clean(fleet).workers == ("ship-1-a",)
    assert fleet.removed == ["ship-1-a"]


def test_a_worker_is_kept_if_only_its_host_has_its_work(clean):
    failed = events.WorkspacePushFailed(ts=NOW, words="the remote is full")
    fleet = Fleet(make_agent("ship-1-a", unpushed=failed), make_agent("ship-1-b"))
    cleaned = clean(fleet)
    assert cleaned.kept_folders == {"ship-1-a": "its work could not be pushed: the remote is full"}
    assert fleet.removed == ["ship-1-b"]


def test_a_run_with_a_running_worker_is_refused(clean):
    fleet = Fleet(
        make_agent("ship-1-a", lease=HeldLease(first=0, pool="p")), make_agent("ship-1-b")
    )
    with pytest.raises(OwnershipError, match="running the worker ship-1-a"):
        clean(fleet)
    assert fleet.removed == []


def test_a_run_that_is_not_over_is_refused(clean):
    unrelated = WorkerBegan(ts=NOW, step="a", attempt=2, agent="ship-1-a", commit="c0")
    with pytest.raises(OwnershipError, match="is not over"):
        clean(Fleet(), unrelated)
