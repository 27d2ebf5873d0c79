"""Call the engine for many agents, a few at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from temporalio.service import RPCError

from rekindle.errors import EngineError, RekindleError
from rekindle.policy.fleet.bulk_result import BulkResult
from rekindle.thresholds.control_limits import FLEET_CALLS_AT_ONCE

_NOT_ANSWERED = frozenset({"engine", "unanswered", "unreachable"})
"""Causes of errors that the next agent would have too."""


async def call_each(names: Iterable[str], call: Callable[[str], Awaitable[bool]]) -> BulkResult:
    """Call a function for each agent. It returns whether it changed something.

    If the engine or all workers stop answering, the agents that are left fail without a try.
    """
    calls = _Calls(call)
    await asyncio.gather(*map(calls.call, dict.fromkeys(names)))
    return BulkResult(tuple(calls.done), tuple(calls.unchanged), calls.failed)


class _Calls:
    def __init__(self, call: Callable[[str], Awaitable[bool]]) -> None:
        self._call, self._free = call, asyncio.Semaphore(FLEET_CALLS_AT_ONCE)
        self._silent = 0
        """Number of calls in a row that got no answer."""
        self.done: list[str] = []
        self.unchanged: list[str] = []
        self.failed: dict[str, RekindleError] = {}

    async def call(self, name: str) -> None:
        async with self._free:
            if self._silent >= FLEET_CALLS_AT_ONCE:
                self.failed[name] = EngineError(
                    "unreachable",
                    f"agent {name} was skipped, because the engine or its workers do not answer",
                    hint="`rekindle doctor` checks both; then repeat the call for these agents",
                )
                return
            try:
                is_changed = await self._call_engine(name)
            except RekindleError as error:
                self.failed[name] = error
                is_silent = isinstance(error, EngineError) and error.cause in _NOT_ANSWERED
                self._silent = self._silent + 1 if is_silent else 0
                return
            self._silent = 0
            (self.done if is_changed else self.unchanged).append(name)

    async def _call_engine(self, name: str) -> bool:
        try:
            return await self._call(name)
        except RPCError as failed:
            raise EngineError(
                "engine",
                f"the engine cannot answer for agent {name}: {failed.message}",
                hint="repeat the call for this agent; `rekindle doctor` checks the engine",
            ) from failed
