"""Workflow for one agent on a fleet, which stores the agent and decides its next step.

The workflow exists for as long as the agent does. Replaying its history must produce the same
commands. Therefore all input comes through updates, signals and activities, every decision is made
by `policy`, and the engine supplies the time.
"""

import asyncio
from collections.abc import Sequence

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from rekindle.fleet.agent.brief_timer import ask_for_briefs
from rekindle.fleet.agent.host_leases import HostLeases
from rekindle.fleet.agent.workflow_questions import add_question

with workflow.unsafe.imports_passed_through():
    # All of these modules are pure. A module that is missing here would be imported again for each
    # agent.
    import msgspec

    from rekindle.documents import events
    from rekindle.fleet.agent.host_orders import FENCED, LOST, UNFIT, HostLoss, LeaseEnd
    from rekindle.policy.exits.restart import EnterSafeMode, StopRun, WaitUntil
    from rekindle.policy.fleet import agent_leases, agent_registry
    from rekindle.policy.fleet.agent_leases import LeaseRequest, OpenLease
    from rekindle.policy.fleet.agent_registry import (
        AgentDefinition,
        CommitRequest,
        CommitResult,
        RegisteredAgent,
    )
    from rekindle.policy.supervision import run_moves as runs
    from rekindle.policy.supervision.next_move import decide_move, select_open_launches


@workflow.defn(name="Agent")
class AgentWorkflow(HostLeases):
    @workflow.init
    def __init__(self, registered: RegisteredAgent) -> None:
        super().__init__(registered)

    @workflow.run
    async def run(self, registered: RegisteredAgent) -> RegisteredAgent:  # noqa: ARG002 - taken by __init__
        briefs = asyncio.create_task(ask_for_briefs(lambda: self._registered, self.brief_due))
        if self._registered.lease is not None:  # continued as a new run in the middle of a cycle
            await self._hold_lease(self._registered.host)
        while not self._is_removed:
            if self._is_history_long() and not self._is_brief_due:
                await self._continue_as_new()
            if self._is_brief_due:
                await self._write_brief()
                continue
            await self._run_next()
        await self._release_permit()
        briefs.cancel()
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
        match decide_move(projection, self._registered.definition.limits, now):
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

    @workflow.update
    def take_up(self, request: LeaseRequest) -> OpenLease:
        self._registered, answer = agent_leases.open_lease(
            self._registered, request, workflow.now()
        )
        self._listing.show(self._registered, "running", request.host)
        return answer

    @take_up.validator
    def _may_take_up(self, request: LeaseRequest) -> None:
        if why := agent_leases.explain_refused_request(self._registered, request):
            raise ApplicationError(why, type=FENCED, non_retryable=True)

    @workflow.update
    def end_lease(self, end: LeaseEnd) -> None:
        self._ended = end

    @end_lease.validator
    def _may_end_lease(self, end: LeaseEnd) -> None:
        self._require_lease(end.generation, end.lease)

    @workflow.signal
    def host_lost(self, loss: HostLoss) -> None:
        lease = self._registered.lease
        if lease is not None and lease.id == loss.lease and self._ended is None:
            self._ended = LeaseEnd(kind=LOST, words=f"host {loss.host} is gone")

    @workflow.update
    def commit(self, request: CommitRequest) -> CommitResult:
        self._registered, answer = agent_registry.commit_events(self._registered, request)
        self._listing.refresh(self._registered)
        return answer

    @commit.validator
    def _may_commit(self, request: CommitRequest) -> None:
        if request.id in self._registered.answered:
            return
        self._require_lease(request.generation, request.lease)
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
            host = self._registered.host if self._registered.lease is not None else ""
            self._registered = msgspec.structs.replace(self._registered, host=host)
        self._registered = msgspec.structs.replace(self._registered, definition=definition)
        self._listing.refresh(self._registered)
        self._messages += 1

    @define.validator
    def _may_define(self, definition: AgentDefinition) -> None:
        if self._registered.definition.worker is not None and definition.worker is None:
            why = f"agent {self._registered.agent} works for a pipeline run"
            raise ApplicationError(why, type=UNFIT, non_retryable=True)

    @workflow.update
    def remove(self) -> None:
        self._is_removed = True
        self._messages += 1

    @workflow.signal
    def brief_due(self) -> None:
        self._is_brief_due = True
        self._messages += 1

    @workflow.query
    def kept(self) -> RegisteredAgent:
        return agent_registry.drop_answers(self._registered)

    def _require_lease(self, generation: int, lease: str) -> None:
        if why := agent_leases.explain_refused_lease(self._registered, generation, lease):
            raise ApplicationError(why, type=FENCED, non_retryable=True)
