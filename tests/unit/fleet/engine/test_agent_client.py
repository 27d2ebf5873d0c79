"""The engine's answers, translated to our errors."""

import asyncio

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError, NotOnFleetError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.policy.settings.runtime_settings import FLEET_TRIES


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


class _Handle:
    """A workflow whose queries are rejected with these statuses before one is answered."""

    def __init__(self, *statuses):
        self.left = list(statuses)

    async def query(self, *_, **__):
        if self.left:
            raise WorkflowQueryRejectedError(self.left.pop(0))
        return "the state"


@pytest.mark.parametrize(
    ("statuses", "answer"),
    [
        ([], "the state"),
        ([WorkflowExecutionStatus.CONTINUED_AS_NEW], "the state"),
        ([WorkflowExecutionStatus.COMPLETED], None),
        ([WorkflowExecutionStatus.CONTINUED_AS_NEW] * 50, None),
    ],
)
def test_a_query_between_two_runs_of_a_workflow_is_repeated(monkeypatch, statuses, answer):
    handle = _Handle(*statuses)
    monkeypatch.setattr(AgentClient, "_get_handle", lambda *_: handle)
    if answer is not None:
        assert asyncio.run(AgentClient(None).kept("trades")) == answer
        return
    with pytest.raises(NotOnFleetError):
        asyncio.run(AgentClient(None).kept("trades"))
    assert len(statuses) - len(handle.left) <= FLEET_TRIES
