"""Coordinate a pipeline run: read its workers, decide what to do next, and do it.

Every action can be repeated. If the coordinator is killed, the next one computes the state from the
log, finds the workers that have begun, and continues. Only the coordinator appends to the log. If
an action is temporarily impossible, for example because the disk is full, the run waits, and its
notice explains why.
"""

import time
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial

import msgspec

from rekindle.documents.pipelines.pipeline_events import (
    AnyPipelineEvent,
    PersonAsked,
    PipelineEnded,
    PipelineOutcome,
    WorkerBegan,
    WorkerEnded,
    WorkerOutcome,
    WorkerReported,
)
from rekindle.errors import RekindleError
from rekindle.flows.pipelines.coordinator_ports import CoordinatorPorts, WorkerView
from rekindle.policy.pipelines import pipeline_moves as moves
from rekindle.policy.pipelines.pipeline_moves import PipelineMove
from rekindle.policy.pipelines.pipeline_state import (
    WorkerId,
    WorkerState,
    fold,
)
from rekindle.policy.pipelines.run_plan import RunPlan
from rekindle.thresholds.pipeline_limits import (
    CHECKS_AT_ONCE,
    COORDINATOR_POLL_SECONDS,
    COORDINATOR_RETRY_SECONDS,
    COORDINATOR_WATCH_SECONDS,
    SPENDING_STEP_USD,
)

_TEMPORARY = (RekindleError, OSError)
"""Errors after which the coordinator retries.

Examples are an invalid rekindle.yaml, a full disk, and a lock held by another git process.
"""


