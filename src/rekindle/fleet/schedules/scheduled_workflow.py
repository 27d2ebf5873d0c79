"""Workflow that a schedule starts at each due time.

It ends as soon as the run has been started or skipped. Its result is the schedule's record, which
the engine gives to the workflow of the next due time. While it waits for the previous run or a
host, the engine does not start another workflow for this schedule.
"""

from datetime import datetime, timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeKey, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_id, run_task
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow

with workflow.unsafe.imports_passed_through():
    from rekindle.fleet.agent.host_orders import DECISION_QUEUE
    from rekindle.policy.fleet import scheduled_run
    from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
    from rekindle.policy.fleet.scheduled_run import DueResult, ScheduledOrder
    from rekindle.policy.schedules.schedule_record import (
        ScheduleOutcome,
        ScheduleRecord,
        select_news,
    )
    from rekindle.policy.settings.runtime_settings import FLEET_TASK_SECONDS

T = TypeVar("T")
_DUE = SearchAttributeKey.for_datetime("TemporalScheduledStartTime")
"""Due time, which the engine adds to each workflow that a schedule starts."""


@workflow.defn(name="ScheduledRun")
class ScheduledRunWorkflow:
    @workflow.run
    async def run(self, order: ScheduledOrder) -> ScheduleRecord:
        due = workflow.info().typed_search_attributes[_DUE]
        before: ScheduleRecord | None = workflow.get_last_completion_result(ScheduleRecord)
        if before is not None and due <= before.handled:
            return before
        now = workflow.now()
        outcomes = scheduled_run.find_missed(before, order, due, now)
        if scheduled_run.is_missed(order.make_rules(), due, now):
            outcomes.append(ScheduleOutcome("missed", due, due, now, reason=scheduled_run.NO_HOST))
        else:
            refusal = await self._start(order, due)
            outcomes.append(scheduled_run.make_outcome(refusal, due, workflow.now()))
        record = scheduled_run.continue_record(before, order, due)
        if news := select_news(record, outcomes):
            await _run_task("report_outcomes", order, news, type(None))
        return record.add_outcomes(*outcomes)

    async def _start(self, order: ScheduledOrder, due: datetime) -> str:
        """Start the run. Return why it cannot be started, or ""."""
        result = await _run_task("start_due", order, due, DueResult)
        return await self._start_pipeline(result.run) if result.run else result.refusal

    async def _start_pipeline(self, run: RegisteredPipeline) -> str:
        """Start the workflow of a pipeline's run. Return why it cannot be started, or ""."""
        definition = run.definition
        try:
            await workflow.start_child_workflow(
                PipelineWorkflow.run,
                run,
                task_queue=DECISION_QUEUE,
                id=make_pipeline_id(workflow.info().namespace, definition.pipeline, definition.run),
                task_timeout=timedelta(seconds=FLEET_TASK_SECONDS),
                parent_close_policy=ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            )
        except WorkflowAlreadyStartedError:
            return f"the fleet already has a run {definition.run} of another project"
        return ""


async def _run_task(task: str, order: ScheduledOrder, argument: Any, kind: type[T]) -> T:
    return await run_task(task, (order, argument), kind, order.heartbeat_seconds, order.pool)
