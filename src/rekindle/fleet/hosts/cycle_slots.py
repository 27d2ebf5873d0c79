"""Limit how many cycles a host runs at the same time."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator

from temporalio.exceptions import ApplicationError
from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)

from rekindle.fleet.agent.host_orders import FULL
from rekindle.policy.settings.runtime_settings import FLEET_HOST_SECONDS, POLL_SECONDS


class CycleSlots(CustomSlotSupplier):
    """Limits how many cycles this host runs at the same time, across both of its queues.

    Polling takes no slot. Otherwise, polling the pool's queue would occupy a slot that the host's
    own agents need. An offered slot is reserved for a while. Two agents may still compete for the
    last slot; the second one then returns to the pool.
    """

    def __init__(self, most: int) -> None:
        self._most, self._used = most, 0
        self._promised: deque[float] = deque()
        """Expiry times of slots that were offered but not used yet, in monotonic seconds."""
        self._freed = asyncio.Condition()

    def promise(self) -> None:
        self._promised.append(time.monotonic() + FLEET_HOST_SECONDS)

    def _has_room(self) -> bool:
        while self._promised and self._promised[0] < time.monotonic():
            self._promised.popleft()
        return self._used + len(self._promised) < self._most

    @contextlib.asynccontextmanager
    async def use(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(FLEET_HOST_SECONDS), self._freed:
                await self._freed.wait_for(lambda: self._used < self._most)
                self._used += 1
                if self._promised:
                    self._promised.popleft()
        except TimeoutError:
            raise ApplicationError("all slots are taken", type=FULL, non_retryable=True) from None
        try:
            yield
        finally:
            self._used -= 1
            async with self._freed:
                self._freed.notify_all()

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:  # noqa: ARG002 - the SDK's signature
        while not self._has_room():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS), self._freed:
                    await self._freed.wait()
        return SlotPermit()

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:  # noqa: ARG002
        return None

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Do nothing, because `use` counts the used slots."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        """Do nothing, because `use` counts the used slots."""
