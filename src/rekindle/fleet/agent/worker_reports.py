"""Report an agent's state to the workflow of its pipeline."""

from temporalio import workflow
from temporalio.exceptions import FailureError, is_cancelled_exception

with workflow.unsafe.imports_passed_through():
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.fleet.pipeline_worker import WorkerReport, make_report

WORKER_SIGNAL = "worker_reported"
"""Signal that delivers a report to the pipeline's workflow."""


class WorkerReports:
    def __init__(self) -> None:
        self._sent: WorkerReport | None = None

    async def send(self, registered: RegisteredAgent) -> None:
        """Send the agent's state if it works for a pipeline and the state has changed."""
        worker = registered.definition.worker
        if worker is None:
            return
        report = make_report(registered.agent, worker, registered.projection)
        if report is None or report == self._sent:
            return
        self._sent = report
        handle = workflow.get_external_workflow_handle(worker.workflow)
        try:
            await handle.signal(WORKER_SIGNAL, report)
        except FailureError as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.info("the pipeline %s is over: %s", worker.workflow, error)
