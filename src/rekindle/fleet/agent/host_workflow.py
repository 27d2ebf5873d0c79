"""Workflow for one host of a fleet, which notices when the host is gone."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy, VersioningBehavior
from temporalio.exceptions import ActivityError, FailureError
from temporalio.exceptions import TimeoutError as TimedOutError

from rekindle.fleet.agent.workflow import AgentWorkflow

with workflow.unsafe.imports_passed_through():
    import msgspec

    from rekindle.fleet.agent.host_orders import (
        HostLoss,
        HostReport,
        VouchedLease,
        make_host_queue,
    )
    from rekindle.policy.settings.runtime_settings import (
        FLEET_HOST_SECONDS,
        FLEET_LEASE_DAYS,
        FLEET_WORD_SECONDS,
    )

_ONCE = RetryPolicy(maximum_attempts=1)


# A host outlives many builds, and this code hardly changes, so a run need not keep its build.
@workflow.defn(name="Host", versioning_behavior=VersioningBehavior.AUTO_UPGRADE)
class HostWorkflow:
    """Exists for as long as the host's worker runs.

    The host keeps one activity open. Its heartbeats name the leases that the host vouches for, so
    one heartbeat serves all sessions on the host.
    """

    def __init__(self) -> None:
        self._drain_seconds = 0.0

    @workflow.run
    async def run(self, first: HostReport) -> None:
        attending = workflow.start_activity(
            "attend",
            result_type=list[VouchedLease],
            task_queue=make_host_queue(first.host),
            heartbeat_timeout=timedelta(seconds=first.heartbeat_seconds),
            start_to_close_timeout=timedelta(days=FLEET_LEASE_DAYS),
            schedule_to_start_timeout=timedelta(seconds=FLEET_HOST_SECONDS),
            retry_policy=_ONCE,
        )
        while not attending.done():
            await workflow.wait_condition(lambda: attending.done() or self._drain_seconds > 0)
            if self._drain_seconds > 0:
                await self._drain_host(first.host)
        try:
            leases = await attending
        except ActivityError as error:
            details = getattr(error.cause, "last_heartbeat_details", ())
            leases = _read_leases(details) if isinstance(error.cause, TimedOutError) else ()
        # Send all signals with one decision, because each decision may be delayed by a lost worker.
        await asyncio.gather(*(_tell_agent(first.host, lease) for lease in leases))

    @workflow.signal
    def drain(self, seconds: float) -> None:
        """Let the host finish its cycles, for at most this many seconds, and then exit."""
        self._drain_seconds = seconds

    async def _drain_host(self, host: str) -> None:
        seconds, self._drain_seconds = self._drain_seconds, 0.0
        try:
            await workflow.execute_activity(
                "drain_host",
                seconds,
                task_queue=make_host_queue(host),
                start_to_close_timeout=timedelta(seconds=FLEET_WORD_SECONDS),
                schedule_to_start_timeout=timedelta(seconds=FLEET_WORD_SECONDS),
            )
        except ActivityError as error:
            workflow.logger.warning("the host cannot be drained: %s", error.cause)


def _read_leases(details: Sequence[Any]) -> Sequence[VouchedLease]:
    """Return the leases that a host vouched for with its last heartbeat."""
    return msgspec.convert(details[0], HostReport, strict=False).leases if details else ()


async def _tell_agent(host: str, vouched: VouchedLease) -> None:
    """Tell an agent that the host with its lease is gone."""
    handle = workflow.get_external_workflow_handle_for(AgentWorkflow.run, vouched.workflow)
    try:
        await handle.signal(AgentWorkflow.host_lost, HostLoss(host, vouched.lease))
    except FailureError as error:
        workflow.logger.info("%s is not on the fleet anymore: %s", vouched.workflow, error)