class Coordinator:
    """Coordinates one pipeline run until it ends."""

    def __init__(self, plan: RunPlan, ports: CoordinatorPorts) -> None:
        self._plan, self._ports = plan, ports
        self._state = fold(ports.folder.read_events())
        self._checks: dict[WorkerId, Future[WorkerEnded]] = {}
        self._stopped: set[tuple[str, int]] = set()
        """Agents and attempts that this process has stopped."""
        self._ensured: set[tuple[str, int]] = set()
        """Agents and attempts that this process has created and started."""
        self._problems: list[str] = []
        """Problems found in the current turn."""
        self._unchecked: dict[WorkerId, str] = {}
        """Reasons why workers' results cannot be checked at the moment."""
        self._watched = 0.0

    def run(self) -> PipelineOutcome | None:
        """Coordinate until the run ends. Return None after a stop signal."""
        with ThreadPoolExecutor(CHECKS_AT_ONCE) as pool:
            while not self._ports.is_interrupted():
                self._problems.clear()
                has_changed = self._try(lambda: self._take_turn(pool))
                if self._state.ended is not None:
                    return self._state.ended
                if not has_changed:
                    self._try(self._watch)
                    self._try(self._note_problems)
                    self._rest()
        return None

    def _take_turn(self, pool: ThreadPoolExecutor) -> bool:
        """Read the workers and make all due moves. Return whether the run changed."""
        for command in self._ports.folder.take_commands():
            self._append(command)
        if self._state.ended is not None:
            return True
        has_news = self._read_workers(pool)
        due = moves.decide(self._plan, self._state, self._ports.clock())
        has_moved = [self._try(partial(self._make, move)) for move in due]
        return has_news or any(has_moved)

    def _try(self, action: Callable[[], bool]) -> bool:
        """Run a repeatable action and return its result, or False if it fails."""
        try:
            return action()
        except _TEMPORARY as error:
            self._problems.append(_explain(error))
            return False

    def _note_problems(self) -> bool:
        running = dict(self._state.list_running())
        self._unchecked = {key: why for key, why in self._unchecked.items() if key in running}
        self._ports.note("\n".join(dict.fromkeys([*self._problems, *self._unchecked.values()])))
        return False

    def _rest(self) -> None:
        """Wait for a few seconds, or until a check has finished."""
        is_blocked = self._problems or self._unchecked
        seconds = COORDINATOR_RETRY_SECONDS if is_blocked else COORDINATOR_POLL_SECONDS
        if self._checks:
            futures.wait(self._checks.values(), seconds, futures.FIRST_COMPLETED)
        else:
            self._ports.rest(seconds)

    def _append(self, event: AnyPipelineEvent) -> None:
        self._ports.folder.append(event)
        self._state = fold([event], self._state)

    def _read_workers(self, pool: ThreadPoolExecutor) -> bool:
        """Read all running workers, and check the finished ones. Return whether any changed."""
        has_changed = [
            self._try(partial(self._read_worker, pool, worker_id, worker))
            for worker_id, worker in self._state.list_running()
        ]
        return self._try(self._find_merges) or any(has_changed)

    def _read_worker(
        self, pool: ThreadPoolExecutor, worker_id: WorkerId, worker: WorkerState
    ) -> bool:
        if worker.is_stopping and not self._is_started(worker):
            self._end_unstarted(worker_id, worker, "stopped")
            return True
        self._ensure(worker_id, worker)
        if worker_id in self._checks:
            return self._take_check(worker_id)
        if (worker.agent, worker.attempt) not in self._ensured:
            return False  # the worker was refused
        view = self._ports.read_worker(worker)
        self._report(worker_id, worker, view)
        is_told = worker.is_stopping or (worker.agent, worker.attempt) in self._stopped
        if view.end == "stopped" and not is_told:
            return False  # the operator stopped this agent, and may resume it
        if view.end:
            check: Callable[..., WorkerEnded] = self._ports.check_worker
            self._checks[worker_id] = pool.submit(check, worker_id, worker, view)
        return bool(view.end)

    def _ensure(self, worker_id: WorkerId, worker: WorkerState) -> None:
        """Create and start a worker that a killed coordinator may not have started."""
        if (worker.agent, worker.attempt) in self._ensured:
            return
        step, key = worker_id
        began = WorkerBegan(
            ts=self._ports.clock(),
            step=step,
            worker=key,
            attempt=worker.attempt,
            agent=worker.agent,
            commit=worker.start,
        )
        refusal = self._ports.ensure_worker(self._state, began)
        if not refusal:
            self._ensured.add((worker.agent, worker.attempt))
            return
        self._end_unstarted(worker_id, worker, "failed", refusal)

    def _is_started(self, worker: WorkerState) -> bool:
        """Return whether this or an earlier coordinator has started the attempt's agent."""
        if (worker.agent, worker.attempt) in self._ensured:
            return True
        record = self._ports.folder.read_workers().get(worker.agent)
        return record is not None and record.attempt == worker.attempt and record.seq is not None

    def _end_unstarted(
        self, worker_id: WorkerId, worker: WorkerState, outcome: WorkerOutcome, why: str = ""
    ) -> None:
        """Record the end of an attempt whose agent was not started."""
        step, key = worker_id
        self._append(
            WorkerEnded(
                ts=self._ports.clock(),
                step=step,
                worker=key,
                attempt=worker.attempt,
                outcome=outcome,
                commit=worker.start,
                why=why,
            )
        )

    def _take_check(self, worker_id: WorkerId) -> bool:
        check = self._checks[worker_id]
        # A signal to this process also ends the checks, which makes their results meaningless.
        if not check.done() or self._ports.is_interrupted():
            return False
        del self._checks[worker_id]
        try:
            ended = check.result()
        except _TEMPORARY as error:
            self._unchecked[worker_id] = _explain(error)
            return False
        self._append(msgspec.structs.replace(ended, ts=self._ports.clock()))
        return True

    def _report(self, worker_id: WorkerId, worker: WorkerState, view: WorkerView) -> None:
        """Record new spending and usage limits."""
        step, key = worker_id
        limit = self._state.limits.get(view.harness)
        is_limited = view.until is not None and (limit is None or view.until > limit)
        is_spent = view.usd - worker.attempt_usd >= SPENDING_STEP_USD
        if is_limited or is_spent:
            self._append(
                WorkerReported(
                    ts=self._ports.clock(),
                    step=step,
                    worker=key,
                    attempt=worker.attempt,
                    usd=view.usd,
                    tokens=view.tokens,
                    is_estimated=view.is_estimated,
                    harness=view.harness if is_limited else "",
                    until=view.until if is_limited else None,
                )
            )

    def _find_merges(self) -> bool:
        """Record the operator's merges. Return whether there were any."""
        has_merged = False
        for step, stage in sorted(self._state.asked):
            merge = self._state.merges.get((step, stage))
            if merge is not None and merge.conflicts:
                merged = self._ports.find_merged(self._state, step, stage)
                if merged is not None:
                    self._append(merged)
                    has_merged = True
        return has_merged

    def _make(self, move: PipelineMove) -> bool:
        """Make a move. Return whether the log changed."""
        now = self._ports.clock()
        match move:
            case moves.FindItems():
                self._append(self._ports.find_items(move))
            case moves.BeginWorker():
                self._append(_make_began(move, now))
                self._ensure(
                    (move.step, move.worker), self._state.find_worker(move.step, move.worker)
                )
            case moves.StopWorker():
                self._stop(self._state.find_worker(move.step, move.worker))
                return False
            case moves.MergeCommits():
                self._append(self._ports.merge(move))
            case moves.AskPerson():
                self._ports.ask_person(self._state, move.step, move.stage)
                self._append(PersonAsked(ts=now, step=move.step, stage=move.stage))
            case moves.EndPipeline():
                self._ports.end(move.outcome, move.commit, move.why)
                self._append(
                    PipelineEnded(ts=now, outcome=move.outcome, commit=move.commit, why=move.why)
                )
            case moves.AwaitLimit():
                return False
        return True

    def _stop(self, worker: WorkerState) -> None:
        if (worker.agent, worker.attempt) not in self._stopped:
            self._ports.stop_worker(worker)
            self._stopped.add((worker.agent, worker.attempt))

    def _watch(self) -> bool:
        """Start missing supervisors from time to time."""
        if time.monotonic() - self._watched >= COORDINATOR_WATCH_SECONDS:
            self._ports.watch_workers([worker.agent for _, worker in self._state.list_running()])
            self._watched = time.monotonic()
        return False


def _explain(error: RekindleError | OSError) -> str:
    hint = error.hint if isinstance(error, RekindleError) else ""
    return f"{error} ({hint})" if hint else str(error)


def _make_began(move: moves.BeginWorker, now: datetime) -> WorkerBegan:
    return WorkerBegan(
        ts=now,
        step=move.step,
        worker=move.worker,
        attempt=move.attempt,
        agent=move.agent,
        commit=move.commit,
    )
