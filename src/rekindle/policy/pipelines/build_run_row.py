"""Build a run's row from its plan and its state, for every screen."""

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from typing import assert_never

from rekindle.documents.pipelines.pipeline_events import PipelineOutcome
from rekindle.documents.pipelines.run_branches import (
    name_merge_branch,
    name_result_branch,
    render_fetch_command,
)
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.pipeline_row import (
    PersonTask,
    RunRow,
    RunStanding,
    StepRow,
    StepStanding,
    WorkerFailure,
)
from rekindle.policy.pipelines.pipeline_moves import measure_spending
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.run_plan import RunPlan, StepPlan
from rekindle.policy.pipelines.step_status import (
    MERGE_KEYS,
    RESULT,
    ConflictedStep,
    DoneStep,
    FailedStep,
    ListingStep,
    MergingStep,
    OpenStep,
    SkippedStep,
    StepStatus,
    WaitingStep,
    find_conflicting,
    find_result,
    find_statuses,
    has_failed,
    list_fatal_steps,
)
from rekindle.policy.supervision.budget import find_reached_cap, raise_caps
from rekindle.thresholds.screens import SHORT_COMMIT_CHARACTERS

_OUTCOMES: dict[PipelineOutcome, RunStanding] = {
    "done": "done",
    "failed": "failed",
    "budget": "over budget",
    "stopped": "stopped",
}


def build_run_row(
    plan: RunPlan,
    state: PipelineState,
    *,
    number: int,
    now: datetime,
    agents: Mapping[str, AgentRow] | None = None,
    updated: datetime | None = None,
    why: str = "",
    notice: str = "",
    remote: str = "",
    is_coordinated: bool = True,
) -> RunRow:
    """Return the row for a run.

    `agents` contains its workers' rows by agent name, which show whether a worker waits for a
    person. `why` is the reason in the run's last event, and `notice` describes what the coordinator
    needs from the operator. `remote` names the git remote with the branches of a run on a fleet.
    """
    statuses = find_statuses(plan, state) if state.began else {}
    tasks = () if state.ended else tuple(_list_tasks(plan, state, statuses, agents or {}, remote))
    if notice and not state.ended:
        # A fleet repeats the task by itself.
        command = "" if remote else f"rekindle pipeline resume {plan.pipeline} {number}"
        commands = (command,) if command else ()
        tasks = (PersonTask(step="", text=notice, commands=commands), *tasks)
    until = _find_limit(state, statuses, now)
    spent = measure_spending(state)
    cap = raise_caps(plan.budget, state.raised)
    standing = _find_standing(state, has_tasks=bool(tasks), is_limited=until is not None)
    is_done = standing == "done"
    reached = find_reached_cap(spent, cap, began=state.counted_from, now=updated or now)
    unit = reached.unit if reached else "usd"
    return RunRow(
        pipeline=plan.pipeline,
        run=number,
        state=standing,
        reason=why.removeprefix("failed: "),
        is_coordinated=is_coordinated,
        began=state.began,
        updated=updated,
        stopped_seconds=state.idle.total_seconds(),
        until=until,
        usd=spent.usd,
        tokens=spent.tokens,
        is_estimated=spent.is_estimated,
        usd_cap=cap.usd if cap else None,
        tokens_cap=cap.tokens if cap else None,
        hours_cap=cap.hours if cap else None,
        steps=tuple(
            _build_step(step, statuses.get(step.id, WaitingStep()), state) for step in plan.steps
        ),
        tasks=tasks,
        failures=_sort_failures(_list_failures(plan, state), list_fatal_steps(plan, statuses)),
        branch=name_result_branch(plan.pipeline, number) if is_done else "",
        commit=state.commit if is_done else "",
        command=_find_command(standing, plan.pipeline, number, unit)
        or _find_work_command(standing, state, remote),
    )


def _find_standing(state: PipelineState, *, has_tasks: bool, is_limited: bool) -> RunStanding:
    if state.ended is not None:
        return _OUTCOMES[state.ended]
    if state.is_stopped:
        return "stopping"
    if has_tasks:
        return "needs you"
    return "waiting" if is_limited and not state.list_running() else "running"


def _find_command(standing: RunStanding, pipeline: str, run: int, unit: str) -> str:
    match standing:
        case "done":
            return f"rekindle pipeline merge {pipeline} {run}"
        case "stopped":
            return f"rekindle pipeline resume {pipeline} {run}"
        case "over budget":
            return f"rekindle pipeline resume {pipeline} {run} --budget {unit}=AMOUNT"
        case _:
            return ""


def _find_work_command(standing: RunStanding, state: PipelineState, remote: str) -> str:
    """Return the command that lists the branches of a failed run's workers, or ""."""
    has_work = any(worker.status == "done" for worker in state.workers.values())
    if standing != "failed" or not has_work:
        return ""
    branches = f"rekindle/{state.pipeline}-{state.run}-*/work"
    return f"git ls-remote {remote} '{branches}'" if remote else f"git branch --list '{branches}'"


def _find_limit(
    state: PipelineState, statuses: Mapping[str, StepStatus], now: datetime
) -> datetime | None:
    """Return the end of the first usage limit that keeps workers from starting, or None."""
    if state.ended is not None or state.is_stopped:
        return None
    harnesses = {
        status.harness
        for status in statuses.values()
        if isinstance(status, OpenStep) and status.pending
    }
    ends = [state.limits[harness] for harness in harnesses if harness in state.limits]
    return min((end for end in ends if end > now), default=None)


