"""Determine each step's status in a run from the plan and the state.

A step turns one commit into another. It starts from the merged results of the steps that it depends
on, and its result is the merged work of its workers. A failed optional step passes on the commit
that it started from.
"""

from collections.abc import Mapping, Sequence

import msgspec

from rekindle.documents.pipelines.pipeline_events import MergeStage
from rekindle.policy.pipelines.pipeline_state import (
    MergeResult,
    PipelineState,
    WorkerState,
)
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan

MERGE_KEYS: Mapping[MergeStage, str] = {"inputs": "_inputs", "workers": "_merge"}
"""Keys of the workers that merge conflicting changes. An item cannot have such a key, because the
keys of items do not contain underscores.
"""

RESULT = StepPlan(id="")
"""Represents the whole run when the results of its last steps are merged."""

Part = tuple[str, str]
"""A worker's key or a step's id, and its commit."""


class WaitingStep(msgspec.Struct, frozen=True):
    """A step whose dependencies are not done yet."""


class SkippedStep(msgspec.Struct, frozen=True):
    """A step that cannot run because an earlier step failed."""


class MergingStep(msgspec.Struct, frozen=True):
    """A step whose commits git has to merge."""

    stage: MergeStage
    parts: tuple[Part, ...]


class ConflictedStep(msgspec.Struct, frozen=True):
    """A step that waits for a person to merge conflicting changes."""

    stage: MergeStage
    conflicts: tuple[str, ...]


class ListingStep(msgspec.Struct, frozen=True):
    """A matrix step whose list of items has to be read."""

    commit: str


class OpenStep(msgspec.Struct, frozen=True):
    """A step with workers that are running or have yet to start."""

    commit: str
    """Commit that its workers start from."""
    pending: tuple[str, ...]
    """Keys of the workers that have yet to start, in order."""
    running: tuple[str, ...]
    harness: str
    """Agent CLI that these workers use."""
    is_lost: bool = False
    """Whether the running workers must stop, because the step can no longer succeed."""


class FailedStep(msgspec.Struct, frozen=True):
    commit: str
    """Commit that the step started from."""
    workers: tuple[str, ...] = ()
    """Keys of the workers that failed."""


class DoneStep(msgspec.Struct, frozen=True):
    commit: str
    failed: tuple[str, ...] = ()
    """Keys of failed workers, if the step can succeed without them."""


StepStatus = (
    WaitingStep
    | SkippedStep
    | MergingStep
    | ConflictedStep
    | ListingStep
    | OpenStep
    | FailedStep
    | DoneStep
)


def has_failed(step: StepPlan, worker: WorkerState) -> bool:
    """Return whether a worker has used up its attempts."""
    return worker.status == "failed" and worker.failures >= step.attempts


def find_statuses(plan: RunPlan, state: PipelineState) -> dict[str, StepStatus]:
    """Return the status of each step, in manifest order."""
    steps = {step.id: step for step in plan.steps}
    statuses: dict[str, StepStatus] = {}
    remaining = list(steps)
    while remaining:
        ready = [
            step
            for step in remaining
            if all(dependency in statuses for dependency in steps[step].depends_on)
        ]
        if not ready:
            raise ValueError(f"the steps {remaining} depend on each other")
        for step in ready:
            statuses[step] = _find_status(steps, steps[step], state, statuses)
        remaining = [step for step in remaining if step not in statuses]
    return {step: statuses[step] for step in steps}


def find_result(
    plan: RunPlan, state: PipelineState, statuses: Mapping[str, StepStatus]
) -> str | StepStatus:
    """Return the commit with which a successful run ends, or the merge that is still missing."""
    needed = {dependency for step in plan.steps for dependency in step.depends_on}
    last = [step.id for step in plan.steps if step.id not in needed]
    return _join(RESULT, "result", _list_results(last, statuses), state)


def _find_status(
    steps: Mapping[str, StepPlan],
    step: StepPlan,
    state: PipelineState,
    statuses: Mapping[str, StepStatus],
) -> StepStatus:
    before = [dependency for dependency in steps if dependency in step.depends_on]
    for dependency in before:
        status = statuses[dependency]
        if isinstance(status, SkippedStep) or (
            isinstance(status, FailedStep) and not steps[dependency].optional
        ):
            return SkippedStep()
    if not all(isinstance(statuses[dependency], DoneStep | FailedStep) for dependency in before):
        return WaitingStep()
    start = _join(step, "inputs", _list_results(before, statuses), state) if before else state.base
    return _find_own_status(step, start, state) if isinstance(start, str) else start


