"""Check that this process can be a host: it can decrypt the agents, and the engine can list them.

Every worker makes decisions for all agents in its namespace. A worker without their key would fail
every task, and without the search attributes no agent gets past its first task. Either problem
would block all agents silently. A host checks only the agent that was started last, or more agents
if the host refuses plain text. `rekindle doctor` checks all agents, and the keys of all hosts.
"""

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.errors import CodecKeyError, EngineError, PlainTextError
from rekindle.fleet.engine.agent_list import ALL_AGENTS
from rekindle.fleet.engine.dev_server import SEARCH_ATTRIBUTES
from rekindle.fleet.engine.payload_codec import EncryptingCodec, find_key_id
from rekindle.policy.settings.runtime_settings import FLEET_ADMISSION_AGENTS, FLEET_RPC_SECONDS

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


async def require_admission(client: Client) -> None:
    """Raise an error if this host must not run agents.

    If the engine does not answer a check, the check passes, because some hosts have no permission
    to ask.

    Raises:
        CodecKeyError: The agents are encrypted with a key that this host does not have.
        PlainTextError: An agent is in plain text, which this host would refuse.
        EngineError: Search attributes are missing, and this host may not create them.
    """
    await _require_key(client)
    await _require_attributes(client)


async def find_missing_attributes(client: Client) -> dict[str, str]:
    """Return the search attributes that are missing or have the wrong type, with their types."""
    request = ListSearchAttributesRequest(namespace=client.namespace)
    attributes = await client.operator_service.list_search_attributes(request, timeout=_MOST)
    there = attributes.custom_attributes
    return {
        name: kind
        for name, kind in SEARCH_ATTRIBUTES.items()
        if there.get(name) != _find_value_type(kind)
    }


def render_make_command(client: Client, missing: dict[str, str]) -> str:
    """Return the command that creates the attributes. Every name needs its own --type."""
    options = " ".join(f"--name {name} --type {kind}" for name, kind in missing.items())
    return f"`temporal operator search-attribute create --namespace {client.namespace} {options}`"


async def find_plain_agents(client: Client) -> list[str]:
    """Return the agents whose history begins with plain text."""
    plain = [agent async for agent, key in _list_agent_keys(client, None) if key is None]
    return [agent.removeprefix(f"{client.namespace}/") for agent in plain]


async def _require_key(client: Client) -> None:
    codec = client.data_converter.payload_codec
    if not isinstance(codec, EncryptingCodec):
        return
    most = FLEET_ADMISSION_AGENTS if codec.is_strict else 1
    with contextlib.suppress(RPCError):
        async for agent, key_id in _list_agent_keys(client, most):
            if key_id is None and codec.is_strict:
                raise PlainTextError(agent)
            if key_id is not None and key_id not in codec.known:
                raise CodecKeyError(key_id, codec.known)


async def _list_agent_keys(
    client: Client, most: int | None
) -> AsyncIterator[tuple[str, str | None]]:
    """Yield each agent with the id of its key, newest first.

    Only the first event of each history is read, and nothing is decrypted. After a key change, the
    newest agent uses the current key.
    """
    async for agent in client.list_workflows(ALL_AGENTS, limit=most, rpc_timeout=_MOST):
        history = await client.workflow_service.get_workflow_execution_history(
            GetWorkflowExecutionHistoryRequest(
                namespace=client.namespace,
                execution=WorkflowExecution(workflow_id=agent.id, run_id=agent.run_id),
                maximum_page_size=1,
            ),
            timeout=_MOST,
        )
        for first in history.history.events[:1]:
            for payload in first.workflow_execution_started_event_attributes.input.payloads[:1]:
                yield agent.id, find_key_id(payload)


async def _require_attributes(client: Client) -> None:
    """Create the search attributes, and raise EngineError if any are still missing."""
    kinds = {name: _find_value_type(kind) for name, kind in SEARCH_ATTRIBUTES.items()}
    request = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=kinds)
    with contextlib.suppress(RPCError):
        await client.operator_service.add_search_attributes(request, timeout=_MOST)
    with contextlib.suppress(RPCError):
        if missing := await find_missing_attributes(client):
            raise _make_error(client, missing)


def _make_error(client: Client, missing: dict[str, str]) -> EngineError:
    names = ", ".join(f"{name} ({kind})" for name, kind in missing.items())
    return EngineError(
        "attributes",
        f"the engine's namespace {client.namespace!r} lacks the search attributes {names}, and "
        "this host may not create them",
        hint="create them first, in the engine's web UI or with "
        f"{render_make_command(client, missing)}",
    )


def _find_value_type(kind: str) -> "IndexedValueType.ValueType":
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")
