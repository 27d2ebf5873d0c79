"""Find out why the hosts of a pool refuse an agent."""

from datetime import timedelta

from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from rekindle.fleet.agent.host_orders import REFUSED
from rekindle.thresholds.fleet_limits import FLEET_GLANCE_SECONDS


async def explain_refused_offer(client: Client, workflow: str) -> str:
    """Return the last refusal of an agent that waits for a host, or "" if no host refused it."""
    described = await client.get_workflow_handle(workflow).describe(
        rpc_timeout=timedelta(seconds=FLEET_GLANCE_SECONDS)
    )
    for pending in described.raw_description.pending_activities:
        if pending.activity_type.name == "offer" and pending.HasField("last_failure"):
            failure = await client.data_converter.decode_failure(pending.last_failure)
            if isinstance(failure, ApplicationError) and failure.type == REFUSED:
                return failure.message
    return ""
