"""Calls of several threads to one engine, and the end of their connection."""

import asyncio
import subprocess
import sys
import threading

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.engine.engine_thread import EngineThread

CALLS = 5
PATIENCE = 30
UNCLOSED = """
import asyncio, os, sys, threading
from rekindle.fleet.engine.engine_thread import EngineThread

async def work():
    begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        print("cancelled", flush=True)

begun = threading.Event()
thread = EngineThread("127.0.0.1:7233")
threading.Thread(target=thread.wait_for, args=[work()], daemon=True).start()
begun.wait()
if "fork" in sys.argv and (child := os.fork()):
    assert os.waitpid(child, 0)[1] == 0
"""
"""A program that ends during a call. A process that it forks has no such thread."""


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


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_the_end_of_a_program_closes_its_connections(how):
    """Otherwise the engine's client can abort the program while Python shuts down."""
    argv = [sys.executable, "-c", UNCLOSED, how]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stdout) == (0, "cancelled\n"), done.stderr
