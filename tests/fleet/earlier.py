"""The scheme of earlier versions, for comparison: one long activity for each session.

The host heartbeats each session, and sends the hook reports of each session every 30 seconds.
"""

import asyncio
import time
from contextlib import suppress
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.common import RetryPolicy
from temporalio.service import RPCError

HEARTBEAT_TIMEOUT = 75.0
BEAT_SECONDS = 30.0
FOLD_SECONDS = 30.0
QUEUE = "earlier"
AROUND = (3, 3)
"""Number of updates at the start and at the end of a cycle."""


@workflow.defn(name="Earlier")
class EarlierWorkflow:
    @workflow.init
    def __init__(self, cycle: float, times: float) -> None:
        self._lines: list[str] = []

    @workflow.run
    async def run(self, cycle: float, times: float) -> None:
        while True:
            await workflow.execute_activity(
                "earlier_cycle",
                args=[workflow.info().workflow_id, cycle, times],
                heartbeat_timeout=timedelta(seconds=HEARTBEAT_TIMEOUT / times),
                start_to_close_timeout=timedelta(days=365),
                retry_policy=RetryPolicy(initial_interval=timedelta(seconds=1 / times)),
            )
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(args=[cycle, times])

    @workflow.update
    def commit(self, line: str) -> str:
        self._lines = [*self._lines[-60:], line]
        return line


class EarlierHost:
    """Runs sessions that do nothing; `times` is how much faster than real ones they are."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.running = 0

    @activity.defn(name="earlier_cycle")
    async def cycle(self, name: str, cycle: float, times: float) -> None:
        with suppress(RPCError, WorkflowUpdateRPCTimeoutOrCancelledError):  # the run is over
            await self._run_session(name, cycle, times)

    async def _run_session(self, name: str, cycle: float, times: float) -> None:
        handle = self._client.get_workflow_handle(name)
        for number in range(AROUND[0]):
            await handle.execute_update("commit", f"start {number}")
        self.running += 1
        began = beaten = folded = time.monotonic()
        while (now := time.monotonic()) - began < cycle / times:
            if now - beaten >= BEAT_SECONDS / times:
                beaten = now
                activity.heartbeat(1)
            if now - folded >= FOLD_SECONDS / times:
                folded = now
                await handle.execute_update("commit", "x" * 200)
            await asyncio.sleep(0.02)
        for number in range(AROUND[1]):
            await handle.execute_update("commit", f"end {number}")
