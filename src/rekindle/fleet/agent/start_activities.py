"""Start activities on hosts for an agent's workflow, and classify their failures."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.exceptions import TimeoutError as TimedOutError
from temporalio.workflow import ActivityCancellationType

with workflow.unsafe.imports_passed_through():
    from rekindle.fleet.agent.host_orders import (
        FAILED,
        LOST,
        HostOrder,
        HostResult,
        LeaseEnd,
        make_host_queue,
        make_pool_queue,
    )
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.settings.runtime_settings import (
        FLEET_BEGIN_SECONDS,
        FLEET_BRIEF_SECONDS,
        FLEET_HOST_SECONDS,
        FLEET_LEASE_DAYS,
        FLEET_OFFER_RETRY_SECONDS,
        FLEET_OFFER_SECONDS,
        FLEET_WORD_SECONDS,
        FLEET_WORD_TRIES,
    )

_ONCE = RetryPolicy(maximum_attempts=1)
_WHEN_IT_HAS_ENDED = ActivityCancellationType.WAIT_CANCELLATION_COMPLETED


def start_on_host(
    registered: RegisteredAgent,
    activity: str,
    host: str,
    cancelled: ActivityCancellationType = _WHEN_IT_HAS_ENDED,
) -> workflow.ActivityHandle[Any]:
    """Start a long-running activity on a host. The host keeps the lease until the activity ends."""
    definition = registered.definition
    return workflow.start_activity(
        activity,
        make_order(registered),
        result_type=HostResult,
        task_queue=make_host_queue(host),
        heartbeat_timeout=timedelta(seconds=definition.heartbeat_seconds),
        start_to_close_timeout=timedelta(days=FLEET_LEASE_DAYS),
        schedule_to_start_timeout=timedelta(seconds=_find_start_timeout(registered, activity)),
        retry_policy=_ONCE,
        cancellation_type=cancelled,
    )


def start_begin(registered: RegisteredAgent, host: str) -> workflow.ActivityHandle[Any]:
    """Let a host open the lease and start the cycle. The cycle continues after the activity."""
    return workflow.start_activity(
        "begin_cycle",
        make_order(registered),
        task_queue=make_host_queue(host),
        start_to_close_timeout=timedelta(seconds=FLEET_BEGIN_SECONDS),
        schedule_to_start_timeout=timedelta(seconds=_find_start_timeout(registered, "begin_cycle")),
        heartbeat_timeout=timedelta(seconds=registered.definition.heartbeat_seconds),
        retry_policy=_ONCE,
    )


def start_beside(
    registered: RegisteredAgent, activity: str, host: str
) -> workflow.ActivityHandle[Any]:
    """Start a short activity on the host that has the lease. Retry if the host does not answer."""
    most = timedelta(seconds=FLEET_WORD_SECONDS)
    return workflow.start_activity(
        activity,
        make_order(registered),
        task_queue=make_host_queue(host),
        start_to_close_timeout=most,
        schedule_to_close_timeout=FLEET_WORD_TRIES * most,
    )


def start_offer(
    registered: RegisteredAgent, shunned: Sequence[str]
) -> workflow.ActivityHandle[str]:
    """Ask the hosts in the pool for a free slot, and return the first host that offers one."""
    return workflow.start_activity(
        "offer",
        args=[make_order(registered), shunned],
        result_type=str,
        task_queue=make_pool_queue(registered.definition.pool),
        start_to_close_timeout=timedelta(seconds=FLEET_OFFER_SECONDS),
        # The engine serves the waiting agents of all teams in turn.
        priority=Priority(fairness_key=registered.definition.team or None),
        retry_policy=RetryPolicy(
            initial_interval=timedelta(seconds=FLEET_OFFER_RETRY_SECONDS),
            backoff_coefficient=1,
        ),
    )


def make_order(registered: RegisteredAgent) -> HostOrder:
    held = registered.lease
    return HostOrder(
        workflow.info().workflow_id,
        registered.agent,
        registered.generation,
        team=registered.definition.team,
        lease=held.id if held else "",
    )


def is_work_unpushed(registered: RegisteredAgent) -> bool:
    """Return whether the agent's work exists only on its host because it was never pushed."""
    projection = registered.projection
    is_pushed = bool(registered.definition.remote) and projection.workspace is not None
    return bool(projection.attempts) and not is_pushed


def explain_failure(error: ActivityError) -> LeaseEnd:
    """Return how a lease ended whose activity failed."""
    cause = error.cause
    if isinstance(cause, TimedOutError):
        return LeaseEnd(kind=LOST, words=str(cause))
    kind = cause.type if isinstance(cause, ApplicationError) else None
    return LeaseEnd(kind=kind or FAILED, words=str(cause))


def may_move(registered: RegisteredAgent, end: LeaseEnd, pool: str) -> bool:
    """Return whether any host in the pool may continue because the last host is gone or failed.

    If the agent's work exists only on the last host, the agent waits for that host, unless the host
    stopped sending heartbeats.
    """
    is_elsewhere = registered.definition.pool != pool
    return is_elsewhere or end.kind == LOST or not is_work_unpushed(registered)


def _find_start_timeout(registered: RegisteredAgent, activity: str) -> float:
    """Return the timeout for a host to start an activity, in seconds.

    If the agent's work exists only on that host, the timeout is at least the heartbeat timeout.
    Briefs get more time, because many are due at the same time and a host may be busy.
    """
    least = FLEET_BRIEF_SECONDS if activity == "write_brief" else FLEET_HOST_SECONDS
    heartbeat = registered.definition.heartbeat_seconds
    return max(least, heartbeat) if is_work_unpushed(registered) else least
