"""The engine's answers, translated to our errors."""

import pytest
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError
from rekindle.fleet.engine.agent_client import AgentClient


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (RPCStatusCode.FAILED_PRECONDITION, "for agent trades: a task failed", "doctor"),
        (RPCStatusCode.UNAVAILABLE, "for agent trades: a task failed", "doctor"),
        (RPCStatusCode.INVALID_ARGUMENT, "refused agent trades: a task failed", "too large"),
        (RPCStatusCode.DEADLINE_EXCEEDED, "no worker answered for agent trades", "start a worker"),
    ],
)
def test_only_without_an_answer_a_worker_is_asked_for(status, words, hint):
    """Otherwise the engine's own message names the problem."""
    with (
        pytest.raises(EngineError, match=words) as raised,
        AgentClient(None)._translate_errors("trades"),
    ):
        raise RPCError("a task failed", status, b"")
    assert hint in raised.value.hint
