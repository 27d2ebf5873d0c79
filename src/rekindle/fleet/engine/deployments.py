"""Route workflows to the workers of one build, with the engine's worker deployments."""

from datetime import timedelta

from temporalio.api.workflowservice.v1 import (
    DescribeWorkerDeploymentRequest,
    SetWorkerDeploymentCurrentVersionRequest,
)
from temporalio.client import Client
from temporalio.common import VersioningBehavior, WorkerDeploymentVersion
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import WorkerDeploymentConfig

from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS

DEPLOYMENT = "rekindle"
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


def make_deployment_config(build: str) -> WorkerDeploymentConfig:
    """Return the settings of a worker that decides only for the workflows of its build."""
    return WorkerDeploymentConfig(
        version=WorkerDeploymentVersion(DEPLOYMENT, build),
        use_worker_versioning=True,
        default_versioning_behavior=VersioningBehavior.PINNED,
    )


async def claim_first(client: Client, build: str) -> None:
    """Make a build the current one if the fleet has no current build yet.

    Workflows that started before the fleet had builds continue on the current build.
    """
    request = DescribeWorkerDeploymentRequest(
        namespace=client.namespace, deployment_name=DEPLOYMENT
    )
    token = b""
    try:
        found = await client.workflow_service.describe_worker_deployment(request, timeout=_MOST)
        token = found.conflict_token
        if found.worker_deployment_info.routing_config.current_deployment_version.build_id:
            return
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:
            raise
    await client.workflow_service.set_worker_deployment_current_version(
        SetWorkerDeploymentCurrentVersionRequest(
            namespace=client.namespace,
            deployment_name=DEPLOYMENT,
            build_id=build,
            conflict_token=token,
            identity=client.identity,
            allow_no_pollers=True,  # this worker polls a moment later
        ),
        timeout=_MOST,
    )
