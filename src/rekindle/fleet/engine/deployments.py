"""Route workflows to the workers of one build, with the engine's worker deployments."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from datetime import UTC, timedelta
from typing import TypeVar

from temporalio.api.deployment.v1 import WorkerDeploymentInfo
from temporalio.api.enums.v1 import VersionDrainageStatus
from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
    SetWorkerDeploymentRampingVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from rekindle.errors import EngineError
from rekindle.fleet.engine import queue_pollers
from rekindle.policy.fleet.fleet_builds import Build, BuildRole, FleetBuilds
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS
from rekindle.thresholds.build_limits import FLEET_ROUTING_SECONDS
from rekindle.thresholds.fleet_limits import FLEET_REFRESH_POLL_SECONDS, FLEET_TRIES

DEPLOYMENT = "rekindle"
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_LATE = frozenset({RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED})
_DRAINED = VersionDrainageStatus.VERSION_DRAINAGE_STATUS_DRAINED
T = TypeVar("T")


def make_deployment_config(build: str) -> WorkerDeploymentConfig:
    """Return the settings of a worker that decides only for the workflows of its build."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


def render_build_query(build: str) -> str:
    """Return the query for the running workflows that need a build."""
    version = f'TemporalWorkerDeploymentVersion="{DEPLOYMENT}:{build}"'
    return f'{version} AND ExecutionStatus="Running"'


async def claim_first(client: Client, build: str) -> None:
    """Make a build the current one if the fleet has no current build yet.

    Workflows that started before the fleet had builds continue on the current build.

    Raises:
        EngineError: The engine does not let this worker set the current build.
    """
    for tries_left in reversed(range(FLEET_TRIES)):
        try:
            info, token = await _describe(client)
            if not info.routing_config.current_deployment_version.build_id:
                await _set_current(client, build, token, allow_no_pollers=True)
        except RPCError as failed:
            # Another worker was faster, or many workers ask the engine at the same time.
            if tries_left:
                await asyncio.sleep(FLEET_REFRESH_POLL_SECONDS)
                continue
            raise EngineError(
                "refused",
                f"the engine refused build {build} as the fleet's first build: {failed.message}",
                hint="if the engine is up, Rekindle needs Temporal 1.32 or newer and permission "
                "to change deployments",
            ) from failed
        return


async def find_current(client: Client) -> str:
    """Return the current build, or "" if the fleet has none."""
    info, _ = await _describe(client)
    return info.routing_config.current_deployment_version.build_id


async def set_current(client: Client, build: str) -> None:
    """Make a build the current one, for new workflows and for the next run of all others.

    A busy engine may need longer than a request lasts, and makes the change all the same.
    """
    is_late = False
    for tries_left in reversed(range(FLEET_TRIES)):
        info, token = await _describe(client)
        if info.routing_config.current_deployment_version.build_id == build:
            break
        try:
            await _translate(_set_current(client, build, token, allow_no_pollers=False), build)
            break
        except RPCError as failed:
            is_late = failed.status in _LATE
            if not is_late or not tries_left:
                raise
        except EngineError:
            # After a late answer, the change that made the token invalid can be our own.
            if not is_late or not tries_left:
                raise
    await _await_routing(client)


async def set_ramp(client: Client, build: str, percent: float) -> None:
    """Let a share of the workflows move to a build. With "" and 0, end the ramp."""
    _, token = await _describe(client)
    await _translate(
        client.workflow_service.set_worker_deployment_ramping_version(
            SetWorkerDeploymentRampingVersionRequest(
                namespace=client.namespace,
                deployment_name=DEPLOYMENT,
                build_id=build,
                percentage=percent,
                conflict_token=token,
                identity=client.identity,
            ),
            timeout=_MOST,
        ),
        build,
    )
    await _await_routing(client)


async def read_builds(client: Client) -> FleetBuilds:
    """Return all builds with their workers, agents and pipelines."""
    info, _ = await _describe(client)
    workers = await queue_pollers.count_deciders(client, _MOST)
    builds = [
        await _read_build(client, info, summary, workers) for summary in info.version_summaries
    ]
    return FleetBuilds(builds=tuple(builds), percent=info.routing_config.ramping_version_percentage)


async def _read_build(
    client: Client,
    info: WorkerDeploymentInfo,
    summary: WorkerDeploymentInfo.WorkerDeploymentVersionSummary,
    workers: Mapping[str, int],
) -> Build:
    build = summary.deployment_version.build_id
    counts = [0, 0]
    if summary.drainage_info.status != _DRAINED:
        for index, kind in enumerate(("Agent", "Pipeline")):
            query = f'{render_build_query(build)} AND WorkflowType="{kind}"'
            counts[index] = (await client.count_workflows(query, rpc_timeout=_MOST)).count
    was_current = summary.HasField("last_current_time")
    return Build(
        build=build,
        role=_find_role(info, build, was_current=was_current),
        workers=workers.get(build, 0),
        agents=counts[0],
        pipelines=counts[1],
        last_current=summary.last_current_time.ToDatetime(UTC) if was_current else None,
    )


def _find_role(info: WorkerDeploymentInfo, build: str, *, was_current: bool) -> BuildRole:
    routing = info.routing_config
    if build == routing.current_deployment_version.build_id:
        return "current"
    if build == routing.ramping_deployment_version.build_id:
        return "ramping"
    return "former" if was_current else "new"


async def _describe(client: Client) -> tuple[WorkerDeploymentInfo, bytes]:
    """Return the deployment and the token that a change of this state needs."""
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace, deployment_name=DEPLOYMENT
    )
    try:
        # The engine limits the rate of these requests for the whole fleet.
        found = await client.workflow_service.describe_worker_deployment(
            request, timeout=_MOST, retry=True
        )
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:
            raise
        return WorkerDeploymentInfo(), b""
    return found.worker_deployment_info, found.conflict_token


async def _set_current(client: Client, build: str, token: bytes, *, allow_no_pollers: bool) -> None:
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=DEPLOYMENT,
            build_id=build,
            conflict_token=token,
            identity=client.identity,
            # A worker that claims the first build polls only a moment later.
            allow_no_pollers=allow_no_pollers,
        ),
        timeout=_MOST,
    )


async def _translate(change: Awaitable[T], build: str) -> T:
    try:
        return await change
    except RPCError as failed:
        if failed.status not in {RPCStatusCode.FAILED_PRECONDITION, RPCStatusCode.NOT_FOUND}:
            raise
        raise EngineError(
            "refused",
            f"the engine refused build {build}: {failed.message}",
            hint="if another operator changed the build, run the command again",
        ) from failed


async def _await_routing(client: Client) -> None:
    """Wait until the task queue knows the change. Until then, idle agents would not move."""
    routing = (await _describe(client))[0].routing_config
    wanted = (
        routing.current_deployment_version.build_id,
        routing.ramping_deployment_version.build_id,
    )
    with suppress(TimeoutError):
        async with asyncio.timeout(FLEET_ROUTING_SECONDS):
            while await queue_pollers.find_routed_builds(client, _MOST) != wanted:  # noqa: ASYNC110 - of another program
                await asyncio.sleep(FLEET_REFRESH_POLL_SECONDS)
