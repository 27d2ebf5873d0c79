"""Let hosts run an agent's cycles under leases.

A lease is not an activity. A host opens it in a short activity, vouches for it with the host's own
heartbeats, and reports its end with an update. Therefore a workflow can continue as a new run in
the middle of a cycle, which keeps its history short.
"""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception
from temporalio.workflow import ActivityCancellationType

from rekindle.fleet.agent.agent_state import AgentState
from rekindle.fleet.agent.start_activities import (
    explain_failure,
    may_move,
    start_begin,
    start_beside,
    start_offer,
    start_on_host,
)

with workflow.unsafe.imports_passed_through():
    from rekindle.fleet.agent.host_orders import CUT, FENCED, FULL, LOST, LeaseEnd
    from rekindle.policy.exits.backoff import compute_backoff
    from rekindle.policy.exits.restart import EnterSafeMode
    from rekindle.policy.fleet import agent_leases
    from rekindle.policy.settings.runtime_settings import (
        FLEET_OFFERS,
        FLEET_QUEUED_SECONDS,
        FLEET_SLOT_SECONDS,
        PROBED_CRASHES,
    )

_MOMENT = timedelta(seconds=FLEET_QUEUED_SECONDS)


class HostLeases(AgentState):
    async def _continue_on_host(self) -> None:
        """Continue on the host that has the workspace, or else on any host in the pool."""
        if not await self._get_permit():
            return
        host = self._registered.host or await self._find_host()
        if not host:
            return
        self._registered = agent_leases.grant_lease(self._registered)
        self._has_news, self._ended = False, None
        begin = start_begin(self._registered, host)
        # A short cycle may end before the engine knows that it has begun.
        await workflow.wait_condition(lambda: begin.done() or self._ended is not None)
        if begin.done():
            await self._check_begin(begin, host)
        await self._hold_lease(host)

    async def _check_begin(self, begin: workflow.ActivityHandle[Any], host: str) -> None:
        """Note that the lease has ended if the host could not begin the cycle."""
        try:
            await begin
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            if self._ended is None:
                self._ended = explain_failure(error)
            if self._ended.kind == LOST:
                # The host may have started the session nevertheless, and must end it.
                drop = start_beside(self._registered, "drop_lease", host)
                self._run_beside(self._await_beside(drop))

    async def _hold_lease(self, host: str) -> None:
        """Forward commands and due briefs to the host until the lease ends."""
        lease = self._registered.lease
        assert lease is not None, "a lease was granted"  # noqa: S101 - for the type checker
        beside: workflow.ActivityHandle[Any] | None = None

        def must_act() -> bool:
            if self._ended is not None or self._is_removed:
                return True
            wants = self._has_news or self._is_brief_due or self._is_history_long()
            return beside.done() if beside else wants

        while True:
            await workflow.wait_condition(must_act)
            if self._ended is not None or self._is_removed:
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
                await self._continue_as_new()
        if beside is not None:
            beside.cancel()
            await self._await_beside(beside)
        if self._ended is None:  # the agent was removed
            await self._await_beside(start_beside(self._registered, "drop_lease", host))
            self._registered = agent_leases.release_lease(self._registered, is_gone=False)
        else:
            await self._finish_lease(self._ended, host, lease.first, lease.pool)

    async def _finish_lease(self, end: LeaseEnd, host: str, before: int, pool: str) -> None:
        """Release a lease, and react to its end.

        `before` is the last event number, and `pool` the pool, when the lease was granted.
        """
        self._ended = None
        is_elsewhere = self._registered.definition.pool != pool
        is_gone = may_move(self._registered, end, pool) if end.kind else is_elsewhere
        self._registered = agent_leases.release_lease(self._registered, is_gone=is_gone)
        if end.kind:
            await self._handle_lost_lease(end, host, before)
        elif self._registered.projection.seq == before and not end.is_leaving:
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
        self._registered = agent_leases.grant_lease(self._registered)
        await self._await_beside(start_on_host(self._registered, "write_brief", host))
        # If the brief is still due, the host is gone.
        is_gone = self._is_brief_due or self._registered.definition.pool != pool
        self._registered = agent_leases.release_lease(self._registered, is_gone=is_gone)

    async def _handle_lost_lease(self, end: LeaseEnd, host: str, before: int) -> None:
        """Handle a lease that ended early. `before` is the last event number when it started."""
        projection = self._registered.projection
        is_idle = projection.seq <= max(before, projection.moved.seq)
        self._fenced = self._fenced + 1 if end.kind == FENCED and is_idle else 0
        if end.kind == LOST:
            await self._wait_for_news("queued", timedelta(0))
        elif end.kind == FULL and self._registered.host:
            await self._wait_for_news("queued", timedelta(seconds=FLEET_SLOT_SECONDS))
        elif end.kind in {FULL, CUT} or (end.kind == FENCED and self._fenced <= 1):
            # The host that still has the agent needs some time to release it.
            await self._wait_for_news("queued", _MOMENT)
        else:
            self._shunned.add(host)
            await self._handle_failed_start(end.words)

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