def _find_own_status(step: StepPlan, start: str, state: PipelineState) -> StepStatus:
    """Return the status of a step that starts from this commit."""
    items = state.items.get(step.id)
    if step.is_matrix and items is None:
        return ListingStep(start)
    if items is not None and items.why:
        return FailedStep(start)
    keys = items.workers if items is not None and step.is_matrix else ("",)
    workers = {key: state.find_worker(step.id, key) for key in keys}
    failed = tuple(key for key, worker in workers.items() if has_failed(step, worker))
    running = tuple(key for key, worker in workers.items() if worker.status == "running")
    done = [key for key, worker in workers.items() if worker.status == "done"]
    pending = tuple(key for key in keys if key not in {*failed, *running, *done})
    is_lost = step.needs == "all" and bool(failed)
    if is_lost and step.fail_fast:
        pending = ()
    if pending or running:
        is_stopping = is_lost and step.fail_fast
        return OpenStep(start, pending, running, step.harness, is_lost=is_stopping)
    if is_lost or (keys and not done):
        return FailedStep(start, failed)
    parts = tuple((key, workers[key].commit) for key in done)
    result = _merge(step, "workers", parts, state) if parts else start
    return DoneStep(result, failed) if isinstance(result, str) else result


def _list_results(ids: Sequence[str], statuses: Mapping[str, StepStatus]) -> tuple[Part, ...]:
    """Return the commits of the steps that are done or failed."""
    return tuple(
        (step, status.commit)
        for step in ids
        if isinstance(status := statuses[step], DoneStep | FailedStep)
    )


def _join(
    step: StepPlan, stage: MergeStage, parts: tuple[Part, ...], state: PipelineState
) -> str | StepStatus:
    """Return the commit that combines several steps. Equal commits need no merge."""
    commits = {commit for _, commit in parts}
    return commits.pop() if len(commits) == 1 else _merge(step, stage, parts, state)


def _merge(
    step: StepPlan, stage: MergeStage, parts: tuple[Part, ...], state: PipelineState
) -> str | StepStatus:
    """Return the merged commit, or the step's status if it is not merged yet."""
    merge = state.merges.get((step.id, stage))
    if merge is None:
        return MergingStep(stage, parts)
    if not merge.conflicts or step.conflicts == "drop":
        return merge.commit
    if step.conflicts == "agent" and stage in MERGE_KEYS:
        return _find_merging_agent(step, stage, merge, state)
    return ConflictedStep(stage, merge.conflicts)


def _find_merging_agent(
    step: StepPlan, stage: MergeStage, merge: MergeResult, state: PipelineState
) -> StepStatus:
    """Return the status of a step whose conflicts an agent merges, or a person if that fails."""
    key = MERGE_KEYS[stage]
    worker = state.find_worker(step.id, key)
    if worker.status == "done":
        return MergingStep(stage, ((key, worker.commit),))
    if has_failed(step, worker):
        return ConflictedStep(stage, merge.conflicts)
    is_running = worker.status == "running"
    return OpenStep(
        merge.commit,
        () if is_running else (key,),
        (key,) if is_running else (),
        step.merge_harness,
    )


def find_conflicting(
    plan: RunPlan, state: PipelineState, step: str, stage: MergeStage
) -> tuple[Part, ...]:
    """Return the workers or steps whose changes must still be merged, with their commits."""
    merge = state.merges.get((step, stage))
    if merge is None:
        return ()
    if stage == "workers":
        return tuple((key, state.find_worker(step, key).commit) for key in merge.conflicts)
    return _list_results(merge.conflicts, find_statuses(plan, state))


def list_fatal_steps(plan: RunPlan, statuses: Mapping[str, StepStatus]) -> list[str]:
    """Return the steps whose failure fails the run."""
    return [
        step.id
        for step in plan.steps
        if isinstance(statuses.get(step.id), FailedStep) and not step.optional
    ]


def list_failed_workers(statuses: Mapping[str, StepStatus]) -> dict[str, tuple[str, ...]]:
    """Return the failed workers of each done or failed step, for `{{ steps.ID.failed }}`."""
    return {
        step: status.workers if isinstance(status, FailedStep) else status.failed
        for step, status in statuses.items()
        if isinstance(status, DoneStep | FailedStep)
    }
