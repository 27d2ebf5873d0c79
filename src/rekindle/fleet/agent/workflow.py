"""Workflow for one agent on a fleet, which stores the agent and decides its next step.

The workflow exists for as long as the agent does. Replaying its history must produce the same
commands. Therefore all input comes through updates, signals and activities, every decision is made
by `policy`, and the engine supplies the time.
"""

import contextlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TimedOutError
from temporalio.workflow import ActivityCancellationType

from rekindle.fleet.agent.agent_decisions import (
    QUESTIONS_PATCH,
    add_question,
    decide,
    make_question_terms,
)
from rekindle.fleet.agent.agent_listing import AgentListing
from rekindle.fleet.agent.brief_timer import start_brief_timer
from rekindle.fleet.agent.continued_runs import continue_run
from rekindle.fleet.agent.operator_notifications import OperatorNotices
from rekindle.fleet.agent.refresh_signal import RefreshSignal
from rekindle.fleet.agent.start_activities import (
    may_move,
    start_beside,
    start_offer,
    start_on_host,
)
from rekindle.fleet.agent.worker_reports import WorkerReports

with workflow.unsafe.imports_passed_through():
    # All of these modules are pure. A module that is missing here would be imported again for each
    # agent.
    import msgspec

    from rekindle.documents import events
    from rekindle.fleet.agent.host_orders import CUT, FENCED, FULL, UNFIT, HostResult
    from rekindle.policy.exits.backoff import compute_backoff
    from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
    from rekindle.policy.fleet import agent_registry
    from rekindle.policy.fleet.agent_registry import (
        AgentDefinition,
        CommitRequest,
        CommitResult,
        LeaseRequest,
        OpenLease,
        RegisteredAgent,
    )
    from rekindle.policy.handoff import window_rule
    from rekindle.policy.operator import answers, questions
    from rekindle.policy.progress import idle
    from rekindle.policy.settings.runtime_settings import (
        FLEET_OFFERS,
        FLEET_QUEUED_SECONDS,
        FLEET_SLOT_SECONDS,
        PROBED_CRASHES,
    )
    from rekindle.policy.supervision import run_moves as runs
    from rekindle.policy.supervision.next_move import measure_idle_work, select_open_launches

_MOMENT = timedelta(seconds=FLEET_QUEUED_SECONDS)


