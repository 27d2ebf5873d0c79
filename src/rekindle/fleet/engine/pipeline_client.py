"""Client for a fleet's pipelines: start and read runs, and send them commands."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import (
    Client,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from rekindle.documents import events
from rekindle.documents.pipelines.pipeline_events import PipelineResumed, PipelineStopped
from rekindle.errors import EngineError, NotFoundError, UsageError
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.engine.update_errors import is_overlooked
from rekindle.fleet.pipelines.pipeline_tasks import (
    make_pipeline_id,
    parse_pipeline_id,
)
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.settings.runtime_settings import (
    FLEET_ANSWER_SECONDS,
    FLEET_RPC_SECONDS,
    FLEET_TASK_SECONDS,
)
from rekindle.thresholds.fleet_limits import FLEET_PIPELINE_FAILURES, FLEET_TRIES

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_ANSWER = timedelta(seconds=FLEET_ANSWER_SECONDS)


class PipelineClient:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def begin(self, registered: RegisteredPipeline) -> None:
        """Start the workflow of a run. No worker has to be running.

        Raises:
            EngineError: The engine refused the run, or already has a run with this number.
        """
        run = registered.definition
        try:
            await self._client.start_workflow(
                PipelineWorkflow.run,
                registered,
                id=make_pipeline_id(self._client.namespace, run.pipeline, run.run),
                task_queue=DECISION_QUEUE,
                task_timeout=timedelta(seconds=FLEET_TASK_SECONDS),
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                rpc_timeout=_MOST,
            )
        except WorkflowAlreadyStartedError as there:
            raise EngineError(
                "refused",
                f"the fleet already has run {run.run} of {run.pipeline}",
                hint="another project uses the same namespace; rename the pipeline",
            ) from there
        except RPCError as failed:
            raise EngineError(
                "refused",
                f"the engine refused run {run.run} of {run.pipeline}: {failed.message}",
                hint="`rekindle doctor` checks the engine; shorten prompts that are very long",
            ) from failed

    async def kept(self, pipeline: str, run: int) -> RegisteredPipeline:
        """Return a run's definition and log.

        Raises:
            NotFoundError: There is no such run.
            EngineError: No worker answers.
        """
        handle = self._get_handle(pipeline, run)
        for tries_left in reversed(range(FLEET_TRIES)):
            try:
                return await handle.query(PipelineWorkflow.kept, rpc_timeout=_ANSWER)
            except (RPCError, WorkflowQueryFailedError) as failed:
                # The last worker may be gone, and the next one may still be loading.
                if not (tries_left and _is_late(failed)):
                    raise _make_error(pipeline, run, failed) from failed
        raise AssertionError  # the last attempt returns or raises

    async def say(self, pipeline: str, run: int, event: PipelineStopped | PipelineResumed) -> None:
        """Send the operator's command to a run."""
        handle, line = self._get_handle(pipeline, run), events.render(event).decode()
        for tries_left in reversed(range(FLEET_TRIES)):
            try:
                await handle.execute_update(PipelineWorkflow.say, line, rpc_timeout=_MOST)
            except WorkflowUpdateFailedError as refused:
                if tries_left and is_overlooked(refused):
                    continue
                cause = refused.cause
                words = cause.message if isinstance(cause, ApplicationError) else str(cause)
                raise UsageError(
                    f"{pipeline} {run}: {words}",
                    hint=f"`rekindle pipeline status {pipeline} {run}`",
                ) from refused
            except (RPCError, WorkflowUpdateRPCTimeoutOrCancelledError) as failed:
                raise _make_error(pipeline, run, failed) from failed
            return

    async def find_failure(self, pipeline: str, run: int) -> str:
        """Return the error of a task that fails again and again, or ""."""
        try:
            described = await self._get_handle(pipeline, run).describe(rpc_timeout=_MOST)
        except RPCError as failed:
            raise _make_error(pipeline, run, failed) from failed
        for task in described.raw_description.pending_activities:
            if task.attempt > FLEET_PIPELINE_FAILURES and task.HasField("last_failure"):
                error = await self._client.data_converter.decode_failure(task.last_failure)
                if isinstance(error, ApplicationError):  # if a host dies, it is a timeout
                    return error.message
        return ""

    async def find_open(self, pipeline: str) -> RegisteredPipeline | None:
        """Return the run of a pipeline that has not ended. A stopped run counts as ended."""
        async for name, run in self.list_runs(' AND ExecutionStatus="Running"'):
            if name == pipeline and (found := await self._find_if_open(name, run)):
                return found
        return None

    async def is_open(self, pipeline: str, run: int) -> bool:
        """Return whether a run exists and has not ended. A stopped run counts as ended."""
        return await self._find_if_open(pipeline, run) is not None

    async def _find_if_open(self, pipeline: str, run: int) -> RegisteredPipeline | None:
        try:
            found = await self.kept(pipeline, run)
        except NotFoundError:  # a person removed the run
            return None
        return found if found.fold().ended is None else None

    async def list_runs(self, which: str = "") -> AsyncIterator[tuple[str, int]]:
        """Yield the pipeline and number of each run, or of the runs that a query selects."""
        known = set[tuple[str, int]]()
        async for listed in self._client.list_workflows(f'WorkflowType="Pipeline"{which}'):
            run = parse_pipeline_id(self._client.namespace, listed.id)
            if run is not None and run not in known:
                known.add(run)
                yield run

    async def forget(self, pipeline: str, run: int, agents: Sequence[str]) -> None:
        """Remove the histories of a run and its workers from the engine."""
        namespace = self._client.namespace
        names = [f"{namespace}/{agent}" for agent in agents]
        names.append(make_pipeline_id(namespace, pipeline, run))
        for name in names:
            # If its history became too long, the workflow continued with a new one.
            async for listed in self._client.list_workflows(f'WorkflowId="{name}"'):
                execution = WorkflowExecution(workflow_id=name, run_id=listed.run_id)
                request = DeleteWorkflowExecutionRequest(
                    namespace=namespace, workflow_execution=execution
                )
                service = self._client.workflow_service
                try:
                    await service.delete_workflow_execution(request, timeout=_MOST)
                except RPCError as failed:
                    if failed.status != RPCStatusCode.NOT_FOUND:
                        raise

    def _get_handle(self, pipeline: str, run: int) -> WorkflowHandle[PipelineWorkflow, str]:
        workflow = make_pipeline_id(self._client.namespace, pipeline, run)
        return self._client.get_workflow_handle_for(PipelineWorkflow.run, workflow)


def _is_late(failed: Exception) -> bool:
    late = {RPCStatusCode.CANCELLED, RPCStatusCode.DEADLINE_EXCEEDED}
    return isinstance(failed, RPCError) and failed.status in late


def _make_error(pipeline: str, run: int, failed: Exception) -> Exception:
    if isinstance(failed, RPCError) and failed.status == RPCStatusCode.NOT_FOUND:
        return NotFoundError(
            f"the fleet has no run {run} of {pipeline}",
            hint=f"`rekindle pipeline status {pipeline}` shows the last run",
        )
    return EngineError(
        "unanswered",
        f"no worker answered for run {run} of {pipeline}",
        hint="start a worker on this host with `rekindle fleet worker`",
    )
