"""Find workflows whose tasks fail again and again, so that no worker can continue them."""

from collections.abc import AsyncIterator
from datetime import timedelta

import msgspec
from temporalio.client import Client, WorkflowExecution
from temporalio.common import SearchAttributeKey

from rekindle.fleet.engine.deployments import DEPLOYMENT
from rekindle.policy.fleet.fleet_builds import parse_cause
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS

_PROBLEMS = SearchAttributeKey.for_keyword_list("TemporalReportedProblems")
"""Problems that the engine reports after several failed tasks. It clears them on success."""
_VERSION = SearchAttributeKey.for_keyword("TemporalWorkerDeploymentVersion")
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
STUCK = (
    'TemporalReportedProblems IS NOT NULL AND ExecutionStatus="Running" AND '
    'WorkflowType IN ("Agent", "Pipeline", "ScheduledRun", "Host", "Team")'
)
"""Query for the stuck workflows of a fleet."""


class StuckWorkflow(msgspec.Struct, frozen=True):
    """A workflow that is stuck."""

    name: str
    """Name of the agent, or for example `pipelines/NAME/RUN`."""
    build: str
    cause: str


async def list_stuck(client: Client) -> AsyncIterator[StuckWorkflow]:
    async for listed in client.list_workflows(STUCK, rpc_timeout=_MOST):
        name = listed.id.removeprefix(f"{client.namespace}/")
        yield StuckWorkflow(name, read_build(listed), read_problem(listed))


def read_build(listed: WorkflowExecution) -> str:
    """Return the build that a listed workflow needs, or "" if it does not have one yet."""
    version: str = listed.typed_search_attributes.get(_VERSION, "")
    return version.removeprefix(f"{DEPLOYMENT}:")


def read_problem(listed: WorkflowExecution) -> str:
    """Return why a listed workflow is stuck, or "" if it is not."""
    reported = listed.typed_search_attributes.get(_PROBLEMS, ())
    return parse_cause(reported) if reported else ""
