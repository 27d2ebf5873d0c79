"""Simulated agents whose sessions take time, in compressed time, and report tool calls."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final
from unittest.mock import patch

from temporalio.client import Client

from fleet.pace import Asked, Pacing, Saying
from rekindle.fleet.agent import start_activities
from rekindle.policy.fleet.agent_registry import AgentDefinition, CommitRequest

TIMES: Final = 60
"""How much faster than real ones the agents are."""
CYCLE_SECONDS: Final = 1_800 / TIMES
FOLDS: Final = 6
"""Folds of a half-hour cycle with constant tool calls, one for each `fold_seconds`."""
CALLS: Final = 20
"""Tool calls in a fold: one every 15 seconds."""
FOREVER: Final = 10**9
PATIENCE: Final = 90.0


class Paced(Pacing):
    """Agents that commit as real ones do; `latencies` has the seconds of each commit."""

    def __init__(
        self,
        client: Client,
        words: Sequence[Asked],
        definition: AgentDefinition,
        *,
        seconds: float = 0.0,
        folds: int = 0,
    ) -> None:
        super().__init__(client, words, definition)
        self._seconds, self._folds = seconds, folds
        self.latencies: list[float] = []

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Run the workers, with more patience: a busy machine must not move an agent away."""
        patience = {"FLEET_HOST_SECONDS": PATIENCE, "FLEET_BEGIN_SECONDS": PATIENCE}
        with patch.multiple(start_activities, **patience):
            async with super().working():
                yield

    async def add(self, prefix: str, agents: int, seconds: float) -> None:
        """Start this many agents that never end, spread over this time."""
        self.release()
        for number in range(agents):
            await self.start(f"{prefix}-{number}", FOREVER)
            await asyncio.sleep(seconds / agents)

    async def _work(self, name: str, saying: Saying) -> None:
        for _ in range(self._folds):
            await asyncio.sleep(self._seconds / self._folds)
            await self._commit(name, saying, saying.report(CALLS))

    async def _commit(self, name: str, saying: Saying, asked: CommitRequest) -> None:
        began = time.monotonic()
        await super()._commit(name, saying, asked)
        self.latencies.append(time.monotonic() - began)

    @property
    def failed(self) -> int:
        """Return how many sessions have failed; their agents do nothing more."""
        ended = [one for one in self._tasks if one.done() and not one.cancelled()]
        return sum(one.exception() is not None for one in ended)

    async def close(self) -> None:
        """End the sessions that run."""
        for task in self._tasks:
            task.remove_done_callback(asyncio.Task.result)
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
