"""The engine's record of a run: its log leads to the same state as on a laptop."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events, manifest
from rekindle.documents.pipelines.pipeline_events import (
    PipelineEnded,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    WorkerBegan,
    WorkerEnded,
    WorkerReported,
)
from rekindle.formats import validation
from rekindle.policy.fleet.agent_registry import AgentDefinition
from rekindle.policy.fleet.pipeline_worker import WorkerReport
from rekindle.policy.fleet.registered_pipeline import (
    RegisteredPipeline,
    begin_run,
    explain_refused_line,
)
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.run_plan import make_plan
from rekindle.thresholds.fleet_limits import FLEET_REASON_CHARACTERS
from rekindle.thresholds.pipeline_limits import (
    MATRIX_ITEMS,
    RETRY_REASON_CHARACTERS,
    WORKER_KEY_CHARACTERS,
)

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


def test_the_due_time_is_that_of_the_start(registered):
    template = msgspec.structs.replace(registered, lines=())
    assert template.due is None
    assert begin_run(template, "c1", 2, NOW).due is None
    scheduled = begin_run(template, "c1", 2, NOW, NOW - timedelta(hours=1))
    assert scheduled.append(PipelineStopped(ts=NOW)).due == NOW - timedelta(hours=1)


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


def make_attempt(worker: str, attempt: int, **more):
    """Return the beginning and the end of an attempt that failed."""
    place = {"ts": NOW, "step": "test", "worker": worker, "attempt": attempt}
    return (
        WorkerBegan(agent=f"ship-1-test-{worker}", commit="c" * 40, **place),
        WorkerEnded(outcome="failed", commit="d" * 40, usd=12.345, tokens=1234567, **place, **more),
    )


def test_a_large_run_that_fails_again_and_again_fits_into_a_message(registered):
    """The engine accepts messages of up to two megabytes."""
    keys = [f"{number:0{WORKER_KEY_CHARACTERS}}" for number in range(MATRIX_ITEMS)]
    log = [STARTED]
    for attempt in range(1, 5):
        for key in keys:
            start = f"{key}-{attempt}: "
            why = start + "x" * (RETRY_REASON_CHARACTERS - len(start))
            log += make_attempt(key, attempt, why=why)
            for event in log[-2:]:
                registered = registered.append(event)
    agents = {key: f"ship-1-test-{key}" for key in keys}
    record = msgspec.structs.replace(
        registered,
        begun=tuple((agents[key], attempt) for key in keys for attempt in range(1, 5)),
        reports={
            agent: WorkerReport(agent=agent, attempt=4, state="over", usd=12.345, tokens=1234567)
            for agent in agents.values()
        },
    )
    assert len(validation.encode_json(record)) < 1_000_000
    assert len(record.lines) == len(log), "a reader counts the lines to find new ones"
    kept = [event.why for event in record.read_events() if isinstance(event, WorkerEnded)]
    assert kept[-1] == log[-1].why, "the next attempt needs it"
    assert kept[0] == log[2].why[: FLEET_REASON_CHARACTERS - 1] + "…"
    workers, complete = registered.fold().workers, fold(log).workers
    for place, worker in workers.items():
        assert msgspec.structs.replace(worker, why=complete[place].why) == complete[place]


def test_a_report_of_a_workers_spending_replaces_the_last_one(registered):
    until = NOW + timedelta(hours=1)
    log = [STARTED]
    for attempt in (1, 2):
        began, ended = make_attempt("a", attempt)
        place = {"ts": NOW, "step": "test", "attempt": attempt}
        reports = [
            WorkerReported(worker=worker, usd=number / 20, tokens=number, **place)
            for number in range(1, 50)
            for worker in ("a", "b")
        ]
        limit = WorkerReported(worker="a", usd=3.0, harness="codex", until=until, **place)
        last = WorkerReported(worker="a", usd=9.0, tokens=9, **place)
        log += [began, make_attempt("b", attempt)[0], *reports, limit, last, ended]
    for event in log[1:]:
        registered = registered.append(event)
    assert registered.fold() == fold(log)
    kinds = [event.kind for event in registered.read_events() if event.kind == "worker.reported"]
    assert len(kinds) == 2 * 2 + 1 + 1
