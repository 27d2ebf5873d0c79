"""Delete the schedules of daily briefs that earlier versions made.

An agent's workflow now waits for the time of its brief itself, because each schedule takes as much
space in the engine as an agent.
"""

from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


def make_schedule_name(client: Client, agent: str) -> str:
    return f"brief/{client.namespace}/{agent}"


async def drop_schedule(client: Client, agent: str) -> None:
    handle = client.get_schedule_handle(make_schedule_name(client, agent))
    try:
        await handle.delete(rpc_timeout=_MOST)
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:
            raise
