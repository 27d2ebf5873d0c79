"""A workflow that does nothing: the engine's own cost of the same activities and updates."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy


@workflow.defn(name="Bare")
class BareWorkflow:
    @workflow.init
    def __init__(self, queue: str, cycles: int, answers: Sequence[int]) -> None:
        self._answers = ["x" * size for size in answers]
        self._asked = 0

    @workflow.run
    async def run(self, queue: str, cycles: int, answers: Sequence[int]) -> None:
        for cycle in range(cycles):
            await workflow.execute_activity(
                "bare_cycle",
                args=[workflow.info().workflow_id, cycle],
                task_queue=queue,
                heartbeat_timeout=timedelta(seconds=60),
                start_to_close_timeout=timedelta(days=365),
                schedule_to_start_timeout=timedelta(seconds=60),
                retry_policy=RetryPolicy(maximum_attempts=1),
            )
            due = (cycle + 1) * len(self._answers)
            await workflow.wait_condition(lambda: self._asked >= due)  # noqa: B023 - awaited here

    @workflow.update
    def commit(self, asked: str) -> str:
        answer = self._answers[self._asked % len(self._answers)]
        self._asked += 1
        return answer


@workflow.defn(name="Beating")
class BeatingWorkflow:
    """Wait for one activity with heartbeats, as a host's workflow does."""

    @workflow.run
    async def run(self, queue: str, seconds: float) -> None:
        await workflow.execute_activity(
            "beats",
            task_queue=queue,
            heartbeat_timeout=timedelta(seconds=seconds),
            start_to_close_timeout=timedelta(days=1),
            retry_policy=RetryPolicy(maximum_attempts=1),
        )
