"""Whether this process may be a host: it can read the agents, and the engine can show them.

Every worker decides for all agents of its namespace. One without their key would fail what it is
handed; where an attribute is missing, no agent gets beyond its first word. Either would hold up
every agent, and nobody would be told. What is looked at is the agent that was begun last: whether
all hosts have the key that we encrypt with, nobody knows but whoever changes keys.
"""

import contextlib
from collections.abc import Sequence
from datetime import timedelta

from temporalio.api.common.v1 import Payload, WorkflowExecution
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import (
    AddSearchAttributesRequest,
    ListSearchAttributesRequest,
)
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryRequest
from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.errors import CodecKeyError, EngineError
from rekindle.fleet.client import ALL_AGENTS
from rekindle.fleet.codec import Codec, key_of
from rekindle.fleet.dev_server import SEARCH_ATTRIBUTES
from rekindle.policy.settings import FLEET_RPC_SECONDS

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


async def require(client: Client) -> None:
    """Where the engine does not tell, go on: not every host may ask.

    Raises:
        CodecKeyError: The agents are encrypted with a key that we do not have.
        EngineError: Search attributes are missing, and we may not make them.
    """
    await _require_key(client)
    await _require_attributes(client)


async def missing_attributes(client: Client) -> dict[str, str]:
    """By name, with its type; one of another type can hold no word of ours."""
    asked = ListSearchAttributesRequest(namespace=client.namespace)
    known = await client.operator_service.list_search_attributes(asked, timeout=_MOST)
    there = known.custom_attributes
    return {
        name: kind for name, kind in SEARCH_ATTRIBUTES.items() if there.get(name) != _value(kind)
    }


def making(client: Client, missing: dict[str, str]) -> str:
    """The command that makes them: each name with a type of its own, else only the first is."""
    options = " ".join(f"--name {name} --type {kind}" for name, kind in missing.items())
    return f"`temporal operator search-attribute create --namespace {client.namespace} {options}`"


async def _require_key(client: Client) -> None:
    codec = client.data_converter.payload_codec
    known = codec.known if isinstance(codec, Codec) else ()
    with contextlib.suppress(RPCError):
        for payload in await _newest(client):
            wanted = key_of(payload)
            if wanted is not None and wanted not in known:
                raise CodecKeyError(wanted, known)


async def _newest(client: Client) -> Sequence[Payload]:
    """What the agent was begun with that was begun last: keys change, and it has the latest.

    As the engine keeps it: only the names of keys are looked at, nothing is decrypted.
    """
    async for agent in client.list_workflows(ALL_AGENTS, limit=1, page_size=1, rpc_timeout=_MOST):
        told = await client.workflow_service.get_workflow_execution_history(
            GetWorkflowExecutionHistoryRequest(
                namespace=client.namespace,
                execution=WorkflowExecution(workflow_id=agent.id, run_id=agent.run_id),
                maximum_page_size=1,
            ),
            timeout=_MOST,
        )
        for first in told.history.events:
            return first.workflow_execution_started_event_attributes.input.payloads
    return []


async def _require_attributes(client: Client) -> None:
    """What the fleet view is made from: made here, or by somebody who may."""
    kinds = {name: _value(kind) for name, kind in SEARCH_ATTRIBUTES.items()}
    asked = AddSearchAttributesRequest(namespace=client.namespace, search_attributes=kinds)
    with contextlib.suppress(RPCError):
        await client.operator_service.add_search_attributes(asked, timeout=_MOST)
    with contextlib.suppress(RPCError):
        if missing := await missing_attributes(client):
            raise _incomplete(client, missing)


def _incomplete(client: Client, missing: dict[str, str]) -> EngineError:
    names = ", ".join(f"{name} ({kind})" for name, kind in missing.items())
    return EngineError(
        "attributes",
        f"namespace {client.namespace!r} of the engine has no search attributes {names},"
        " and this host may not make them",
        hint=f"make them first, in the engine's own UI or by {making(client, missing)}",
    )


def _value(kind: str) -> "IndexedValueType.ValueType":
    return IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{kind.upper()}")
