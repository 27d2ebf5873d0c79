"""Whether anybody looks for work: the engine knows it of each of its queues."""

from datetime import UTC, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from rekindle.fleet.orders import QUEUE, pool_queue
from rekindle.system import clock

_POLL = timedelta(seconds=75)
"""Whoever looks for work is answered within a minute, and then looks again."""


async def has_worker(client: Client, most: timedelta) -> bool:
    return await _is_polled(client, QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, most)


async def has_host(client: Client, pool: str, most: timedelta) -> bool:
    """Whether a host of the pool has room; one that is full does not look for more."""
    running = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return await _is_polled(client, pool_queue(pool), running, most)


async def _is_polled(
    client: Client, queue: str, kind: "TaskQueueType.ValueType", most: timedelta
) -> bool:
    found = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=most,
    )
    # The engine remembers those for minutes that are gone.
    since = clock.now() - _POLL
    return any(one.last_access_time.ToDatetime(UTC) > since for one in found.pollers)
