"""The tasks that a host does for a pipeline's workflow, with a real git remote."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import msgspec
import pytest
from temporalio.testing import ActivityEnvironment

import worktrees
from rekindle.documents import events, manifest
from rekindle.documents.pipelines.pipeline_events import PipelineStarted, WorkerBegan
from rekindle.errors import EngineError, ManifestError
from rekindle.fleet.pipelines import pipeline_activities
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.pipeline_activities import PipelineActivities
from rekindle.fleet.schedules.schedule_activities import ScheduleActivities
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.pipeline_worker import PipelineWorker
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.system import clock

MANIFEST = """\
version: 1
agents: {helper: {harness: command, command: [work]}}
pipelines: {ship: {steps: [{id: plan, prompt: "Plan it"}]}}
"""
STOPPED = events.DesiredSet(ts=clock.read_clock() + timedelta(hours=1), seq=2, desired="stopped")
"""A stop by a host whose clock is ahead."""


class Agents:
    """The engine's record of one agent, which was stopped."""

    def __init__(self, definition, *earlier):
        projection = fold_events(Projection(agent="ship-1-plan"), [*earlier, STOPPED])
        self.agent = RegisteredAgent(
            agent="ship-1-plan", definition=definition, projection=projection
        )
        self.said = []

    async def kept(self, _agent):
        return self.agent

    async def define(self, _agent, _definition):
        pass

    async def say(self, _agent, *records):
        self.said += records


@pytest.fixture
def registered(tmp_path):
    bare, project = tmp_path / "remote.git", tmp_path / "project"
    project.mkdir()
    for words in (
        ("init", "-q", "--bare", "-b", "main", str(bare)),
        ("init", "-q", "-b", "main"),
        ("commit", "-q", "--allow-empty", "-m", "begin"),
        ("push", "-q", str(bare), "main"),
    ):
        worktrees.git(project, *words)
    base = worktrees.git(project, "rev-parse", "HEAD").decode().strip()
    started = PipelineStarted(
        ts=datetime(2026, 5, 4, 12, tzinfo=UTC), pipeline="ship", run=1, base=base
    )
    return RegisteredPipeline(
        definition=RunDefinition(
            pipeline="ship",
            run=1,
            base=base,
            definition=manifest.parse(MANIFEST).pipelines["ship"],
            prompts={"plan": "Plan it"},
            plan=RunPlan(pipeline="ship", steps=(StepPlan(id="plan", harness="command"),)),
        ),
        agent=AgentDefinition(
            manifest=MANIFEST,
            pool="p",
            heartbeat_seconds=5,
            remote=str(bare),
            worker=PipelineWorker(workflow="w", attempt=1),
        ),
        lines=(events.render(started).decode(),),
    )


def begin_second_attempt(registered, root, agents):
    """Let a host begin the second attempt, and return its answer."""
    activities = PipelineActivities(None, root, "host")

    async def use_clone(_pipeline, work):
        return work(HostRun(root, "host", registered))

    activities._agents, activities._use_clone = agents, use_clone
    began = WorkerBegan(
        ts=clock.read_clock(),
        step="plan",
        attempt=2,
        agent="ship-1-plan",
        commit=registered.definition.base,
    )
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, heartbeat_timeout=timedelta(seconds=60)
    )
    return asyncio.run(environment.run(activities.begin_worker, "w", began))


def test_a_worker_is_resumed_by_a_host_whose_clock_is_behind(registered, tmp_path):
    agents = Agents(registered.agent)
    assert begin_second_attempt(registered, tmp_path / "root", agents) == ""
    [resumed] = agents.said
    numbered = [STOPPED, events.DesiredSet(ts=resumed.ts, seq=3, desired=resumed.desired)]
    assert fold_events(Projection(agent="ship-1-plan"), numbered).run.desired == "running"


def test_a_worker_that_was_stopped_in_safe_mode_leaves_it(registered, tmp_path):
    safe = events.SafeModeEntered(ts=STOPPED.ts, seq=1, why="auth", words="log in")
    agents = Agents(registered.agent, safe)
    assert agents.agent.projection.run.is_safe
    assert begin_second_attempt(registered, tmp_path / "root", agents) == ""
    numbered = [
        msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(agents.said, start=3)
    ]
    run = fold_events(agents.agent.projection, numbered).run
    assert (run.is_safe, run.desired) == (False, "running")


def test_a_definition_that_is_not_valid_fails_the_next_attempt(registered, tmp_path, monkeypatch):
    def refuse(*_words, **_more):
        raise ManifestError("the persona does not exist")

    monkeypatch.setattr(pipeline_activities, "define_worker", refuse)
    answer = begin_second_attempt(registered, tmp_path / "root", Agents(registered.agent))
    assert "the persona does not exist" in answer


@pytest.mark.parametrize("floor", [SandboxFloor(1 << 30, 64), None])
def test_a_host_does_not_push_to_a_repository_of_an_agent(registered, tmp_path, floor):
    """Otherwise its hooks would run outside every sandbox."""
    client = SimpleNamespace(
        get_workflow_handle_for=lambda *_: SimpleNamespace(query=query),
    )

    async def query(_):
        return registered

    schedules = ScheduleActivities(client, tmp_path, "host", asyncio.Lock(), floor)
    activities = PipelineActivities(client, tmp_path, "host", floor)
    using = activities._use_clone("w", lambda run: run.clone.folder)
    if floor is None:
        assert asyncio.run(using).is_relative_to(tmp_path)
        return
    with pytest.raises(EngineError, match="its git remote is in"):
        asyncio.run(using)
    with pytest.raises(EngineError, match="its git remote is in"):
        schedules._prepare_run(registered, clock.read_clock())
    assert not (tmp_path / "pipelines").exists()
