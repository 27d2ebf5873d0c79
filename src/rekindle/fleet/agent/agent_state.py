"""An agent's state in its workflow, and the means to wait for news about it."""

import asyncio
import contextlib
from collections.abc import Coroutine
from datetime import timedelta

from temporalio import workflow

from rekindle.fleet.agent.agent_listing import AgentListing
from rekindle.fleet.agent.continued_runs import continue_run
from rekindle.fleet.agent.operator_notifications import OperatorNotices
from rekindle.fleet.agent.refresh_signal import RefreshSignal
from rekindle.fleet.agent.team_permit import TeamPermits
from rekindle.fleet.agent.worker_reports import WorkerReports
from rekindle.fleet.agent.workflow_questions import add_question, make_question_terms

with workflow.unsafe.imports_passed_through():
    from rekindle.documents import events
    from rekindle.fleet.agent.host_orders import LeaseEnd
    from rekindle.policy.exits.restart import EnterSafeMode, WaitUntil
    from rekindle.policy.fleet import agent_registry
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.handoff import window_rule
    from rekindle.policy.operator import answers, questions
    from rekindle.policy.progress import idle
    from rekindle.policy.settings.runtime_settings import FLEET_WORD_SECONDS
    from rekindle.policy.supervision.next_move import measure_idle_work


class AgentState(RefreshSignal, TeamPermits):
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
        self._ended: LeaseEnd | None = None
        """How the current lease ended; None while it lasts."""
        self._failures = 0
        self._fenced = 0
        """Number of consecutive leases reported as lost even though no other host has one."""
        self._shunned: set[str] = set()
        """Hosts that failed since the agent last made progress. Other hosts are tried first."""
        self._listing = AgentListing()
        self._notices = OperatorNotices()
        self._reports = WorkerReports()
        self._beside: set[asyncio.Task[None]] = set()

    def _append_events(self, *new: events.AnyEvent) -> None:
        self._registered = agent_registry.append_events(self._registered, *new)

    def _is_history_long(self) -> bool:
        return self._must_continue(self._registered.most_events)

    async def _continue_as_new(self) -> None:
        """Continue as a new workflow run, unless it would forget something.

        A new run would forget a due brief, a removal, a command that the host has not received, and
        the end of the lease.
        """
        if self._is_busy_beside():
            with contextlib.suppress(TimeoutError):
                most = timedelta(seconds=FLEET_WORD_SECONDS)
                await workflow.wait_condition(lambda: not self._is_busy_beside(), timeout=most)
        await workflow.wait_condition(workflow.all_handlers_finished)
        is_held = self._has_news and self._registered.lease is not None
        if not (self._is_brief_due or self._is_removed or self._ended or is_held):
            continue_run(agent_registry.compact_agent(self._registered))

    def _is_busy_beside(self) -> bool:
        """Return whether an order to a host or a notification is on its way."""
        return bool(self._beside) or self._notices.is_sending

    def _run_beside(self, work: Coroutine[None, None, None]) -> None:
        """Run a task that the workflow does not wait for."""
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _wait_in_safe_mode(self, move: EnterSafeMode) -> None:
        projection, now = self._registered.projection, workflow.now()
        if not projection.run.is_safe:
            entered = events.SafeModeEntered(ts=now, why=move.why, words=move.words)
            halted = events.HandoffHalted(ts=now, cycle=projection.current_cycle, words=move.words)
            self._append_events(
                *([halted] if move.why == window_rule.HANDOFF_REASON else []),
                *add_question(self._registered, entered),
            )
            if not questions.is_asked_again(self._registered.projection, move.why):
                self._notices.notify_state(self._registered, move.why)
        else:
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
        await self._release_permit()
        self._listing.show(self._registered, state, self._registered.host)
        self._listing.show_reason(self._registered, state)
        await self._reports.send(self._registered)
        if most is not None and most <= timedelta(0):
            return
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._messages != self._decided_messages, timeout=most
            )
