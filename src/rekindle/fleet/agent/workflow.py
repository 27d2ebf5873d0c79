"""The workflow of one agent of a fleet: it stores the agent and decides its next step.

It lives as long as the agent. Replaying its history must repeat the same commands, so all input
comes through updates, signals and activities, every decision is made by `policy`, and the time is
the engine's.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy, SearchAttributeKey
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.exceptions import TimeoutError as TimedOutError
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    # All of these are pure. A module that is missing here would be imported again for each agent.
    import msgspec

    from rekindle.documents import events
    from rekindle.fleet.agent.host_orders import (
        CUT,
        FENCED,
        FULL,
        UNFIT,
        HostOrder,
        HostResult,
        make_host_queue,
        make_pool_queue,
    )
    from rekindle.policy.exits.backoff import compute_backoff
    from rekindle.policy.exits.restart import HANDOFF_EXIT, EnterSafeMode, StopRun, WaitUntil
    from rekindle.policy.exits.stop_reasons import StopReason
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
    from rekindle.policy.operator import questions
    from rekindle.policy.operator.build_row import RowInputs, build_row
    from rekindle.policy.operator.notification_kinds import NotificationKind
    from rekindle.policy.progress import idle
    from rekindle.policy.settings.runtime_settings import (
        FLEET_BRIEF_SECONDS,
        FLEET_HOST_SECONDS,
        FLEET_LEASE_DAYS,
        FLEET_NOTIFY_SECONDS,
        FLEET_NOTIFY_WAIT_SECONDS,
        FLEET_OFFER_RETRY_SECONDS,
        FLEET_OFFER_SECONDS,
        FLEET_OFFERS,
        FLEET_QUEUED_SECONDS,
        FLEET_SLOT_SECONDS,
        FLEET_WORD_SECONDS,
        FLEET_WORD_TRIES,
        PROBED_CRASHES,
    )
    from rekindle.policy.supervision import run_moves as runs
    from rekindle.policy.supervision.decide import (
        decide_move,
        has_failed_resume,
        measure_idle_work,
        select_open_launches,
    )

STATE_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleState")
HOST_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindleHost")
POOL_ATTRIBUTE = SearchAttributeKey.for_keyword("RekindlePool")
CYCLE_ATTRIBUTE = SearchAttributeKey.for_int("RekindleCycle")
_QUESTIONS = "questions"
"""Patch: the workflow asks a person questions. Older histories contain none."""
_PACED_HANDOFFS = "paced-handoffs"
"""Patch: launches after handoffs are paced. In older histories they start at once."""
_RESUMES = "failed-resumes"
"""Patch: resumes that a CLI refused do not count as crashes."""
_REASONS = "listed-reasons"
"""Patch: the engine's list includes the reason of a run that is over or paused."""
REASON_MEMO = "rekindle_reason"
"""Memo with that reason as STATE:WHY; valid while RekindleState has the same state."""
_ONCE = RetryPolicy(maximum_attempts=1)
_MOMENT = timedelta(seconds=FLEET_QUEUED_SECONDS)
_WHEN_IT_HAS_ENDED = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED


