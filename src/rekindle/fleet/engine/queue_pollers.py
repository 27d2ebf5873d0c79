"""Find the workers that poll the engine's task queues."""

from datetime import UTC, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from rekindle.fleet.agent.host_orders import DECISION_QUEUE, make_pool_queue
from rekindle.system import clock
from rekindle.thresholds.fleet_limits import FLEET_POLLER_SECONDS

_POLL = timedelta(seconds=FLEET_POLLER_SECONDS)


KEYS_PREFIX = "keys="
"""Prefix of the key ids in a client's identity."""


async def find_workers_without_key(client: Client, key: str, most: timedelta) -> list[str]:
    """Return the identities of workers that lack a key and would fail their tasks."""
    pollers = await _list_pollers(
        client, DECISION_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, most
    )
    lacking = {
        identity for identity in pollers if key not in identity.partition(KEYS_PREFIX)[2].split(",")
    }
    return sorted(lacking)


async def has_worker(client: Client, most: timedelta) -> bool:
    return bool(
        await _list_pollers(client, DECISION_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, most)
    )


async def has_host(client: Client, pool: str, most: timedelta) -> bool:
    """Return whether a host in the pool has a free slot. A host without one does not poll."""
    running = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return bool(await _list_pollers(client, make_pool_queue(pool), running, most))


async def _list_pollers(
    client: Client, queue: str, kind: "TaskQueueType.ValueType", most: timedelta
) -> list[str]:
    """Return the identities of the workers that polled within the last minute."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=most,
    )
    # The engine lists pollers for minutes after they have stopped.
    since = clock.read_clock() - _POLL
    return [
        poller.identity
        for poller in answer.pollers
        if poller.last_access_time.ToDatetime(UTC) > since
    ]
