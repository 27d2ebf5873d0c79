"""The engine's record of a run: its log leads to the same state as on a laptop."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents import events, manifest
from rekindle.documents.pipelines.pipeline_events import (
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
)
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.registered_pipeline import (
    RegisteredPipeline,
    begin_run,
    explain_refused_line,
)
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import make_plan

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
TEXT = "version: 1\npipelines: {ship: {steps: [{id: test, run: just test}]}}\n"
STARTED = PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0")


@pytest.fixture
def registered():
    parsed, marked = manifest.read_manifest(TEXT)
    definition = RunDefinition(
        pipeline="ship",
        base="c0",
        definition=parsed.pipelines["ship"],
        plan=make_plan(parsed, marked, "ship"),
    )
    agent = AgentDefinition(manifest=TEXT, pool="main", heartbeat_seconds=5)
    return RegisteredPipeline(definition=definition, agent=agent, lines=()).append(STARTED)


def test_the_log_is_folded_as_on_a_laptop(registered):
    ended = PipelineEnded(ts=NOW, outcome="done", commit="c1")
    after = registered.append(ended)
    assert after.fold() == fold([STARTED, ended])
    assert registered.fold().ended is None, "the record itself does not change"


def test_only_stop_and_resume_are_commands(registered):
    state = registered.fold()
    stop = events.render(PipelineStopped(ts=NOW + timedelta(seconds=1))).decode()
    resume = events.render(PipelineResumed(ts=NOW)).decode()
    assert explain_refused_line(stop, state) == ""
    assert explain_refused_line(resume, state) == ""
    forged = events.render(PipelineEnded(ts=NOW, outcome="done", commit="c9")).decode()
    assert explain_refused_line(forged, state) == "only stop and resume are commands"
    assert explain_refused_line("{", state)
    over = registered.append(PipelineEnded(ts=NOW, outcome="failed")).fold()
    assert explain_refused_line(stop, over) == "the run is failed"


def test_a_run_begins_with_its_number_its_commit_and_its_due_time(registered):
    template = RegisteredPipeline(definition=registered.definition, agent=registered.agent)
    run = begin_run(template, "c5", 7, NOW, due=NOW - timedelta(minutes=1))
    assert (run.definition.run, run.definition.base) == (7, "c5")
    [started] = run.read_events()
    assert isinstance(started, PipelineStarted)
    assert (started.run, started.base, started.due) == (7, "c5", NOW - timedelta(minutes=1))
    assert started.definition != "", "it tells two definitions apart"
    assert begin_run(template, "c6", 7, NOW).read_events()[0].definition != started.definition
