"""The engine's answers, translated to our errors."""

import asyncio
import types

import pytest
from temporalio.client import WorkflowExecutionStatus, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.errors import EngineError, NotOnFleetError
from rekindle.fleet.engine import agent_client
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.policy.settings.runtime_settings import FLEET_TRIES
from rekindle.thresholds.fleet_limits import FLEET_READY_SECONDS


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


NOT_READY = RPCError(
    "unexpected workflow task failure",
    RPCStatusCode.FAILED_PRECONDITION,
    b"\x1aJ\nHtype.googleapis.com/temporal.api.errordetails.v1.WorkflowNotReadyFailure",
)


@pytest.mark.parametrize(("failures", "is_sent"), [(0, True), (2, True), (50, False)])
def test_a_command_is_repeated_if_the_worker_failed_before_it(monkeypatch, failures, is_sent):
    sent, pauses = [], []

    async def execute_update(*_, **__):
        sent.append(1)
        if len(sent) <= failures:
            raise NOT_READY
        return 7

    async def sleep(seconds):
        pauses.append(seconds)

    handle = types.SimpleNamespace(execute_update=execute_update)
    monkeypatch.setattr(AgentClient, "_get_handle", lambda *_: handle)
    monkeypatch.setattr(agent_client.asyncio, "sleep", sleep)
    if is_sent:
        assert asyncio.run(AgentClient(None).say("trades")) == 7
    else:
        with pytest.raises(EngineError, match="cannot answer for agent trades"):
            asyncio.run(AgentClient(None).say("trades"))
    assert len(sent) == min(failures + 1, FLEET_TRIES)
    assert pauses == [FLEET_READY_SECONDS] * (len(sent) - 1)


def test_another_error_of_the_engine_is_not_repeated(monkeypatch):
    sent = []

    async def execute_update(*_, **__):
        sent.append(1)
        raise RPCError("the namespace is throttled", RPCStatusCode.RESOURCE_EXHAUSTED, b"")

    handle = types.SimpleNamespace(execute_update=execute_update)
    monkeypatch.setattr(AgentClient, "_get_handle", lambda *_: handle)
    with pytest.raises(EngineError):
        asyncio.run(AgentClient(None).say("trades"))
    assert len(sent) == 1
