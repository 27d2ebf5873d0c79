"""Count a fleet's agents, for the window over which the fleet spreads its briefs."""

import math
import time
from datetime import timedelta

from temporalio.client import Client
from temporalio.service import RPCError

from rekindle.fleet.engine.agent_list import ALL_AGENTS
from rekindle.thresholds.fleet_limits import FLEET_GLANCE_SECONDS, FLEET_SIZE_SECONDS

_GLANCE = timedelta(seconds=FLEET_GLANCE_SECONDS)


class FleetSize:
    """Number of agents on the fleet, counted rarely and once for all agents of a host."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._agents, self._counted_at = 0, -math.inf

    async def read(self) -> int:
        """Return the number of agents; 0 if it was never known."""
        if time.monotonic() - self._counted_at >= FLEET_SIZE_SECONDS:
            self._counted_at = time.monotonic()
            try:
                counted = await self._client.count_workflows(ALL_AGENTS, rpc_timeout=_GLANCE)
            except RPCError:
                return self._agents  # count again later, because an agent is waiting
            self._agents = counted.count
        return self._agents
