"""Workflow for one pipeline run on a fleet, which stores the log and decides what is due.

It uses the same `fold` and `decide` as the coordinator on a single host. Hosts do everything else:
they create the agents, check their results and merge them in git. Only names, numbers and commit
ids pass through this workflow.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from rekindle.fleet.agent.continued_runs import continue_run
from rekindle.fleet.agent.refresh_signal import RefreshSignal
from rekindle.fleet.pipelines.pipeline_tasks import run_task

with workflow.unsafe.imports_passed_through():
    import msgspec

    from rekindle.documents.pipelines.pipeline_events import (
        AnyPipelineEvent,
        ItemsFound,
        MergeStage,
        PersonAsked,
        PipelineEnded,
        PipelineResumed,
        PipelineStopped,
        StepMerged,
        WorkerBegan,
        WorkerEnded,
        WorkerReported,
        parse_pipeline_event,
    )
    from rekindle.fleet.agent.host_orders import DECISION_QUEUE, UNFIT
    from rekindle.policy.fleet.pipeline_worker import WorkerReport
    from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline, explain_refused_line
    from rekindle.policy.pipelines import pipeline_moves as moves
    from rekindle.policy.pipelines.pipeline_state import WorkerId, WorkerState, fold
    from rekindle.policy.pipelines.step_status import MERGE_KEYS
    from rekindle.policy.settings.runtime_settings import FLEET_MERGE_POLL_SECONDS
    from rekindle.thresholds.pipeline_limits import SPENDING_STEP_USD

_TaskKey = tuple[str, ...]


@workflow.defn(name="Pipeline")
class PipelineWorkflow(RefreshSignal):
    @workflow.init
    def __init__(self, registered: RegisteredPipeline) -> None:
        self._registered = registered
        self._plan = registered.definition.plan
        self._state = registered.fold()
        self._begun = set(registered.begun)
        self._reports = dict(registered.reports)
        self._tasks: dict[_TaskKey, asyncio.Task[None]] = {}
        """Tasks in progress on hosts, by purpose."""
        self._stopped: set[tuple[str, int]] = set()
        """Agent and attempt of each worker that was sent a stop command."""
        self._look: datetime | None = None
        """When to check for a person's merge again."""
        self._messages = 0
        """Number of reports, commands and finished tasks."""

    @workflow.run
    async def run(self, registered: RegisteredPipeline) -> str:  # noqa: ARG002 - taken by __init__
        """Run the pipeline, and return its outcome. A run that was stopped can be resumed."""
        while self._state.ended not in {"done", "failed"}:
            changes, until = self._messages, None
            if not self._must_continue(self._registered.most_events):
                until = self._start_due_tasks()
            elif not self._tasks:
                await workflow.wait_condition(workflow.all_handlers_finished)
                continue_run(self._make_record(), DECISION_QUEUE)
            await self._wait_for_change(changes, until)
            self._collect_tasks()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return str(self._state.ended)

    def _make_record(self) -> RegisteredPipeline:
        return msgspec.structs.replace(
            self._registered, begun=tuple(sorted(self._begun)), reports=self._reports
        )

    async def _wait_for_change(self, changes: int, until: datetime | None) -> None:
        most = None if until is None else max(until - workflow.now(), timedelta(0))
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._messages != changes, timeout=most)

    def _append(self, event: AnyPipelineEvent) -> None:
        self._registered = self._registered.append(event)
        self._state = fold([event], self._state)
        self._messages += 1

    def _start_due_tasks(self) -> datetime | None:
        """Start all tasks that are due. Return when to decide again, or None."""
        for worker_id, worker in self._state.list_running():
            self._follow_worker(worker_id, worker)
        times = []
        for move in moves.decide(self._plan, self._state, workflow.now()):
            if isinstance(move, moves.AwaitLimit):
                times.append(move.until)
            else:
                self._make(move)
        if look := self._watch_merges():
            times.append(look)
        return min(times, default=None)

    def _make(self, move: moves.PipelineMove) -> None:
        match move:
            case moves.FindItems():
                self._start(("items", move.step), self._record("find_items", move, ItemsFound))
            case moves.BeginWorker():
                began = WorkerBegan(
                    ts=workflow.now(),
                    step=move.step,
                    worker=move.worker,
                    attempt=move.attempt,
                    agent=move.agent,
                    commit=move.commit,
                )
                self._append(began)
                self._start(("begin", began.agent), self._begin(began))
            case moves.StopWorker():
                worker = self._state.find_worker(move.step, move.worker)
                place = (worker.agent, worker.attempt)
                if place in self._begun and place not in self._stopped:
                    self._stopped.add(place)
                    self._start(("stop", worker.agent), self._call("stop_worker", worker.agent))
            case moves.MergeCommits():
                key = ("merge", move.step, move.stage)
                self._start(key, self._record("merge_commits", move, StepMerged))
            case moves.AskPerson():
                self._start(("ask", move.step, move.stage), self._ask_person(move))
            case moves.EndPipeline():
                self._start(("end",), self._end(move))
            case moves.AwaitLimit():
                pass

    def _follow_worker(self, worker_id: WorkerId, worker: WorkerState) -> None:
        """Create a worker if it does not exist yet, or check it if it has reported its end."""
        step, key = worker_id
        place = (worker.agent, worker.attempt)
        began = WorkerBegan(
            ts=workflow.now(),
            step=step,
            worker=key,
            attempt=worker.attempt,
            agent=worker.agent,
            commit=worker.start,
        )
        if place not in self._begun:
            self._start(("begin", worker.agent), self._begin(began))
            return
        report = self._reports.get(worker.agent)
        if report is None or report.attempt != worker.attempt:
            return
        self._record_spending(worker_id, worker, report)
        # If a person stopped the agent, that person may still continue it.
        is_told = worker.is_stopping or place in self._stopped
        if report.state == "over" or (report.state == "stopped" and is_told):
            check = self._record("check_worker", began, WorkerEnded)
            self._start(("check", worker.agent), check)

    def _record_spending(
        self, worker_id: WorkerId, worker: WorkerState, report: WorkerReport
    ) -> None:
        """Record new spending and new usage limits."""
        step, key = worker_id
        harness = self._find_harness(step, key)
        limit = self._state.limits.get(harness)
        is_limited = report.until is not None and (limit is None or report.until > limit)
        if is_limited or report.usd - worker.attempt_usd >= SPENDING_STEP_USD:
            self._append(
                WorkerReported(
                    ts=workflow.now(),
                    step=step,
                    worker=key,
                    attempt=worker.attempt,
                    usd=report.usd,
                    tokens=report.tokens,
                    is_estimated=report.is_estimated,
                    harness=harness if is_limited else "",
                    until=report.until if is_limited else None,
                )
            )

    def _find_harness(self, step: str, key: str) -> str:
        plan = next(other for other in self._plan.steps if other.id == step)
        return plan.merge_harness if key in MERGE_KEYS.values() else plan.harness

    def _watch_merges(self) -> datetime | None:
        """Check for merges that a person was asked to make. Return when to check again, or None."""
        waiting = [
            (step, stage)
            for step, stage in sorted(self._state.asked)
            if (merge := self._state.merges.get((step, stage))) and merge.conflicts
        ]
        if not waiting or self._state.ended is not None:
            return None
        now = workflow.now()
        if self._look is None or now >= self._look:
            self._look = now + timedelta(seconds=FLEET_MERGE_POLL_SECONDS)
            for step, stage in waiting:
                self._start(("look", step, stage), self._find_merge(step, stage))
        return self._look

    def _start(self, key: _TaskKey, work: Coroutine[Any, Any, None]) -> None:
        """Start a task, unless a task for the same purpose is running."""
        if key in self._tasks:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks[key] = task
        task.add_done_callback(self._note_change)

    def _note_change(self, _task: asyncio.Task[None]) -> None:
        self._messages += 1

    def _collect_tasks(self) -> None:
        """Remove finished tasks. If a task failed, raise its error, because that is a bug."""
        for key, task in [*self._tasks.items()]:
            if task.done():
                del self._tasks[key]
                task.result()

    async def _call(self, task: str, *arguments: Any) -> None:
        await self._ask(task, arguments, type(None))

    async def _ask(self, task: str, arguments: tuple[Any, ...], kind: Any) -> Any:
        agent = self._registered.agent
        return await run_task(task, arguments, kind, agent.heartbeat_seconds, agent.pool)

    async def _record(self, task: str, argument: msgspec.Struct, kind: Any) -> None:
        """Run a task on a host, and append the event that it returns."""
        self._append(await self._ask(task, (argument,), kind))

    async def _begin(self, began: WorkerBegan) -> None:
        refusal: str = await self._ask("begin_worker", (began,), str)
        if not refusal:
            self._begun.add((began.agent, began.attempt))
            return
        self._append(
            WorkerEnded(
                ts=workflow.now(),
                step=began.step,
                worker=began.worker,
                attempt=began.attempt,
                outcome="failed",
                commit=began.commit,
                why=refusal,
            )
        )

    async def _ask_person(self, move: moves.AskPerson) -> None:
        await self._call("ask_person", move)
        self._append(PersonAsked(ts=workflow.now(), step=move.step, stage=move.stage))

    async def _find_merge(self, step: str, stage: MergeStage) -> None:
        merged: StepMerged | None = await self._ask("find_merge", (step, stage), StepMerged | None)
        if merged is not None:
            self._append(merged)

    async def _end(self, move: moves.EndPipeline) -> None:
        await self._call("end_run", move)
        if move not in moves.decide(self._plan, self._state, workflow.now()):
            return  # the operator resumed the run in the meantime
        self._append(
            PipelineEnded(ts=workflow.now(), outcome=move.outcome, commit=move.commit, why=move.why)
        )

    @workflow.signal
    def worker_reported(self, report: WorkerReport) -> None:
        self._reports[report.agent] = report
        self._messages += 1

    @workflow.update
    def say(self, line: str) -> None:
        """Record the operator's command."""
        event = parse_pipeline_event(line.encode())
        if isinstance(event, PipelineStopped | PipelineResumed):
            self._append(event)

    @say.validator
    def _may_say(self, line: str) -> None:
        if why := explain_refused_line(line, self._state):
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.query
    def kept(self) -> RegisteredPipeline:
        return self._make_record()
