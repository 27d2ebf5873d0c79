"""Calls for many agents: a few at a time, and none after the engine is gone."""

import asyncio

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError, NotOnFleetError
from rekindle.fleet.engine import bulk_calls
from rekindle.fleet.engine.bulk_calls import call_each

NAMES = [f"a-{number}" for number in range(9)]


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch):
    monkeypatch.setattr(bulk_calls, "FLEET_CALLS_AT_ONCE", 2)


def test_each_agent_is_called_once_and_two_at_a_time():
    running, most, called = 0, 0, []

    async def call(name: str) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        called.append(name)
        await asyncio.sleep(0)
        running -= 1
        return name != "a-3"

    result = asyncio.run(call_each([*NAMES, "a-1"], call))
    assert sorted(called) == NAMES
    assert most == 2
    assert (set(result.done), result.unchanged) == ({*NAMES} - {"a-3"}, ("a-3",))


def test_agents_are_skipped_once_the_engine_does_not_answer():
    async def call(name: str) -> bool:
        await asyncio.sleep(0)
        raise RPCError("gone", RPCStatusCode.UNAVAILABLE, b"")

    failed = asyncio.run(call_each(NAMES, call)).failed
    assert set(failed) == set(NAMES)
    assert all(isinstance(error, EngineError) for error in failed.values())
    skipped = [name for name, error in failed.items() if "was skipped" in str(error)]
    assert len(NAMES) - 3 <= len(skipped) <= len(NAMES) - 2


def test_agents_that_are_missing_skip_no_others():
    async def call(name: str) -> bool:
        if name == NAMES[-1]:
            return True
        raise NotOnFleetError(name)

    result = asyncio.run(call_each(NAMES, call))
    assert result.done == (NAMES[-1],)
    assert all(isinstance(error, NotOnFleetError) for error in result.failed.values())
