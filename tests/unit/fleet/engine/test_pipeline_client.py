"""The operator's commands to a pipeline run."""

import asyncio
from datetime import UTC, datetime

import pytest
from temporalio.client import WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from rekindle.documents.pipelines.pipeline_events import PipelineStopped
from rekindle.errors import UsageError
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.thresholds.fleet_limits import FLEET_TRIES

STOP = PipelineStopped(ts=datetime(2026, 5, 4, 12, tzinfo=UTC))


class _Handle:
    """A workflow whose updates fail with these types of errors before one is accepted."""

    def __init__(self, *types):
        self.left = list(types)

    async def execute_update(self, *_, **__):
        if self.left:
            raise WorkflowUpdateFailedError(ApplicationError("words", type=self.left.pop(0)))


@pytest.mark.parametrize(
    ("types", "left"),
    [
        ([], 0),
        (["UnprocessedUpdate"], 0),
        (["unfit", "unfit"], 1),
        (["UnprocessedUpdate"] * (FLEET_TRIES + 1), 1),
    ],
)
def test_a_command_that_the_engine_dropped_is_sent_again(monkeypatch, types, left):
    handle = _Handle(*types)
    monkeypatch.setattr(PipelineClient, "_get_handle", lambda *_: handle)
    send = PipelineClient(None).say("ship", 1, STOP)
    if left:
        with pytest.raises(UsageError, match="ship 1: words"):
            asyncio.run(send)
    else:
        asyncio.run(send)
    assert len(handle.left) == left
