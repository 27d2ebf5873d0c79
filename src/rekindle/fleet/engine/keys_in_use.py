"""Find the keys that workers have and that the engine's data needs, and replace old keys.

Only key ids are read, which are stored next to each payload. Nothing is decrypted, except the
arguments of a schedule that is encrypted again.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import timedelta

import msgspec
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import (
    Client,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.converter import WorkflowSerializationContext
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.agent.agent_listing import HOST_ATTRIBUTE, POOL_ATTRIBUTE
from rekindle.fleet.agent.refresh_signal import REFRESH_SIGNAL
from rekindle.fleet.engine import queue_pollers
from rekindle.fleet.engine.payload_codec import EncryptingCodec, find_key_id
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS
from rekindle.thresholds.fleet_limits import (
    FLEET_HISTORY_READS,
    FLEET_REFRESH_POLL_SECONDS,
    FLEET_REFRESH_SECONDS,
)

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_OPEN = 'ExecutionStatus="Running"'
_REFRESHABLE = {"Agent", "Pipeline"}
"""Types of workflow that continue as new on request. All other workflows end by themselves."""
PLAIN_TEXT = ""
"""Stands for the key of data that is not encrypted."""


class KeyUse(msgspec.Struct, frozen=True):
    """The users of one key."""

    key: str
    workers: list[str]
    """Identities of the workers that have the key."""
    stored: list[str]
    """Open workflows and schedules whose data is encrypted with the key."""


class KeysInUse(msgspec.Struct, frozen=True):
    current: str
    """The key with which this folder encrypts; empty without encryption."""
    keys: list[KeyUse]
    """The current key first, then the other configured keys, then keys that are not configured."""
    closed_hours: float
    """Hours for which the engine keeps closed workflows, with the keys of their time."""

    def list_outdated(self) -> list[str]:
        """Return what is stored under a key other than the current one."""
        return sorted({name for use in self.keys if use.key != self.current for name in use.stored})


async def find_keys_in_use(client: Client) -> KeysInUse:
    """Read every open workflow and schedule in the namespace, and ask for its workers."""
    codec = client.data_converter.payload_codec
    known = list(codec.known) if isinstance(codec, EncryptingCodec) else []
    stored: defaultdict[str, set[str]] = defaultdict(set)
    hosts, pools = set(), set()
    reading = []
    slots = asyncio.Semaphore(FLEET_HISTORY_READS)
    async for workflow in client.list_workflows(_OPEN, rpc_timeout=_MOST):
        hosts.add(workflow.typed_search_attributes.get(HOST_ATTRIBUTE, "-"))
        pools.add(workflow.typed_search_attributes.get(POOL_ATTRIBUTE, "-"))
        reading.append(asyncio.create_task(_read_with_slot(client, workflow.id, slots)))
    for name, keys in await asyncio.gather(*reading):
        for key in keys:
            stored[key].add(name)
    async for description in _list_schedules(client):
        for key in await _read_schedule_keys(client, description):
            stored[key].add(f"schedule {description.id}")
    workers = await queue_pollers.list_worker_keys(client, hosts - {"-"}, pools - {"-"}, _MOST)
    current = known[0] if known else PLAIN_TEXT
    used = {*stored, *(key for keys in workers.values() for key in keys)}
    return KeysInUse(
        current=current,
        keys=[
            KeyUse(
                key,
                workers=sorted(name for name, keys in workers.items() if key in keys),
                stored=sorted(stored[key]),
            )
            for key in [*known, *sorted(used - set(known))]
        ],
        closed_hours=await _read_retention_hours(client),
    )


async def rotate_keys(client: Client) -> list[str]:
    """Encrypt all open data with the current key. Return the names of data that still needs time.

    Raises:
        EngineError: A worker would encrypt with another key.
    """
    before = await find_keys_in_use(client)
    await _require_current_key(client, before)
    outdated = set(before.list_outdated())
    async for description in _list_schedules(client):
        if f"schedule {description.id}" in outdated:
            await _encrypt_schedule_again(client, description)
    async for workflow in client.list_workflows(_OPEN, rpc_timeout=_MOST):
        if _name(client, workflow.id) in outdated and workflow.workflow_type in _REFRESHABLE:
            await _signal(client, workflow.id)
    left = before
    for _ in range(int(FLEET_REFRESH_SECONDS / FLEET_REFRESH_POLL_SECONDS)):
        left = await find_keys_in_use(client)
        if not left.list_outdated():
            break
        await asyncio.sleep(FLEET_REFRESH_POLL_SECONDS)
    return left.list_outdated()


async def _require_current_key(client: Client, used: KeysInUse) -> None:
    """Raise EngineError for workers that lack the current key or encrypt with another one."""
    workers = {worker for use in used.keys for worker in use.workers}
    others = sorted(
        worker for worker in workers if queue_pollers.parse_keys(worker)[:1] != [used.current]
    )
    if not used.current:
        raise EngineError(
            "keys",
            "this folder has no key with which it could encrypt",
            hint="create one with `rekindle fleet key`, and add it to `fleet: codec:`",
        )
    if others:
        raise EngineError(
            "keys",
            f"these workers encrypt with another key than {used.current}: {', '.join(others)}",
            hint="move the key to the front of `fleet: codec:` there, restart the workers, and "
            "repeat the command after a minute",
        )
    if not await queue_pollers.has_worker(client, _MOST):
        raise EngineError(
            "keys",
            "no worker is running, so no agent can change its key",
            hint="start a worker with `rekindle fleet worker`",
        )


async def _signal(client: Client, workflow: str) -> None:
    try:
        await client.get_workflow_handle(workflow).signal(REFRESH_SIGNAL, rpc_timeout=_MOST)
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:  # it has ended in the meantime
            raise


async def _encrypt_schedule_again(client: Client, description: ScheduleDescription) -> None:
    async def replace(current: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule = current.description.schedule
        action = schedule.action
        assert isinstance(action, ScheduleActionStartWorkflow)  # noqa: S101 - there is no other kind
        codec = client.data_converter.with_context(
            WorkflowSerializationContext(client.namespace, action.id)
        ).payload_codec
        assert codec is not None  # noqa: S101 - there is a current key
        action.args = await codec.encode(await codec.decode(list(action.args)))
        return ScheduleUpdate(schedule)

    await client.get_schedule_handle(description.id).update(replace, rpc_timeout=_MOST)


async def _read_with_slot(
    client: Client, workflow: str, slots: asyncio.Semaphore
) -> tuple[str, set[str]]:
    async with slots:
        return _name(client, workflow), await _read_workflow_keys(client, workflow)


async def _read_workflow_keys(client: Client, workflow: str) -> set[str]:
    """Return the keys in the history of a workflow's latest run."""
    keys = set()
    try:
        async for event in client.get_workflow_handle(workflow).fetch_history_events():
            keys |= find_key_ids(event)
            start = event.workflow_execution_started_event_attributes
            if any(find_key_id(payload) is None for payload in start.input.payloads):
                keys.add(PLAIN_TEXT)
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:  # it has ended in the meantime
            raise
    return keys


