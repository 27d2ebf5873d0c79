"""Compute the state of a pipeline run from its events.

The state contains facts only; `step_status` and `pipeline_moves` draw conclusions. An event that is
recorded twice counts once.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Literal, assert_never

import msgspec

from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import (
    AnyPipelineEvent,
    ItemsFound,
    MergeStage,
    PersonAsked,
    PipelineEnded,
    PipelineOutcome,
    PipelineResumed,
    PipelineStarted,
    PipelineStopped,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
    WorkerReported,
)
from rekindle.policy.projection.open_loops import stamp_after

WorkerId = tuple[str, str]
"""A step's id and a worker's key."""
MergeId = tuple[str, MergeStage]
"""A step's id, and the stage of its merge."""
_RESUMABLE: tuple[PipelineOutcome, ...] = ("stopped", "budget")


class WorkerState(msgspec.Struct, frozen=True):
    status: Literal["new", "running", "done", "failed", "stopped"] = "new"
    attempt: int = 0
    """Number of the last attempt; 0 before the first."""
    failures: int = 0
    """Number of attempts that failed a check. A stopped attempt is not a failure."""
    agent: str = ""
    start: str = ""
    """Commit that the worker started from."""
    commit: str = ""
    """Commit that contains the work of the last attempt that ended."""
    why: str = ""
    """Why the last attempt failed."""
    usd: float = 0.0
    """Cost of all earlier attempts, in dollars."""
    tokens: int = 0
    """Number of tokens used by all earlier attempts."""
    attempt_usd: float = 0.0
    """Cost of the running attempt so far, in dollars."""
    attempt_tokens: int = 0
    """Number of tokens used by the running attempt so far."""
    has_estimates: bool = False
    """Whether a part of the cost of all earlier attempts was computed from tokens."""
    is_attempt_estimated: bool = False
    """Whether a part of the cost of the running attempt was computed from tokens."""
    is_stopping: bool = False
    """Whether the operator stopped the run during the last attempt."""

    @property
    def is_estimated(self) -> bool:
        return self.has_estimates or self.is_attempt_estimated


class MatrixItems(msgspec.Struct, frozen=True):
    workers: tuple[str, ...] = ()
    why: str = ""
    """Why the list is unusable; empty if it is usable."""


class MergeResult(msgspec.Struct, frozen=True):
    commit: str
    conflicts: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class PipelineState(msgspec.Struct, frozen=True):
    pipeline: str = ""
    run: int = 0
    base: str = ""
    began: datetime | None = None
    paused: datetime | None = None
    """Time at which the run last ended; None if it has not ended yet."""
    idle: timedelta = timedelta()
    """Total time between each end of the run and the resume that followed."""
    items: Mapping[str, MatrixItems] = {}
    """Items of the matrix steps whose lists have been read, by step."""
    workers: Mapping[WorkerId, WorkerState] = {}
    merges: Mapping[MergeId, MergeResult] = {}
    asked: frozenset[MergeId] = frozenset()
    """Merges that a person was asked to do."""
    limits: Mapping[str, datetime] = {}
    """Time at which each agent CLI's usage limit ends, by CLI."""
    is_stopped: bool = False
    commanded: datetime | None = None
    """Time of the operator's last command."""
    raised: Mapping[str, float] = {}
    """Caps on the whole run, as raised by the operator, by unit."""
    ended: PipelineOutcome | None = None
    commit: str = ""
    """Commit with the result of a run that is done."""

    @property
    def counted_from(self) -> datetime | None:
        """Return the start of the run, shifted by its idle time, for counting its hours."""
        return self.began + self.idle if self.began is not None else None

    def find_worker(self, step: str, key: str) -> WorkerState:
        return self.workers.get((step, key), WorkerState())

    def list_running(self) -> list[tuple[WorkerId, WorkerState]]:
        """Return the running workers. The coordinator recreates any that it lost."""
        return [entry for entry in self.workers.items() if entry[1].status == "running"]


