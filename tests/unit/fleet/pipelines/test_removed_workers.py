"""Tasks for workers whose agent was removed from the fleet."""

import asyncio
import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.testing import ActivityEnvironment

from rekindle.documents import events
from rekindle.documents.manifest_pipelines import Pipeline, PipelineStep
from rekindle.documents.pipelines.pipeline_events import (
    PipelineStarted,
    PipelineStopped,
    WorkerBegan,
)
from rekindle.errors import NotOnFleetError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.pipelines.pipeline_activities import PipelineActivities
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import WorkerReport
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
RUN = "default/pipelines/ship/1"
BEGAN = WorkerBegan(ts=NOW, step="a", attempt=2, agent="ship-1-a", commit="c0")


class Engine:
    """An engine with one run, whose only worker is running according to its log."""

    def __init__(self, *more):
        log = [PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0"), BEGAN, *more]
        self._record = RegisteredPipeline(
            definition=RunDefinition(
                pipeline="ship",
                run=1,
                base="c0",
                definition=Pipeline(steps=[PipelineStep(id="a")]),
                plan=RunPlan(pipeline="ship", steps=(StepPlan(id="a"),)),
            ),
            agent=AgentDefinition(manifest="version: 1\n", pool="p", heartbeat_seconds=5),
            lines=tuple(events.render(event).decode() for event in log),
        )
        self.reports = []

    def get_workflow_handle_for(self, _workflow, name):
        assert name == RUN
        return self

    async def query(self, _query):
        return self._record

    async def signal(self, _signal, report):
        self.reports.append(report)


@pytest.fixture(autouse=True)
def _without_agents(monkeypatch):
    async def kept(_client, agent):
        raise NotOnFleetError(agent)

    monkeypatch.setattr(AgentClient, "kept", kept)


def call(tmp_path, engine, task, *arguments):
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info, heartbeat_timeout=timedelta(seconds=60)
    )
    activities = PipelineActivities(engine, tmp_path, "one")
    return asyncio.run(environment.run(getattr(activities, task), RUN, *arguments))


def test_stopping_a_removed_worker_reports_its_end(tmp_path):
    """Otherwise the run would wait for the worker's report forever."""
    engine = Engine(PipelineStopped(ts=NOW))
    call(tmp_path, engine, "stop_worker", BEGAN.agent)
    assert engine.reports == [WorkerReport(agent=BEGAN.agent, attempt=2, state="over")]


@pytest.mark.parametrize(
    ("commands", "outcome"), [([], "failed"), ([PipelineStopped(ts=NOW)], "stopped")]
)
def test_a_removed_worker_has_failed_unless_the_run_was_stopped(tmp_path, commands, outcome):
    ended = call(tmp_path, Engine(*commands), "check_worker", BEGAN)
    assert (ended.outcome, ended.attempt, ended.commit) == (outcome, 2, "c0")
    assert "removed from the fleet" in ended.why
