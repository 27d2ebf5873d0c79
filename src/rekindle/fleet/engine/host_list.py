"""List a fleet's hosts from the engine, and drain them."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import msgspec
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.agent.agent_listing import STATE_ATTRIBUTE
from rekindle.fleet.agent.host_orders import make_host_workflow
from rekindle.fleet.agent.host_workflow import HostWorkflow
from rekindle.fleet.engine.agent_list import ALL_AGENTS
from rekindle.fleet.engine.host_reports import find_attend_order, read_report
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS

ALL_HOSTS = 'WorkflowType="Host" AND ExecutionStatus="Running"'
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


class ListedHost(msgspec.Struct, frozen=True, kw_only=True):
    """A host, as it described itself with its last heartbeat."""

    host: str
    pool: str
    build: str
    slots: int
    agents: list[str]
    draining: bool
    sandbox: str
    """How the host contains its agents, such as `sandbox on: 6G of memory`."""
    seconds: float
    """Seconds since the last heartbeat."""


async def list_hosts(client: Client) -> list[ListedHost]:
    """Return the hosts that the engine has heard from recently, by name."""
    found = []
    async for listed in client.list_workflows(ALL_HOSTS):
        try:
            handle = client.get_workflow_handle(listed.id, run_id=listed.run_id)
            described = await handle.describe(rpc_timeout=_MOST)
        except RPCError as error:
            if error.status == RPCStatusCode.NOT_FOUND:
                continue
            raise
        if described.status != WorkflowExecutionStatus.RUNNING:
            continue
        if host := await _read_host(client, described):
            found.append(host)
    return sorted(found, key=lambda host: host.host)


async def count_agents(client: Client) -> dict[str, int]:
    """Return the number of agents in each state. The engine's list may be a second behind."""
    counts: Counter[str] = Counter()
    async for listed in client.list_workflows(ALL_AGENTS):
        counts[listed.typed_search_attributes.get(STATE_ATTRIBUTE, "new")] += 1
    return dict(sorted(counts.items()))


async def drain_host(client: Client, host: str, seconds: float) -> None:
    """Ask a host to finish its cycles, take no new ones, and exit.

    Raises:
        EngineError: The fleet has no such host.
    """
    name = make_host_workflow(client.namespace, host)
    handle = client.get_workflow_handle_for(HostWorkflow.run, name)
    try:
        await handle.signal(HostWorkflow.drain, seconds, rpc_timeout=_MOST)
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        raise EngineError(
            "host", f"the fleet has no host {host}", hint="`rekindle fleet hosts` lists the hosts"
        ) from error


async def _read_host(client: Client, described: WorkflowExecutionDescription) -> ListedHost | None:
    order = find_attend_order(described)
    report = await read_report(client, order) if order else None
    if order is None or report is None:
        return None
    beaten = order.last_heartbeat_time.ToDatetime(tzinfo=UTC)
    return ListedHost(
        host=report.host,
        pool=report.pool,
        build=report.build,
        slots=report.slots,
        agents=sorted(one.workflow.removeprefix(f"{client.namespace}/") for one in report.leases),
        draining=report.is_draining,
        sandbox=report.sandbox,
        seconds=max(0.0, (datetime.now(UTC) - beaten).total_seconds()),
    )