@workflow.defn(name="Agent")
class AgentWorkflow:
    @workflow.init
    def __init__(self, kept: RegisteredAgent) -> None:
        self._kept = kept
        self._is_removed = False
        self._has_news = False
        """Whether the operator gave a command that the host has not received yet."""
        self._is_brief_due = False
        self._said = 0
        """Number of commands, definitions and other messages received."""
        self._heard = 0
        """Value of `_said` at the last decision."""
        self._failures = 0
        self._fenced = 0
        """Number of consecutive leases reported as lost although no other host has one."""
        self._shunned: set[str] = set()
        """Hosts that failed the agent since it last made progress; other hosts are asked first."""
        self._shown: tuple[str, str, str] = ("", "", "")
        self._shown_reason = ""
        self._telling: set[asyncio.Task[None]] = set()

    @workflow.run
    async def run(self, kept: RegisteredAgent) -> RegisteredAgent:  # noqa: ARG002 - taken by __init__
        while not self._is_removed:
            if self._is_history_long() and not self._is_brief_due:
                await workflow.wait_condition(workflow.all_handlers_finished)
                if not self._is_brief_due:  # a new run would forget it
                    workflow.continue_as_new(agent_registry.compact_agent(self._kept))
            if self._is_brief_due:
                await self._write_brief()
                continue
            await self._run_next()
        await workflow.wait_condition(workflow.all_handlers_finished)
        return agent_registry.drop_answers(self._kept)

    def _is_history_long(self) -> bool:
        """Return whether the history is too long, judged only by values that a replay repeats."""
        info = workflow.info()
        is_long = info.get_current_history_length() > self._kept.most_events
        return is_long or info.is_continue_as_new_suggested()

    async def _run_next(self) -> None:
        """Take the next step, or wait for it."""
        known, self._heard = self._kept.projection, self._said
        if known.run.desired != "running" or known.run.is_over:
            await self._wait_for_news("over" if known.run.is_over else known.run.desired or "new")
            return
        now = workflow.now()
        if runs.is_new_run(known.run, known.attempts.values()):
            self._append_events(events.RunStarted(ts=now, cycle=known.cycle_ended))
        if not known.run.is_safe and any(not one.exit for one in select_open_launches(known)):
            # Its host is gone. The next host first records how that launch ended.
            await self._work()
            return
        match self._decide(now):
            case StopRun() as move:
                over = events.RunEnded(ts=now, outcome=move.why, words=move.words)
                self._append_events(*self._with_question(over))
                self._notify_state(move.why)
            case EnterSafeMode() as move:
                await self._wait_in_safe_mode(move)
            case WaitUntil() as move:
                await self._wait_for_move(move)
            case _:
                await self._work()

    def _decide(self, now: datetime) -> runs.Move:
        known, limits = self._kept.projection, self._kept.definition.limits
        # Query a patch only if it matters, because each query adds a marker to the history.
        counts = has_failed_resume(known) and not workflow.patched(_RESUMES)
        move = decide_move(known, limits, now, resumes_count=counts)
        is_paced = isinstance(move, WaitUntil) and move.why == idle.IDLE_REASON
        if (
            is_paced
            and select_open_launches(known)[-1:]
            and select_open_launches(known)[-1].exit == HANDOFF_EXIT
        ):
            paces = workflow.patched(_PACED_HANDOFFS)
            return decide_move(known, limits, now, paces_handoffs=paces, resumes_count=counts)
        return move

    async def _wait_in_safe_mode(self, move: EnterSafeMode) -> None:
        known, now = self._kept.projection, workflow.now()
        if not known.run.is_safe:
            entered = events.SafeModeEntered(ts=now, why=move.why, words=move.words)
            halted = events.HandoffHalted(ts=now, cycle=known.current_cycle, words=move.words)
            self._append_events(
                *([halted] if move.why == window_rule.HANDOFF_REASON else []),
                *self._with_question(entered),
            )
            self._notify_state(move.why)
        elif workflow.patched(_QUESTIONS):
            if late := questions.apply_defaults(known, now):
                self._append_events(*late)
                return
            if again := questions.ask_about_safe_mode(known, self._make_question_terms()):
                self._append_events(again)
        asked = questions.find_blocking_question(self._kept.projection, now)
        deadline = asked.deadline if asked else None
        await self._wait_for_news("safe", deadline - now if deadline else None)

    def _with_question(self, event: events.AnyEvent) -> list[events.AnyEvent]:
        """Return the event, followed by a question if it needs a person."""
        if not workflow.patched(_QUESTIONS):
            return [event]
        return questions.add_questions(self._kept.projection, [event], self._make_question_terms())

    def _make_question_terms(self) -> questions.QuestionTerms:
        limits = self._kept.definition.limits
        seconds = limits.runtime.questions.deadline
        return questions.QuestionTerms(workflow.now(), seconds, limits.budget)

    async def _wait_for_move(self, move: WaitUntil) -> None:
        run, now = self._kept.projection.run, workflow.now()
        if run.waiting is None or run.waiting.until != move.until:
            self._append_events(events.WaitStarted(ts=now, why=move.why, until=move.until))
            words = idle.render_idle_notice(measure_idle_work(self._kept.projection), now, move)
            if move.why == "limit":
                self._notify_state("limit", is_supervised=True)
            elif words:
                self._notify_operator("no progress", words)
        await self._wait_for_news("waiting", move.until - workflow.now())

    async def _wait_for_news(self, state: str, most: timedelta | None = None) -> None:
        """Wait for a message that arrived after the last decision, at most for the given time."""
        self._show(state, self._kept.host)
        self._show_reason(state)
        if most is not None and most <= timedelta(0):
            return
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(lambda: self._said != self._heard, timeout=most)

    async def _work(self) -> None:
        """Have a host continue: the one with the workspace, or else any host of the pool."""
        host = self._kept.host or await self._find_host()
        if not host:
            return
        self._kept, before = agent_registry.grant_lease(self._kept), self._kept.projection.seq
        pool, self._has_news = self._kept.definition.pool, False
        cycle = self._start("run_cycle", host)
        try:
            await self._watch_cycle(cycle, host)
            ran: HostResult = await cycle
        except ActivityError as error:
            self._kept = agent_registry.release_lease(
                self._kept, is_gone=self._may_move(error, pool)
            )
            await self._handle_lost_lease(error, host, before)
            return
        self._kept = agent_registry.release_lease(
            self._kept, is_gone=self._kept.definition.pool != pool
        )
        if self._kept.projection.seq == before and not ran.is_leaving:
            await self._handle_failed_start("a host took the agent, but recorded no work")
        else:
            self._failures = self._fenced = 0
            self._shunned.clear()

    async def _find_host(self) -> str:
        """Return a host of the pool that has a free slot; empty if a message arrived meanwhile.

        The offer has a short timeout, because the engine may hand it to a host that is frozen or
        cut off but whose last poll is still open.
        """
        self._show("queued", "")
        found = ""
        for _ in range(FLEET_OFFERS):
            asked = workflow.start_activity(
                "offer",
                args=[self._make_order(), sorted(self._shunned)],
                result_type=str,
                task_queue=make_pool_queue(self._kept.definition.pool),
                start_to_close_timeout=timedelta(seconds=FLEET_OFFER_SECONDS),
                retry_policy=RetryPolicy(
                    initial_interval=timedelta(seconds=FLEET_OFFER_RETRY_SECONDS),
                    backoff_coefficient=1,
                ),
            )
            await workflow.wait_condition(lambda: asked.done() or self._said != self._heard)  # noqa: B023 - awaited here
            if not asked.done():
                asked.cancel()
                return ""
            found = await asked
            if found not in self._shunned:
                break
        return found

    async def _watch_cycle(self, cycle: workflow.ActivityHandle[HostResult], host: str) -> None:
        """Forward commands to the host until its cycle ends, and have a due brief written.

        The end of the cycle is noticed at once, even during such a side task, because the host may
        be gone.
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
                beside = self._start_beside("hear", host)
            elif self._is_brief_due:
                self._is_brief_due = False
                beside = self._start("write_brief", host, ActivityCancellationType.TRY_CANCEL)
            else:
                # The history has reached the engine's limit. The host gives the lease back, and the
                # same session continues under the next lease.
                is_asked_back = True
                beside = self._start_beside("give_back", host)
        if beside is not None:
            beside.cancel()
            await self._await_beside(beside)

    def _start_beside(self, activity: str, host: str) -> workflow.ActivityHandle[Any]:
        """Start a short activity on the host that has the lease; retry if it does not answer."""
        most = timedelta(seconds=FLEET_WORD_SECONDS)
        return workflow.start_activity(
            activity,
            self._make_order(),
            task_queue=make_host_queue(host),
            start_to_close_timeout=most,
            schedule_to_close_timeout=FLEET_WORD_TRIES * most,
        )

    async def _await_beside(self, beside: workflow.ActivityHandle[Any]) -> None:
        """Wait for a side task. If it fails, the commands come with the host's next commit."""
        try:
            await beside
        except ActivityError as error:
            if error.activity_type == "write_brief" and not isinstance(
                error.cause, ApplicationError
            ):
                self._is_brief_due = True  # its host is gone, or the cycle ended first
            workflow.logger.info("%s failed: %s", error.activity_type, error.cause)

    async def _write_brief(self) -> None:
        """Have a host write the brief of an agent that is not running, under a lease of its own."""
        self._is_brief_due = False
        self._heard = self._said
        host = self._kept.host or await self._find_host()
        if not host:
            self._is_brief_due = True
            return
        pool = self._kept.definition.pool
        self._kept = agent_registry.grant_lease(self._kept)
        await self._await_beside(self._start("write_brief", host))
        # If the brief is due again, that host was gone.
        is_gone = self._is_brief_due or self._kept.definition.pool != pool
        self._kept = agent_registry.release_lease(self._kept, is_gone=is_gone)

    def _is_work_unpushed(self) -> bool:
        """Return whether the agent's work exists only on its host, because it was never pushed."""
        known = self._kept.projection
        is_pushed = bool(self._kept.definition.remote) and known.workspace is not None
        return bool(known.attempts) and not is_pushed

    def _find_start_timeout(self, activity: str) -> float:
        """Return the seconds that a host has to start an activity.

        If the agent's work is on that host alone, it is at least the heartbeat timeout. Briefs get
        more time, because those of many agents are due at the same time, and a busy host is not
        gone.
        """
        least = FLEET_BRIEF_SECONDS if activity == "write_brief" else FLEET_HOST_SECONDS
        heartbeat = self._kept.definition.heartbeat_seconds
        return max(least, heartbeat) if self._is_work_unpushed() else least

    def _start(
        self,
        activity: str,
        host: str,
        cancelled: ActivityCancellationType = _WHEN_IT_HAS_ENDED,
    ) -> workflow.ActivityHandle[Any]:
        definition = self._kept.definition
        return workflow.start_activity(
            activity,
            self._make_order(),
            result_type=HostResult,
            task_queue=make_host_queue(host),
            heartbeat_timeout=timedelta(seconds=definition.heartbeat_seconds),
            start_to_close_timeout=timedelta(days=FLEET_LEASE_DAYS),
            schedule_to_start_timeout=timedelta(seconds=self._find_start_timeout(activity)),
            retry_policy=_ONCE,
            cancellation_type=cancelled,
        )

    def _make_order(self) -> HostOrder:
        return HostOrder(workflow.info().workflow_id, self._kept.agent, self._kept.generation)

    def _may_move(self, error: ActivityError, pool: str) -> bool:
        """Return whether any host of the pool may continue: the last one is gone, or failed.

        Work that is on that host alone waits for it, unless the host stopped sending heartbeats.
        """
        is_elsewhere = self._kept.definition.pool != pool
        return (
            is_elsewhere or isinstance(error.cause, TimedOutError) or not self._is_work_unpushed()
        )

    async def _handle_lost_lease(self, error: ActivityError, host: str, before: int) -> None:
        """Handle a lease that ended early. `before` is the last event number at its start."""
        if self._is_removed or is_cancelled_exception(error):
            return
        cause, known = error.cause, self._kept.projection
        kind = cause.type if isinstance(cause, ApplicationError) else ""
        is_idle = known.seq <= max(before, known.moved.seq)
        self._fenced = self._fenced + 1 if kind == FENCED and is_idle else 0
        if isinstance(cause, TimedOutError):
            await self._wait_for_news("queued", timedelta(0))
        elif kind == FULL and self._kept.host:
            await self._wait_for_news("queued", timedelta(seconds=FLEET_SLOT_SECONDS))
        elif kind in {FULL, CUT} or (kind == FENCED and self._fenced <= 1):
            # The host that still has the agent needs a moment to release it.
            await self._wait_for_news("queued", _MOMENT)
        else:
            self._shunned.add(host)
            await self._handle_failed_start(str(cause))

    async def _handle_failed_start(self, words: str) -> None:
        """Wait if no host could start a cycle: with doubling pauses, and finally in safe mode."""
        restart, self._failures = self._kept.definition.limits.runtime.restart, self._failures + 1
        if self._failures >= (restart.max_crashes or PROBED_CRASHES):
            self._failures = 0
            await self._wait_in_safe_mode(EnterSafeMode("host", words))
            return
        pause = compute_backoff(restart, self._failures - 1)
        await self._wait_for_news("waiting", timedelta(seconds=pause))

    def _notify_state(
        self, what: StopReason | NotificationKind, *, is_supervised: bool = False
    ) -> None:
        """Notify the operator of the agent's state, in the words of its row."""
        known, now = self._kept.projection, workflow.now()
        row = build_row(known, RowInputs(now=now, is_supervised=is_supervised))
        is_asked = questions.find_blocking_question(known, now) is not None
        self._notify_operator(what, f"{row.reason}\n→ {row.next_step}" if is_asked else row.reason)

    def _notify_operator(self, what: StopReason | NotificationKind, words: str) -> None:
        """Have a host of the pool notify the operator, if the manifest has an address.

        The workflow does not wait for it, because the notification service may be down.
        """
        if self._kept.definition.notifies:
            told = asyncio.create_task(self._send_notification(what, words))
            self._telling.add(told)
            told.add_done_callback(self._telling.discard)

    async def _send_notification(self, what: StopReason | NotificationKind, words: str) -> None:
        try:
            await workflow.execute_activity(
                "notify",
                args=[self._make_order(), what, words],
                task_queue=make_pool_queue(self._kept.definition.pool),
                start_to_close_timeout=timedelta(seconds=FLEET_NOTIFY_SECONDS),
                schedule_to_close_timeout=timedelta(seconds=FLEET_NOTIFY_WAIT_SECONDS),
            )
        except ActivityError as error:
            workflow.logger.warning("the notification was not sent: %s", error.cause)

    def _append_events(self, *new: events.AnyEvent) -> None:
        self._kept = agent_registry.append_events(self._kept, *new)

    def _show(self, state: str, host: str) -> None:
        """Update the search attributes, which are not encrypted and have no text of the agent."""
        pool = self._kept.definition.pool
        if (state, host, pool) == self._shown:
            return
        self._shown = (state, host, pool)
        workflow.upsert_search_attributes(
            [
                STATE_ATTRIBUTE.value_set(state),
                HOST_ATTRIBUTE.value_set(host or "-"),
                POOL_ATTRIBUTE.value_set(pool),
                CYCLE_ATTRIBUTE.value_set(self._kept.projection.cycle),
            ]
        )

    def _show_reason(self, state: str) -> None:
        """Add why a run is over or paused to the engine's list, without the agent's text."""
        run = self._kept.projection.run
        why = {"over": run.ended.why, "safe": run.safe.why}.get(state, "")
        reason = f"{state}:{why}"
        if why and reason != self._shown_reason and workflow.patched(_REASONS):
            self._shown_reason = reason
            workflow.upsert_memo({REASON_MEMO: reason})

    @workflow.update
    def take_up(self, asked: LeaseRequest) -> OpenLease:
        self._kept, answer = agent_registry.open_lease(self._kept, asked, workflow.now())
        self._show("running", asked.host)
        return answer

    @take_up.validator
    def _may_take_up(self, asked: LeaseRequest) -> None:
        self._require_lease(asked.generation)

    @workflow.update
    def commit(self, asked: CommitRequest) -> CommitResult:
        self._kept, answer = agent_registry.commit_events(self._kept, asked)
        return answer

    @commit.validator
    def _may_commit(self, asked: CommitRequest) -> None:
        if asked.id in self._kept.answered:
            return
        self._require_lease(asked.generation)
        if why := agent_registry.explain_unfit_commit(self._kept, asked):
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.update
    def say(self, lines: Sequence[str]) -> int:
        self._kept = agent_registry.record_commands(self._kept, lines)
        self._has_news = True
        self._said += 1
        return self._kept.projection.seq

    @say.validator
    def _may_say(self, lines: Sequence[str]) -> None:
        if why := agent_registry.explain_refused_command(lines):
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.update
    def define(self, definition: AgentDefinition) -> None:
        if definition.pool != self._kept.definition.pool:
            host = self._kept.host if self._kept.is_leased else ""  # its cycle ends there first
            self._kept = msgspec.structs.replace(self._kept, host=host)
        self._kept = msgspec.structs.replace(self._kept, definition=definition)
        self._said += 1

    @workflow.update
    def remove(self) -> None:
        self._is_removed = True
        self._said += 1

    @workflow.signal
    def brief_due(self) -> None:
        self._is_brief_due = True
        self._said += 1

    @workflow.query
    def kept(self) -> RegisteredAgent:
        return agent_registry.drop_answers(self._kept)

    def _require_lease(self, generation: int) -> None:
        if why := agent_registry.explain_refused_lease(self._kept, generation):
            raise ApplicationError(why, type=FENCED, non_retryable=True)


@workflow.defn(name="Brief")
class BriefWorkflow:
    """Started by a schedule: tells the agent's workflow that its brief is due."""

    @workflow.run
    async def run(self, agent: str) -> None:
        handle = workflow.get_external_workflow_handle_for(AgentWorkflow.run, agent)
        await handle.signal(AgentWorkflow.brief_due)