async def _list_schedules(client: Client) -> AsyncIterator[ScheduleDescription]:
    async for listed in await client.list_schedules():
        try:
            yield await client.get_schedule_handle(listed.id).describe(rpc_timeout=_MOST)
        except RPCError as failed:
            if failed.status != RPCStatusCode.NOT_FOUND:
                raise


async def _read_schedule_keys(client: Client, description: ScheduleDescription) -> set[str]:
    """Return the keys of a schedule and of its last workflow, whose result the next one gets."""
    keys = find_key_ids(description.raw_description.schedule)
    for result in description.info.recent_actions[-1:]:
        if isinstance(result.action, ScheduleActionExecutionStartWorkflow):
            keys |= await _read_workflow_keys(client, result.action.workflow_id)
    return keys


async def _read_retention_hours(client: Client) -> float:
    answer = await client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=client.namespace), timeout=_MOST
    )
    period: timedelta = answer.config.workflow_execution_retention_ttl.ToTimedelta()
    return period / timedelta(hours=1)


def find_key_ids(message: Message) -> set[str]:
    """Return the ids of all keys that encrypt payloads within a message."""
    return {key for payload in _find_payloads(message) if (key := find_key_id(payload))}


def _find_payloads(message: Message) -> Iterator[Payload]:
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        parts = [value] if isinstance(value, Message) else value
        for part in parts.values() if isinstance(parts, Mapping) else parts:
            if isinstance(part, Message):
                yield from _find_payloads(part)


def _name(client: Client, workflow: str) -> str:
    return workflow.removeprefix(f"{client.namespace}/")
