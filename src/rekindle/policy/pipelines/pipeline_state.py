"""Compute the state of a run of a pipeline from its events.

The state contains facts only; `step_status` and `pipeline_moves` draw conclusions. An event that is
recorded twice counts once.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
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

WorkerId = tuple[str, str]
"""A step's id and a worker's key."""
MergeId = tuple[str, MergeStage]
"""A step's id and what is merged there."""
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
    """Commit with the work of the last attempt that ended."""
    why: str = ""
    """Why the last attempt failed."""
    usd: float = 0.0
    """Cost of all earlier attempts, in dollars."""
    tokens: int = 0
    """Number of tokens of all earlier attempts."""
    attempt_usd: float = 0.0
    """Cost of the running attempt so far, in dollars."""
    attempt_tokens: int = 0
    """Number of tokens of the running attempt so far."""


class MatrixItems(msgspec.Struct, frozen=True):
    workers: tuple[str, ...] = ()
    why: str = ""
    """Why the list cannot be used; empty if it can."""


class MergeResult(msgspec.Struct, frozen=True):
    commit: str
    conflicts: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()


class PipelineState(msgspec.Struct, frozen=True):
    pipeline: str = ""
    run: int = 0
    base: str = ""
    began: datetime | None = None
    items: Mapping[str, MatrixItems] = {}
    """The items of matrix steps whose lists were read, by step."""
    workers: Mapping[WorkerId, WorkerState] = {}
    merges: Mapping[MergeId, MergeResult] = {}
    asked: frozenset[MergeId] = frozenset()
    """Merges for which a person was asked."""
    limits: Mapping[str, datetime] = {}
    """Time at which the usage limit of an agent CLI ends, by CLI."""
    is_stopped: bool = False
    commanded: datetime | None = None
    """Time of the operator's last command."""
    raised: Mapping[str, float] = {}
    """Caps on the whole run that the operator raised, by unit."""
    ended: PipelineOutcome | None = None
    commit: str = ""
    """Result of a run that is done."""

    def find_worker(self, step: str, key: str) -> WorkerState:
        return self.workers.get((step, key), WorkerState())

    def list_running(self) -> list[tuple[WorkerId, WorkerState]]:
        """Return the workers that must exist. The coordinator creates those that it lost."""
        return [entry for entry in self.workers.items() if entry[1].status == "running"]


def fold(  # noqa: C901, PLR0912 - one for each kind
    events: Iterable[AnyPipelineEvent | UnknownEvent],
    state: PipelineState = PipelineState(),  # noqa: B008 - frozen
) -> PipelineState:
    """Return the state after these events, which follow those in `state`."""
    # Copied once, because each event would otherwise copy all workers.
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
            case PipelineEnded():
                if state.ended is None:
                    state = change(state, ended=event.outcome, commit=event.commit)
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
    """Return the worker after an event. Reports about another attempt are late, and ignored."""
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
        )
    if worker.status != "running" or event.attempt != worker.attempt:
        return worker
    usd = max(worker.attempt_usd, event.usd)
    tokens = max(worker.attempt_tokens, event.tokens)
    if isinstance(event, WorkerReported):
        return change(worker, attempt_usd=usd, attempt_tokens=tokens)
    return change(
        worker,
        status=event.outcome,
        failures=worker.failures + (event.outcome == "failed"),
        commit=event.commit,
        why=event.why,
        usd=worker.usd + usd,
        tokens=worker.tokens + tokens,
        attempt_usd=0.0,
        attempt_tokens=0,
    )


def _apply_command(state: PipelineState, event: PipelineStopped | PipelineResumed) -> PipelineState:
    """Return the state after the operator's command. The latest command counts, once."""
    if state.commanded is not None and event.ts <= state.commanded:
        return state
    change = msgspec.structs.replace
    state = change(state, commanded=event.ts, is_stopped=isinstance(event, PipelineStopped))
    if isinstance(event, PipelineStopped):
        return state
    raised = {
        unit: max(amount, state.raised.get(unit, amount)) for unit, amount in event.budget.items()
    }
    ended = None if state.ended in _RESUMABLE else state.ended
    return change(state, raised={**state.raised, **raised}, ended=ended)
