"""How far a step is, from its own workers and the steps before it."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.pipelines.pipeline_events import (
    PipelineStarted,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.policy.pipelines.pipeline_state import WorkerState, fold
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.pipelines.step_status import (
    DoneStep,
    FailedStep,
    MergingStep,
    OpenStep,
    SkippedStep,
    WaitingStep,
    find_statuses,
    has_failed,
)

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
STARTED = PipelineStarted(ts=NOW, pipeline="ship", run=1, base="c0")
BEGAN = WorkerBegan(ts=NOW, step="plan", attempt=1, agent="ship-1-plan", commit="c0")
MERGED = StepMerged(ts=NOW, step="plan", commit="c1", merged=("",))


def end(outcome):
    return WorkerEnded(ts=NOW, step="plan", attempt=1, outcome=outcome, commit="c1")


@pytest.mark.parametrize(
    ("log", "optional", "plan", "build"),
    [
        ([], False, OpenStep, WaitingStep),
        ([BEGAN], False, OpenStep, WaitingStep),
        ([BEGAN, end("done")], False, MergingStep, WaitingStep),
        ([BEGAN, end("done"), MERGED], False, DoneStep, OpenStep),
        ([BEGAN, end("failed")], False, FailedStep, SkippedStep),
        ([BEGAN, end("failed")], True, FailedStep, OpenStep),
        ([BEGAN, end("stopped")], False, OpenStep, WaitingStep),
    ],
)
def test_a_step_follows_its_worker_and_the_next_one_its_result(log, optional, plan, build):
    steps = (StepPlan(id="plan", optional=optional), StepPlan(id="build", depends_on=("plan",)))
    state = fold([STARTED, *log])
    statuses = find_statuses(RunPlan(pipeline="ship", steps=steps), state)
    assert (type(statuses["plan"]), type(statuses["build"])) == (plan, build)


@pytest.mark.parametrize(
    ("status", "failures", "attempts", "failed"),
    [
        ("failed", 1, 1, True),
        ("failed", 1, 2, False),
        ("failed", 2, 2, True),
        ("stopped", 1, 2, False),
        ("done", 1, 2, False),
    ],
)
def test_a_worker_has_failed_when_its_attempts_are_used_up(status, failures, attempts, failed):
    worker = WorkerState(status=status, attempt=failures, failures=failures)
    assert has_failed(StepPlan(id="plan", attempts=attempts), worker) is failed
