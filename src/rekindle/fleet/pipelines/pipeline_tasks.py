"""Tasks that a pipeline's workflow gives to hosts, and their task queue."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from rekindle.policy.settings.runtime_settings import (
        FLEET_PIPELINE_RETRY_SECONDS,
        FLEET_PIPELINE_SECONDS,
    )

T = TypeVar("T")
_AGAIN = RetryPolicy(maximum_interval=timedelta(seconds=FLEET_PIPELINE_RETRY_SECONDS))


def make_pipeline_queue(pool: str) -> str:
    """Return the task queue for a pool's tasks. Older versions also started workflows there."""
    return f"rekindle-pipelines-{pool}"


def make_pipeline_id(namespace: str, pipeline: str, run: int) -> str:
    """Return the id of a run's workflow. It contains slashes, so it cannot be an agent's id."""
    return f"{namespace}/pipelines/{pipeline}/{run}"


def parse_pipeline_id(namespace: str, workflow_id: str) -> tuple[str, int] | None:
    """Return the pipeline and the number of a run, or None if the id is not one of a run."""
    start = re.escape(f"{namespace}/pipelines/")
    match = re.fullmatch(rf"{start}([^/]+)/(\d+)", workflow_id)
    return (match[1], int(match[2])) if match else None


async def run_task(
    task: str, arguments: Sequence[Any], kind: type[T], heartbeat_seconds: float, pool: str
) -> T:
    """Run a task on a host in the pool, and retry until it succeeds."""
    result: T = await workflow.execute_activity(
        task,
        args=[workflow.info().workflow_id, *arguments],
        result_type=kind,
        # An order of an older version does not name the pool. Its workflow is on the pool's queue.
        task_queue=make_pipeline_queue(pool) if pool else None,
        heartbeat_timeout=timedelta(seconds=heartbeat_seconds),
        start_to_close_timeout=timedelta(seconds=FLEET_PIPELINE_SECONDS),
        retry_policy=_AGAIN,
    )
    return result
