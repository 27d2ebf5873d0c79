"""Decide what to do next in a pipeline run.

Every move is safe to repeat: if the coordinator is killed before it records a move's event, the
next one makes the same move.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from rekindle.documents.manifest_keys import Budget
from rekindle.documents.pipelines.pipeline_events import MergeStage, PipelineOutcome
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.pipelines.step_status import (
    RESULT,
    ConflictedStep,
    ListingStep,
    MergingStep,
    OpenStep,
    Part,
    StepStatus,
    find_result,
    find_statuses,
    list_fatal_steps,
)
from rekindle.policy.pipelines.worker_names import name_worker
from rekindle.policy.settings.runtime_settings import SECONDS_AN_HOUR
from rekindle.policy.supervision.budget import (
    ReachedCap,
    RunSpending,
    describe_reached_cap,
    raise_caps,
)
from rekindle.thresholds.pipeline_limits import LEAST_REST


class FindItems(msgspec.Struct, frozen=True):
    """Read the list of items for a matrix step, and record `items.found`."""

    step: str
    commit: str
    """Commit that contains the list."""


class BeginWorker(msgspec.Struct, frozen=True):
    """Record `worker.began`, then create the worker's folder and agent."""

    step: str
    worker: str
    attempt: int
    agent: str
    commit: str


class StopWorker(msgspec.Struct, frozen=True):
    """Tell a worker to stop. Its end is recorded like that of any other worker."""

    step: str
    worker: str
    attempt: int


class MergeCommits(msgspec.Struct, frozen=True):
    """Merge commits in this order, and record `step.merged`."""

    step: str
    stage: MergeStage
    parts: tuple[Part, ...]
    drops: bool
    """Whether to leave out changes that conflict."""


class AskPerson(msgspec.Struct, frozen=True):
    """Ask a person to merge, and record `person.asked`. The rest of the run continues."""

    step: str
    stage: MergeStage
    conflicts: tuple[str, ...]


class AwaitLimit(msgspec.Struct, frozen=True):
    """Decide again at this time, which is when the first usage limit ends."""

    until: datetime


class EndPipeline(msgspec.Struct, frozen=True):
    """Record `pipeline.ended`."""

    outcome: PipelineOutcome
    commit: str = ""
    why: str = ""


PipelineMove = (
    FindItems | BeginWorker | StopWorker | MergeCommits | AskPerson | AwaitLimit | EndPipeline
)


def decide(plan: RunPlan, state: PipelineState, now: datetime) -> list[PipelineMove]:
    """Return all moves that are due. If there are none, the run waits for the next event."""
    if state.ended is not None or state.began is None:
        return []
    running = state.list_running()
    if state.is_stopped:
        stops = [StopWorker(step, key, worker.attempt) for (step, key), worker in running]
        return [*stops] or [EndPipeline("stopped", why="by the operator")]
    statuses = find_statuses(plan, state)
    cap = raise_caps(plan.budget, state.raised)
    spent = measure_spending(state)
    reached = describe_reached_cap(spent, cap, began=state.counted_from, now=now)
    is_failing = bool(list_fatal_steps(plan, statuses))
    moves = list[PipelineMove]()
    for step in plan.steps:
        if not (is_failing and isinstance(statuses[step.id], ConflictedStep)):
            moves += _list_step_moves(step, statuses[step.id], state)
        if not reached:
            moves += _list_begins(step, statuses[step.id], state, now=now, plan=plan)
    if not moves and not running:
        return _decide_end(plan, state, statuses, reached)
    waits = [move for move in moves if isinstance(move, AwaitLimit)]
    moves = [move for move in moves if not isinstance(move, AwaitLimit)]
    return [*moves, *sorted(waits, key=lambda wait: wait.until)[:1]]