@workflow.defn(name="Agent")
class AgentWorkflow(RefreshSignal):
    @workflow.init
    def __init__(self, registered: RegisteredAgent) -> None:
        self._registered = registered
        self._is_removed = False
        self._has_news = False
        """Whether the operator has given a command that the host has not received yet."""
        self._is_brief_due = False
        self._messages = 0
        """Number of messages received, such as commands and definitions."""
        self._decided_messages = 0
        """Number of messages that had been received at the last decision."""
        self._failures = 0
        self._fenced = 0
        """Number of consecutive leases reported as lost even though no other host has one."""
        self._shunned: set[str] = set()
        """Hosts that failed since the agent last made progress. Other hosts are tried first."""
        self._listing = AgentListing()
        self._notices = OperatorNotices()
        self._reports = WorkerReports()

    @workflow.run
    async def run(self, registered: RegisteredAgent) -> RegisteredAgent:  # noqa: ARG002 - taken by __init__
        self._registered = start_brief_timer(lambda: self._registered, self.brief_due)
        while not self._is_removed:
            if self._must_continue(self._registered.most_events) and not self._is_brief_due:
                await workflow.wait_condition(workflow.all_handlers_finished)
                if not self._is_brief_due:  # A new workflow run would forget a due brief
                    continue_run(agent_registry.compact_agent(self._registered))
            if self._is_brief_due:
                await self._write_brief()
                continue
            await self._run_next()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return agent_registry.drop_answers(self._registered)

    async def _run_next(self) -> None:
        """Take the next step, or wait until one is possible."""
        projection, self._decided_messages = self._registered.projection, self._messages
        if projection.run.desired != "running" or projection.run.is_over:
            await self._wait_for_news(
                "over" if projection.run.is_over else projection.run.desired or "new"
            )
            return
        now = workflow.now()
        if runs.is_new_run(projection.run, projection.attempts.values()):
            self._append_events(events.RunStarted(ts=now, cycle=projection.cycle_ended))
        if not projection.run.is_safe and any(
            not launch.exit for launch in select_open_launches(projection)
        ):
            # The launch's host is gone. The next host first records how the launch ended.
            await self._continue_on_host()
            return
        match decide(self._registered, now):
            case StopRun() as move:
                over = events.RunEnded(ts=now, why=move.why, words=move.words)
                self._append_events(*add_question(self._registered, over))
                self._notices.notify_state(self._registered, move.why)
            case EnterSafeMode() as move:
                await self._wait_in_safe_mode(move)
            case WaitUntil() as move:
                await self._wait_for_move(move)
            case _:
                await self._continue_on_host()

    async def _wait_in_safe_mode(self, move: EnterSafeMode) -> None:
        projection, now = self._registered.projection, workflow.now()
        if not projection.run.is_safe:
            entered = events.SafeModeEntered(ts=now, why=move.why, words=move.words)
            halted = events.HandoffHalted(ts=now, cycle=projection.current_cycle, words=move.words)
            self._append_events(
                *([halted] if move.why == window_rule.HANDOFF_REASON else []),
                *add_question(self._registered, entered),
            )
            self._notices.notify_state(self._registered, move.why)
        elif workflow.patched(QUESTIONS_PATCH):
            if late := answers.apply_defaults(projection, now):
                self._append_events(*late)
                return
            if again := questions.ask_about_safe_mode(
                projection, make_question_terms(self._registered)
            ):
                self._append_events(again)
        question = questions.find_blocking_question(self._registered.projection, now)
        deadline = question.deadline if question else None
        await self._wait_for_news("safe", deadline - now if deadline else None)

    async def _wait_for_move(self, move: WaitUntil) -> None:
        run, now = self._registered.projection.run, workflow.now()
        if run.waiting is None or run.waiting.until != move.until:
            self._append_events(events.WaitStarted(ts=now, why=move.why, until=move.until))
            words = idle.render_idle_notice(
                measure_idle_work(self._registered.projection), now, move
            )
            if move.why == "limit":
                self._notices.notify_state(self._registered, "limit", is_supervised=True)
            elif words:
                self._notices.notify(self._registered, "no progress", words)
        await self._wait_for_news("waiting", move.until - workflow.now())

    async def _wait_for_news(self, state: str, most: timedelta | None = None) -> None:
        """Wait for a message that is newer than the last decision, up to the given time."""
        self._listing.show(self._registered, state, self._registered.host)
        self._listing.show_reason(self._registered, state)
        await self._reports.send(self._registered)
        if most is not None and most <= timedelta(0):
            return
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._messages != self._decided_messages, timeout=most
            )

    async def _continue_on_host(self) -> None:
        """Continue on the host that has the workspace, or else on any host in the pool."""
        host = self._registered.host or await self._find_host()
        if not host:
            return
        self._registered, before = (
            agent_registry.grant_lease(self._registered),
            self._registered.projection.seq,
        )
        pool, self._has_news = self._registered.definition.pool, False
        cycle = start_on_host(self._registered, "run_cycle", host)
        try:
            await self._watch_cycle(cycle, host)
            ran: HostResult = await cycle
        except ActivityError as error:
            self._registered = agent_registry.release_lease(
                self._registered, is_gone=may_move(self._registered, error, pool)
            )
            await self._handle_lost_lease(error, host, before)
            return
        self._registered = agent_registry.release_lease(
            self._registered, is_gone=self._registered.definition.pool != pool
        )
        if self._registered.projection.seq == before and not ran.is_leaving:
            await self._handle_failed_start("a host took the agent, but recorded no work")
        else:
            self._failures = self._fenced = 0
            self._shunned.clear()

    async def _find_host(self) -> str:
        """Return a host in the pool with a free slot, or "" if a message arrived first.

        The offer has a short timeout, because the engine may send it to a host that is frozen or
        cut off but whose last poll is still open.
        """
        self._listing.show(self._registered, "queued", "")
        host = ""
        for _ in range(FLEET_OFFERS):
            offer = start_offer(self._registered, sorted(self._shunned))
            await workflow.wait_condition(
                lambda: offer.done() or self._messages != self._decided_messages  # noqa: B023 - awaited here
            )
            if not offer.done():
                offer.cancel()
                return ""
            host = await offer
            if host not in self._shunned:
                break
        return host

    async def _watch_cycle(self, cycle: workflow.ActivityHandle[HostResult], host: str) -> None:
        """Forward commands and due briefs to the host until its cycle ends.

        The end of the cycle is noticed immediately, even while a command or brief is in progress,
        because the host may be gone.
        """
        beside: workflow.ActivityHandle[Any] | None = None
        is_asked_back = False

        def is_to_go_on() -> bool:
            is_long = not is_asked_back and workflow.info().is_continue_as_new_suggested()
            wants = self._has_news or self._is_brief_due or is_long
            return cycle.done() or self._is_removed or (beside.done() if beside else wants)

        while True:
            await workflow.wait_condition(is_to_go_on)
            if self._is_removed and not cycle.done():
                cycle.cancel()
                await workflow.wait_condition(cycle.done)
            if cycle.done():
                break
            if beside is not None:
                await self._await_beside(beside)
                beside = None
            elif self._has_news:
                self._has_news = False
                beside = start_beside(self._registered, "hear", host)
            elif self._is_brief_due:
                self._is_brief_due = False
                beside = start_on_host(
                    self._registered, "write_brief", host, ActivityCancellationType.TRY_CANCEL
                )
            else:
                # The history has reached the engine's limit. The host returns the lease, and the
                # same session continues under the next lease.
                is_asked_back = True
                beside = start_beside(self._registered, "give_back", host)
        if beside is not None:
            beside.cancel()
            await self._await_beside(beside)

    async def _await_beside(self, beside: workflow.ActivityHandle[Any]) -> None:
        """Wait for a side task. If it fails, the host gets the commands with its next commit."""
        try:
            await beside
        except ActivityError as error:
            if error.activity_type == "write_brief" and not isinstance(
                error.cause, ApplicationError
            ):
                self._is_brief_due = True  # the host is gone, or the cycle ended first
            workflow.logger.info("%s failed: %s", error.activity_type, error.cause)

    async def _write_brief(self) -> None:
        """Let a host write a brief for an agent that is not running, under a separate lease."""
        self._is_brief_due = False
        self._decided_messages = self._messages
        host = self._registered.host or await self._find_host()
        if not host:
            self._is_brief_due = True
            return
        pool = self._registered.definition.pool
        self._registered = agent_registry.grant_lease(self._registered)
        await self._await_beside(start_on_host(self._registered, "write_brief", host))
        # If the brief is still due, the host is gone.
        is_gone = self._is_brief_due or self._registered.definition.pool != pool
        self._registered = agent_registry.release_lease(self._registered, is_gone=is_gone)

    async def _handle_lost_lease(self, error: ActivityError, host: str, before: int) -> None:
        """Handle a lease that ended early. `before` is the last event number when it started."""
        if self._is_removed or is_cancelled_exception(error):
            return
        cause, projection = error.cause, self._registered.projection
        kind = cause.type if isinstance(cause, ApplicationError) else ""
        is_idle = projection.seq <= max(before, projection.moved.seq)
        self._fenced = self._fenced + 1 if kind == FENCED and is_idle else 0
        if isinstance(cause, TimedOutError):
            await self._wait_for_news("queued", timedelta(0))
        elif kind == FULL and self._registered.host:
            await self._wait_for_news("queued", timedelta(seconds=FLEET_SLOT_SECONDS))
        elif kind in {FULL, CUT} or (kind == FENCED and self._fenced <= 1):
            # The host that still has the agent needs some time to release it.
            await self._wait_for_news("queued", _MOMENT)
        else:
            self._shunned.add(host)
            await self._handle_failed_start(str(cause))

    async def _handle_failed_start(self, words: str) -> None:
        """Wait after a failed start, longer each time, and finally enter safe mode."""
        restart = self._registered.definition.limits.runtime.restart
        self._failures += 1
        if self._failures >= (restart.max_crashes or PROBED_CRASHES):
            self._failures = 0
            await self._wait_in_safe_mode(EnterSafeMode("host", words))
            return
        pause = compute_backoff(restart, self._failures - 1)
        await self._wait_for_news("waiting", timedelta(seconds=pause))

    def _append_events(self, *new: events.AnyEvent) -> None:
        self._registered = agent_registry.append_events(self._registered, *new)

    @workflow.update
    def take_up(self, request: LeaseRequest) -> OpenLease:
        self._registered, answer = agent_registry.open_lease(
            self._registered, request, workflow.now()
        )
        self._listing.show(self._registered, "running", request.host)
        return answer

    @take_up.validator
    def _may_take_up(self, request: LeaseRequest) -> None:
        self._require_lease(request.generation)

    @workflow.update
    def commit(self, request: CommitRequest) -> CommitResult:
        self._registered, answer = agent_registry.commit_events(self._registered, request)
        return answer

    @commit.validator
    def _may_commit(self, request: CommitRequest) -> None:
        if request.id in self._registered.answered:
            return
        self._require_lease(request.generation)
        if why := agent_registry.explain_unfit_commit(self._registered, request):
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.update
    def say(self, lines: Sequence[str]) -> int:
        self._registered = agent_registry.record_commands(self._registered, lines)
        self._has_news = True
        self._messages += 1
        return self._registered.projection.seq

    @say.validator
    def _may_say(self, lines: Sequence[str]) -> None:
        if why := agent_registry.explain_refused_command(lines):
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.update
    def define(self, definition: AgentDefinition) -> None:
        if definition.pool != self._registered.definition.pool:
            # A running cycle must end on its host first.
            host = self._registered.host if self._registered.is_leased else ""
            self._registered = msgspec.structs.replace(self._registered, host=host)
        self._registered = msgspec.structs.replace(self._registered, definition=definition)
        self._messages += 1

    @workflow.update
    def remove(self) -> None:
        self._is_removed = True
        self._messages += 1

    @workflow.signal
    def brief_due(self) -> None:
        self._is_brief_due = True
        self._messages += 1

    @workflow.signal
    def wake(self) -> None:
        """Decide again. An idle agent continues on the current build if that has changed."""
        self._messages += 1

    @workflow.query
    def kept(self) -> RegisteredAgent:
        return agent_registry.drop_answers(self._registered)

    def _require_lease(self, generation: int) -> None:
        if why := agent_registry.explain_refused_lease(self._registered, generation):
            raise ApplicationError(why, type=FENCED, non_retryable=True)