def fold(  # noqa: C901, PLR0912 - one case per kind
    events: Iterable[AnyPipelineEvent | UnknownEvent],
    state: PipelineState = PipelineState(),  # noqa: B008 - frozen
) -> PipelineState:
    """Return the state after these events, which follow those already in `state`."""
    # Copy the dictionaries once, not for every event.
    items, workers = dict(state.items), dict(state.workers)
    merges, limits, asked = dict(state.merges), dict(state.limits), set(state.asked)
    change = msgspec.structs.replace
    for event in events:
        match event:
            case PipelineStarted():
                if state.began is None:
                    state = change(
                        state,
                        pipeline=event.pipeline,
                        run=event.run,
                        base=event.base,
                        began=event.ts,
                    )
            case ItemsFound():
                items.setdefault(event.step, MatrixItems(event.workers, event.why))
            case WorkerBegan() | WorkerReported() | WorkerEnded():
                place = (event.step, event.worker)
                workers[place] = _apply_to_worker(workers.get(place, WorkerState()), event)
                if isinstance(event, WorkerReported) and event.harness and event.until:
                    known = limits.get(event.harness, event.until)
                    limits[event.harness] = max(known, event.until)
            case StepMerged():
                merge = merges.get((event.step, event.stage))
                if merge is None or merge.conflicts:
                    merges[event.step, event.stage] = MergeResult(
                        event.commit, event.conflicts, event.dropped
                    )
            case PersonAsked():
                asked.add((event.step, event.stage))
            case PipelineStopped() | PipelineResumed():
                state = _apply_command(state, event)
                if state.is_stopped:
                    workers = {
                        place: change(worker, is_stopping=True)
                        if worker.status == "running"
                        else worker
                        for place, worker in workers.items()
                    }
            case PipelineEnded():
                if state.ended is None:
                    state = change(state, ended=event.outcome, commit=event.commit, paused=event.ts)
            case UnknownEvent():
                pass
            case _:
                assert_never(event)
    return change(
        state, items=items, workers=workers, merges=merges, limits=limits, asked=frozenset(asked)
    )


def _apply_to_worker(
    worker: WorkerState, event: WorkerBegan | WorkerReported | WorkerEnded
) -> WorkerState:
    """Return the worker after an event. Late reports about another attempt are ignored."""
    change = msgspec.structs.replace
    if isinstance(event, WorkerBegan):
        if worker.status in {"running", "done"} or event.attempt <= worker.attempt:
            return worker
        return change(
            worker,
            status="running",
            attempt=event.attempt,
            agent=event.agent,
            start=event.commit,
            is_stopping=False,
        )
    if worker.status != "running" or event.attempt != worker.attempt:
        return worker
    usd = max(worker.attempt_usd, event.usd)
    tokens = max(worker.attempt_tokens, event.tokens)
    if isinstance(event, WorkerReported):
        known = {"attempt_usd": usd, "attempt_tokens": tokens}
        return change(worker, **known, is_attempt_estimated=event.is_estimated)
    return change(
        worker,
        status=event.outcome,
        failures=worker.failures + (event.outcome == "failed"),
        commit=event.commit,
        why=event.why if event.outcome == "failed" else "",
        usd=worker.usd + usd,
        tokens=worker.tokens + tokens,
        has_estimates=worker.has_estimates or event.is_estimated,
        attempt_usd=0.0,
        attempt_tokens=0,
        is_attempt_estimated=False,
    )


def _apply_command(state: PipelineState, event: PipelineStopped | PipelineResumed) -> PipelineState:
    """Apply the operator's command. An older or repeated command has no effect."""
    if state.commanded is not None and event.ts <= state.commanded:
        return state
    change = msgspec.structs.replace
    state = change(state, commanded=event.ts, is_stopped=isinstance(event, PipelineStopped))
    if isinstance(event, PipelineStopped):
        return state
    raised = {
        unit: max(amount, state.raised.get(unit, amount)) for unit, amount in event.budget.items()
    }
    state = change(state, raised={**state.raised, **raised})
    if state.ended not in _RESUMABLE:
        return state
    idle = max(event.ts - state.paused, timedelta()) if state.paused else timedelta()
    return change(state, ended=None, idle=state.idle + idle)


def stamp_command(state: PipelineState, now: datetime) -> datetime:
    """Return the time of a new command, just after the last one if the clock was set back."""
    return stamp_after(now, *([state.commanded] if state.commanded else []))