def _decide_end(
    plan: RunPlan, state: PipelineState, statuses: Mapping[str, StepStatus], reached: str
) -> list[PipelineMove]:
    """Return the end of the run, or the final merge, once no worker is running or can start."""
    if reached and any(
        isinstance(status, OpenStep) and status.pending for status in statuses.values()
    ):
        return [EndPipeline("budget", why=reached)]
    if failed := list_fatal_steps(plan, statuses):
        return [EndPipeline("failed", why=f"failed: {', '.join(failed)}")]
    if any(isinstance(status, ConflictedStep) for status in statuses.values()):
        return []  # a person has to merge first
    result = find_result(plan, state, statuses)
    if isinstance(result, str):
        return [EndPipeline("done", result)]
    return list(_list_step_moves(RESULT, result, state))


def measure_spending(state: PipelineState) -> RunSpending:
    """Return the spending of all workers in the run, including those that are running."""
    workers = state.workers.values()
    return RunSpending(
        usd=sum(worker.usd + worker.attempt_usd for worker in workers),
        tokens=sum(worker.tokens + worker.attempt_tokens for worker in workers),
        is_reported=not any(worker.is_estimated for worker in workers),
    )


def _list_step_moves(
    step: StepPlan, status: StepStatus, state: PipelineState
) -> Iterator[PipelineMove]:
    """Yield the moves that cost nothing, so limits do not apply to them."""
    match status:
        case ListingStep(commit):
            yield FindItems(step.id, commit)
        case MergingStep(stage, parts):
            yield MergeCommits(step.id, stage, parts, drops=step.conflicts == "drop")
        case ConflictedStep(stage, conflicts) if (step.id, stage) not in state.asked:
            yield AskPerson(step.id, stage, conflicts)
        case OpenStep(running=keys, is_lost=True):
            for key in keys:
                yield StopWorker(step.id, key, state.find_worker(step.id, key).attempt)
        case _:
            pass


def _list_begins(
    step: StepPlan,
    status: StepStatus,
    state: PipelineState,
    *,
    now: datetime,
    plan: RunPlan,
) -> Iterator[PipelineMove]:
    """Yield the step's workers that can start now, or a wait until a usage limit ends."""
    if not isinstance(status, OpenStep) or not status.pending:
        return
    until = state.limits.get(status.harness) if status.harness else None
    room = step.max_concurrency - len(status.running)
    if room <= 0:
        return
    if until is not None and until > now:
        yield AwaitLimit(until)
        return
    ids = [other.id for other in plan.steps]
    for key in status.pending[:room]:
        yield BeginWorker(
            step.id,
            key,
            state.find_worker(step.id, key).attempt + 1,
            name_worker(state.pipeline, state.run, step.id, key, ids),
            status.commit,
        )


def limit_worker(
    plan: RunPlan, state: PipelineState, own: Budget | None, now: datetime
) -> Budget | None:
    """Return a worker's caps: its own, or what is left of the run's budget if that is less."""
    cap = raise_caps(plan.budget, state.raised)
    hours = (now - (state.counted_from or now)).total_seconds() / SECONDS_AN_HOUR
    return _take_smaller(own, _subtract(cap, measure_spending(state), hours))


def is_capped_by_run(own: Budget | None, reached: ReachedCap | None) -> bool:
    """Return whether the cap that a worker reached came from the run's budget, not its own."""
    return reached is not None and (own is None or getattr(own, reached.unit) != reached.cap)


def _subtract(cap: Budget | None, spent: RunSpending, hours: float) -> Budget | None:
    """Return what is left of a budget, but more than zero, because a cap must be positive."""
    if cap is None:
        return None
    return Budget(
        usd=None if cap.usd is None else max(cap.usd - spent.usd, LEAST_REST),
        tokens=None if cap.tokens is None else max(cap.tokens - spent.tokens, 1),
        hours=None if cap.hours is None else max(cap.hours - hours, LEAST_REST),
    )


def _take_smaller(own: Budget | None, rest: Budget | None) -> Budget | None:
    """Return the smaller cap for each unit."""
    if own is None or rest is None:
        return own or rest
    return Budget(
        usd=min((cap for cap in (own.usd, rest.usd) if cap is not None), default=None),
        tokens=min((cap for cap in (own.tokens, rest.tokens) if cap is not None), default=None),
        hours=min((cap for cap in (own.hours, rest.hours) if cap is not None), default=None),
    )
