"""Move workflows to another build."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from google.protobuf.field_mask_pb2 import FieldMask
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflow.v1 import WorkflowExecutionOptions
from temporalio.api.workflowservice.v1 import UpdateWorkflowExecutionOptionsRequest
from temporalio.client import Client
from temporalio.common import OneTimeVersioningOverride, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode

from rekindle.fleet.agent.refresh_signal import REFRESH_SIGNAL
from rekindle.fleet.engine.deployments import DEPLOYMENT
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS
from rekindle.thresholds.build_limits import FLEET_MOVES_AT_ONCE

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


async def refresh(client: Client, query: str) -> int:
    """Let idle workflows continue on the current build, and return their number."""
    return await _do_for_each(client, query, lambda name: _signal(client, name))


async def move(client: Client, query: str, build: str) -> int:
    """Let a build continue workflows in the middle of their runs, and return their number.

    The build must be able to replay what the other build did.
    """
    version = WorkerDeploymentVersion(DEPLOYMENT, build)
    override = OneTimeVersioningOverride(version)._to_proto()  # noqa: SLF001 - not in the client yet

    async def move_one(name: str) -> None:
        await client.workflow_service.update_workflow_execution_options(
            UpdateWorkflowExecutionOptionsRequest(
                namespace=client.namespace,
                workflow_execution=WorkflowExecution(workflow_id=name),
                workflow_execution_options=WorkflowExecutionOptions(versioning_override=override),
                update_mask=FieldMask(paths=["versioning_override"]),
                identity=client.identity,
            ),
            timeout=_MOST,
        )
        await _signal(client, name)  # The override takes effect with the next task.

    return await _do_for_each(client, query, move_one)


async def _signal(client: Client, name: str) -> None:
    await client.get_workflow_handle(name).signal(REFRESH_SIGNAL, rpc_timeout=_MOST)


async def _do_for_each(client: Client, query: str, do: Callable[[str], Awaitable[None]]) -> int:
    """Call a function for each workflow, a few at a time. Skip those that have just ended."""
    free, count = asyncio.Semaphore(FLEET_MOVES_AT_ONCE), 0

    async def do_one(name: str) -> None:
        try:
            await do(name)
        except RPCError as failed:
            if failed.status != RPCStatusCode.NOT_FOUND:
                raise
        finally:
            free.release()

    async with asyncio.TaskGroup() as tasks:
        async for listed in client.list_workflows(query, rpc_timeout=_MOST):
            await free.acquire()
            tasks.create_task(do_one(listed.id))
            count += 1
    return count
