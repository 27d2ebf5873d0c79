"""Read what a host reported with its last heartbeat."""

from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.client import Client, WorkflowExecutionDescription

from rekindle.fleet.agent.host_orders import HostReport


def find_attend_order(described: WorkflowExecutionDescription) -> PendingActivityInfo | None:
    """Return the open order that a host's workflow gave to its host, or None."""
    for pending in described.raw_description.pending_activities:
        if pending.activity_type.name == "attend":
            return pending
    return None


async def read_report(client: Client, order: PendingActivityInfo) -> HostReport | None:
    """Return the report in the last heartbeat, or None if there was no heartbeat yet."""
    payloads = list(order.heartbeat_details.payloads)
    found = await client.data_converter.decode(payloads, [HostReport]) if payloads else [None]
    return found[0] if isinstance(found[0], HostReport) else None
