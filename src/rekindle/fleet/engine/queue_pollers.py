"""Find the workers that poll the engine's task queues."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, timedelta

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import PollerInfo, TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest, DescribeTaskQueueResponse
from temporalio.client import Client

from rekindle.fleet.agent.host_orders import DECISION_QUEUE, make_host_queue, make_pool_queue
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
    return sorted({identity for identity in pollers if key not in parse_keys(identity)})


def parse_keys(identity: str) -> list[str]:
    """Return the key ids in a worker's identity. The worker encrypts with the first one."""
    return [key for key in identity.partition(KEYS_PREFIX)[2].split(",") if key]


async def list_worker_keys(
    client: Client, hosts: Iterable[str], pools: Iterable[str], most: timedelta
) -> dict[str, list[str]]:
    """Return the keys of each worker that decides, or runs agents for these hosts and pools."""
    running = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    queues = [(DECISION_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW)]
    queues += [(make_host_queue(host), running) for host in sorted(hosts)]
    queues += [(make_pool_queue(pool), running) for pool in sorted(pools)]
    found = [await _list_pollers(client, queue, kind, most) for queue, kind in queues]
    return {identity: parse_keys(identity) for pollers in found for identity in pollers}


async def list_host_workers(client: Client, queue: str, most: timedelta) -> list[str]:
    """Return the identities of the workers that run agents from a host's queue."""
    return await _list_pollers(client, queue, TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY, most)


async def has_worker(client: Client, most: timedelta) -> bool:
    return bool(
        await _list_pollers(client, DECISION_QUEUE, TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW, most)
    )


async def has_host(client: Client, pool: str, most: timedelta) -> bool:
    """Return whether a host in the pool has a free slot. A host without one does not poll."""
    running = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return bool(await _list_pollers(client, make_pool_queue(pool), running, most))


async def find_routed_builds(client: Client, most: timedelta) -> tuple[str, str]:
    """Return the current and the ramping build that the decision queue knows."""
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    routing = (await _describe_queue(client, DECISION_QUEUE, kind, most)).versioning_info
    current, ramping = routing.current_deployment_version, routing.ramping_deployment_version
    return current.build_id, ramping.build_id


async def count_deciders(client: Client, most: timedelta) -> dict[str, int]:
    """Return the number of workers that decide with each build."""
    kind = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    pollers = await _read_pollers(client, DECISION_QUEUE, kind, most)
    workers = {(poller.deployment_options.build_id, poller.identity) for poller in pollers}
    return Counter(build for build, _ in workers)


async def _list_pollers(
    client: Client, queue: str, kind: "TaskQueueType.ValueType", most: timedelta
) -> list[str]:
    """Return the identities of the workers that polled within the last minute."""
    return [poller.identity for poller in await _read_pollers(client, queue, kind, most)]


async def _read_pollers(
    client: Client, queue: str, kind: "TaskQueueType.ValueType", most: timedelta
) -> list[PollerInfo]:
    answer = await _describe_queue(client, queue, kind, most)
    # The engine lists pollers for minutes after they have stopped.
    since = clock.read_clock() - _POLL
    return [poller for poller in answer.pollers if poller.last_access_time.ToDatetime(UTC) > since]


async def _describe_queue(
    client: Client, queue: str, kind: "TaskQueueType.ValueType", most: timedelta
) -> DescribeTaskQueueResponse:
    return await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        ),
        timeout=most,
    )