def _build_step(step: StepPlan, status: StepStatus, state: PipelineState) -> StepRow:
    items = state.items.get(step.id)
    is_listed = step.is_matrix and items is not None
    keys = items.workers if items is not None and step.is_matrix else ("",)
    workers = [state.find_worker(step.id, key) for key in keys]
    everyone = [worker for (place, _), worker in state.workers.items() if place == step.id]
    failed = sum(has_failed(step, worker) for worker in workers)
    retrying = sum(
        worker.failures > 0 and worker.status != "done" and not has_failed(step, worker)
        for worker in workers
    )
    return StepRow(
        step=step.id,
        state=_find_step_standing(status, is_over=state.ended is not None),
        is_matrix=step.is_matrix,
        workers=len(keys) if is_listed or not step.is_matrix else None,
        done=sum(worker.status == "done" for worker in workers),
        running=sum(worker.status == "running" and not worker.failures for worker in workers),
        retrying=retrying,
        failed=failed,
        usd=sum(worker.usd + worker.attempt_usd for worker in everyone),
        tokens=sum(worker.tokens + worker.attempt_tokens for worker in everyone),
        is_estimated=any(worker.is_estimated for worker in everyone),
    )


def _find_step_standing(status: StepStatus, *, is_over: bool) -> StepStanding:  # noqa: PLR0911 - one per status
    match status:
        case WaitingStep():
            return "waiting"
        case SkippedStep():
            return "skipped"
        case ConflictedStep():
            return "needs you"
        case FailedStep():
            return "failed"
        case DoneStep():
            return "done"
        case MergingStep() | ListingStep() | OpenStep() if is_over:
            return "stopped"
        case MergingStep():
            return "merging"
        case OpenStep(pending=pending, running=running):
            is_merging = {*pending, *running} & {*MERGE_KEYS.values()}
            return "merging" if is_merging else "running"
        case ListingStep():
            return "running"
        case _:
            assert_never(status)


def _list_tasks(
    plan: RunPlan,
    state: PipelineState,
    statuses: Mapping[str, StepStatus],
    agents: Mapping[str, AgentRow],
    remote: str,
) -> Iterator[PersonTask]:
    """Yield the merges and workers that wait for a person."""
    joined = [*((step, statuses[step.id]) for step in plan.steps if step.id in statuses)]
    if joined and all(isinstance(status, DoneStep | FailedStep) for _, status in joined):
        result = find_result(plan, state, statuses)
        joined += [] if isinstance(result, str) else [(RESULT, result)]
    is_failing = bool(list_fatal_steps(plan, statuses))
    for step, status in joined:
        if isinstance(status, ConflictedStep) and not is_failing:
            yield _describe_conflict(plan, step, status, state, remote)
    for (step_id, key), worker in state.list_running():
        row = agents.get(worker.agent)
        if row is None or state.is_stopped:
            continue
        own = statuses.get(step_id)
        is_lost = isinstance(own, OpenStep) and own.is_lost
        if row.outcome == "stopped" and not is_lost and not worker.is_stopping:
            yield PersonTask(
                step=step_id,
                worker=key,
                text="you stopped this worker; to continue it:",
                commands=(f"rekindle up {worker.agent}",),
            )
        elif row.state in {"needs you", "broken"}:
            yield PersonTask(
                step=step_id,
                worker=key,
                text=row.reason or row.state,
                commands=(row.next_step,) if row.command else (),
            )


def _describe_conflict(
    plan: RunPlan, step: StepPlan, status: ConflictedStep, state: PipelineState, remote: str
) -> PersonTask:
    """Describe the merge that a person must do, with the git commands for it."""
    branch = name_merge_branch(state.pipeline, state.run, step.id, status.stage)
    merges = (
        f"git merge {commit[:SHORT_COMMIT_CHARACTERS]}"
        for _, commit in find_conflicting(plan, state, step.id, status.stage)
    )
    return PersonTask(
        step=step.id,
        text=f"git cannot merge the changes of {', '.join(status.conflicts)}"
        f"{'' if step.id else ' into the result'}."
        " Merge and commit them on this branch; the run then continues:",
        commands=(
            *([render_fetch_command(state.pipeline, state.run, branch, remote)] if remote else []),
            f"git switch {branch}",
            *merges,
            *([f"git push {remote} {branch}"] if remote else []),
            "git switch -",
        ),
    )


def _sort_failures(
    failures: Iterable[WorkerFailure], fatal: Container[str]
) -> tuple[WorkerFailure, ...]:
    """Return the failures. Those that failed the run come first."""
    return tuple(sorted(failures, key=lambda failure: failure.step not in fatal))


def _list_failures(plan: RunPlan, state: PipelineState) -> Iterator[WorkerFailure]:
    for step in plan.steps:
        items = state.items.get(step.id)
        if items is not None and items.why:
            yield WorkerFailure(step=step.id, why=items.why)
        for (place, key), worker in state.workers.items():
            if place == step.id and has_failed(step, worker):
                yield WorkerFailure(step=place, worker=key, agent=worker.agent, why=worker.why)
