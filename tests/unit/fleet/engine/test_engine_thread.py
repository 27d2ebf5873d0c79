"""Calls of several threads to one engine, and the end of their connection."""

import asyncio
import threading

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.engine.engine_thread import EngineThread

CALLS = 5
PATIENCE = 30


@pytest.fixture
def thread():
    opened = EngineThread("127.0.0.1:7233")
    yield opened
    opened.close()


def test_a_close_ends_the_calls_of_other_threads(thread):
    begun, ended = threading.Barrier(CALLS + 1), []

    async def never_answered() -> None:
        await asyncio.get_running_loop().run_in_executor(None, begun.wait, PATIENCE)
        await asyncio.Event().wait()

    def call() -> None:
        try:
            thread.wait_for(never_answered())
        except EngineError as error:
            ended.append(error)

    callers = [threading.Thread(target=call, daemon=True) for _ in range(CALLS)]
    for caller in callers:
        caller.start()
    begun.wait(PATIENCE)
    thread.close()
    for caller in callers:
        caller.join(PATIENCE)
    assert not any(caller.is_alive() for caller in callers)
    assert [error.cause for error in ended] == ["closed"] * CALLS


def test_a_call_after_the_close_is_refused(thread):
    async def answer() -> int:
        return 1

    assert thread.wait_for(answer()) == 1
    thread.close()
    thread.close()
    with pytest.raises(EngineError, match="is closed") as refused:
        thread.wait_for(answer())
    assert "rekindle.connect" in refused.value.hint


@pytest.mark.parametrize(
    ("status", "words", "cause", "hint"),
    [
        (
            RPCStatusCode.INVALID_ARGUMENT,
            "invalid query: invalid search attribute: RekindleTeam",
            "attributes",
            "rekindle fleet worker",
        ),
        (RPCStatusCode.INVALID_ARGUMENT, "namespace is empty", "unreachable", "rekindle doctor"),
        (RPCStatusCode.UNAVAILABLE, "connection refused", "unreachable", "rekindle doctor"),
    ],
)
def test_a_refused_request_tells_the_next_step(thread, status, words, cause, hint):
    async def fail() -> None:
        raise RPCError(words, status, b"")

    with pytest.raises(EngineError, match=words) as refused:
        thread.wait_for(fail())
    assert refused.value.cause == cause
    assert hint in refused.value.hint
