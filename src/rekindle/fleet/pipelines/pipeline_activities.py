"""Activities that a host performs for pipeline workflows.

Any host can repeat an activity: names are derived from the run, and the git remote stores the
results.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TypeVar

import msgspec
from temporalio import activity
from temporalio.client import Client, WorkflowHandle
from temporalio.exceptions import ApplicationError

from rekindle.documents import manifest
from rekindle.documents.events import AnyEvent, DesiredSet, RestartRequested, WorkspacePushed
from rekindle.documents.pipelines.pipeline_events import (
    ItemsFound,
    MergeStage,
    StepMerged,
    WorkerBegan,
    WorkerEnded,
)
from rekindle.documents.pipelines.run_branches import render_fetch_command
from rekindle.errors import ManifestError, NotOnFleetError, OwnershipError, RekindleError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.hosts.local_remotes import check_remote
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.fleet.pipelines.pipeline_workflow import PipelineWorkflow
from rekindle.fleet.pipelines.pushed_result import PushedResult
from rekindle.fleet.pipelines.worker_definition import define_worker
from rekindle.fleet.pipelines.worker_inputs import prepare_inputs
from rekindle.policy.exits.stop_reasons import Severity
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.pipeline_worker import PipelineWorker, WorkerReport
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.pipelines import pipeline_moves as moves
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.runtime_settings import FLEET_BEAT_SHARE, find_cycle_limit
from rekindle.policy.supervision import run_moves
from rekindle.system import clock
from rekindle.wiring.credential_setup import make_host_notifier
from rekindle.wiring.pipelines.person_merge import PersonMerges
from rekindle.wiring.pipelines.run_refs import make_result_branch, merge_parts, name_merge
from rekindle.wiring.pipelines.worker_tasks import WorkerTasks

T = TypeVar("T")


class PipelineActivities:
    def __init__(
        self, client: Client, root: Path, host: str, floor: SandboxFloor | None = None
    ) -> None:
        self._client, self._agents = client, AgentClient(client)
        self._root, self._host, self._floor = root, host, floor
        self.clone = asyncio.Lock()
        """Lock held by the task that uses a clone."""

    @activity.defn
    async def begin_worker(self, pipeline: str, began: WorkerBegan) -> str:
        """Create a worker's agent and start it. Return why it cannot be started, or ""."""
        async with send_heartbeats(), translate_errors():
            agent = await self._find_agent(began.agent)
            if agent is not None:
                return await self._begin_again(pipeline, began, agent)
            worker = PipelineWorker(workflow=pipeline, attempt=began.attempt)
            try:
                desired, pushed, definition = await self._use_clone(
                    pipeline, lambda run: _prepare_worker(run, began, worker)
                )
                new_events = [*pushed, desired]
                await self._agents.begin(began.agent, definition, new_events=new_events)
            except ManifestError as error:
                return f"{error}"
            except OwnershipError:
                pass  # another host did this task, but its answer was lost
            return ""

    async def _begin_again(self, pipeline: str, began: WorkerBegan, agent: RegisteredAgent) -> str:
        """Start the next attempt of an agent, unless it has already started."""
        worker = agent.definition.worker
        if worker is None or worker.workflow != pipeline:
            return f"the fleet already has another agent named {began.agent}"
        if worker.attempt < began.attempt:
            worker = PipelineWorker(
                workflow=pipeline, attempt=began.attempt, seq=agent.projection.seq
            )
        elif agent.projection.run.wanted > worker.seq:
            return ""
        order = worker
        try:
            desired, _, definition = await self._use_clone(
                pipeline, lambda run: _prepare_worker(run, began, order, agent)
            )
        except ManifestError as error:
            return f"{error}"
        await self._agents.define(began.agent, definition)
        # The last attempt may have been stopped in safe mode, where the agent would stay.
        is_safe = agent.projection.run.is_safe
        restart = [RestartRequested(ts=clock.read_clock())] if is_safe else []
        await self._agents.say(began.agent, *restart, desired)
        return ""

    @activity.defn
    async def check_worker(self, pipeline: str, began: WorkerBegan) -> WorkerEnded:
        """Store and check the result of a worker that has ended."""
        async with send_heartbeats(), translate_errors():
            agent = await self._find_agent(began.agent)
            if agent is None:
                state = (await self._get_handle(pipeline).query(PipelineWorkflow.kept)).fold()
                return WorkerEnded(
                    ts=clock.read_clock(),
                    step=began.step,
                    worker=began.worker,
                    attempt=began.attempt,
                    # After `pipeline resume`, a stopped worker starts again with a new agent.
                    outcome="stopped" if state.is_stopped else "failed",
                    commit=began.commit,
                    why=f"the agent {began.agent} was removed from the fleet",
                )
            ended = agent
            return await self._use_clone(
                pipeline,
                lambda run: PushedResult(run, began, ended).check(_make_redaction(run)),
            )

    @activity.defn
    async def stop_worker(self, pipeline: str, agent: str) -> None:
        """Stop a worker's agent. If the agent was removed, report its end in its place."""
        async with send_heartbeats(), translate_errors():
            registered = await self._find_agent(agent)
            if registered is None:
                await self._report_removed(pipeline, agent)
                return
            run = registered.projection.run
            stop = run_moves.make_desired_event(run, "stopped", clock.read_clock())
            await self._agents.say(agent, stop)

    async def _report_removed(self, pipeline: str, agent: str) -> None:
        handle = self._get_handle(pipeline)
        record: RegisteredPipeline = await handle.query(PipelineWorkflow.kept)
        for _, worker in record.fold().list_running():
            if worker.agent == agent:
                report = WorkerReport(agent=agent, attempt=worker.attempt, state="over")
                await handle.signal(PipelineWorkflow.worker_reported, report)

    @activity.defn
    async def find_items(self, pipeline: str, move: moves.FindItems) -> ItemsFound:
        """Read the items of a matrix step."""

        def read_list(run: HostRun) -> ItemsFound:
            run.fetch()
            run.write_outputs()
            return WorkerTasks(run.folder, run.definition, run.clone).find_items(move)

        async with send_heartbeats(), translate_errors():
            return await self._use_clone(pipeline, read_list)

    @activity.defn
    async def merge_commits(self, pipeline: str, move: moves.MergeCommits) -> StepMerged:
        """Merge commits in memory, and push the result."""

        def merge(run: HostRun) -> StepMerged:
            run.fetch()
            merged = merge_parts(run.clone, run.folder, move)
            run.push(f"{run.refs}{name_merge(move.step, move.stage)}", merged.commit)
            return merged

        async with send_heartbeats(), translate_errors():
            return await self._use_clone(pipeline, merge)

    @activity.defn
    async def ask_person(self, pipeline: str, move: moves.AskPerson) -> None:
        """Push a branch where a person can merge the changes, and notify the person."""

        def prepare(run: HostRun) -> None:
            commands = prepare_person_merge(run, move.step, move.stage)
            place = f"step {move.step}" if move.step else "the result"
            words = "\n".join(f"  {command}" for command in commands)
            _notify(run, "changes conflict", f"changes of {place} conflict; merge them:\n{words}")

        async with send_heartbeats(), translate_errors():
            await self._use_clone(pipeline, prepare)

    @activity.defn
    async def find_merge(self, pipeline: str, step: str, stage: MergeStage) -> StepMerged | None:
        """Return the merge that a person has pushed, or None."""
        async with send_heartbeats(), translate_errors():
            return await self._use_clone(pipeline, lambda run: find_person_merge(run, step, stage))

    @activity.defn
    async def end_run(self, pipeline: str, move: moves.EndPipeline) -> None:
        """Push a run's result to its branch, and notify the operator."""

        def end(run: HostRun) -> None:
            if move.outcome == "done":
                run.fetch()
                branch = run.push_result(move.commit)
                _notify(run, "done", f"its result is on the branch {branch}", "success")
            elif move.outcome != "stopped":
                _notify(run, move.outcome, move.why, "failure")

        async with send_heartbeats(), translate_errors():
            await self._use_clone(pipeline, end)

    async def _find_agent(self, agent: str) -> RegisteredAgent | None:
        try:
            return await self._agents.kept(agent)
        except NotOnFleetError:
            return None

    def _get_handle(self, pipeline: str) -> WorkflowHandle[PipelineWorkflow, str]:
        return self._client.get_workflow_handle_for(PipelineWorkflow.run, pipeline)

    async def _use_clone(self, pipeline: str, work: Callable[[HostRun], T]) -> T:
        """Call `work` in a thread with the clone of a run's repository."""
        registered = await self._get_handle(pipeline).query(PipelineWorkflow.kept)
        check_remote(registered.agent.remote, self._root, self._floor)
        async with self.clone:
            return await asyncio.to_thread(
                lambda: work(HostRun(self._root, self._host, registered))
            )


def prepare_person_merge(run: HostRun, step: str, stage: MergeStage) -> list[str]:
    """Push a branch where a person can merge the changes, and return the commands to run."""
    run.fetch()
    known = run.fetch(f"refs/heads/{make_result_branch(run.folder)}-*")
    merges = PersonMerges(run.folder, run.definition, run.clone)
    commands = merges.prepare(run.state, step, stage)
    branch = commands[0].rpartition(" ")[2]
    made = run.clone.find_ref(f"refs/heads/{branch}")
    if made is not None and f"refs/heads/{branch}" not in known:
        run.push(f"refs/heads/{branch}", made.oid)
    return [
        render_fetch_command(run.folder.pipeline, run.folder.run, branch, "origin"),
        *commands,
        f"git push origin {branch}",
    ]


def find_person_merge(run: HostRun, step: str, stage: MergeStage) -> StepMerged | None:
    """Return a merge that a person has pushed, or None, and push it as a ref for other hosts."""
    run.fetch(f"{run.refs}*", f"refs/heads/{make_result_branch(run.folder)}-*")
    merged = PersonMerges(run.folder, run.definition, run.clone).find(run.state, step, stage)
    if merged is not None:
        run.push(f"{run.refs}{name_merge(step, stage)}", merged.commit)
    return merged


def _prepare_worker(
    run: HostRun, began: WorkerBegan, worker: PipelineWorker, agent: RegisteredAgent | None = None
) -> tuple[DesiredSet, list[AnyEvent], AgentDefinition]:
    """Return the command that starts a worker, the event for its first push, and its definition.

    `agent` is the worker's agent, if it exists already.
    """
    prompt, inputs = prepare_inputs(run, began)
    now = clock.read_clock()
    entry, definition = define_worker(
        run.registered,
        run.state,
        began,
        prompt=_make_redaction(run).text(prompt),
        worker=msgspec.structs.replace(worker, inputs=inputs),
        now=now,
    )
    cycles = find_cycle_limit(entry)
    earlier = agent.projection.run if agent else run_moves.RunState()
    desired = run_moves.make_desired_event(earlier, "running", now, cycles)
    if agent is not None:
        return desired, [], definition
    start = run.push_start(began)
    pushed = WorkspacePushed(ts=now, revision=start.revision, head=start.head, branch=start.branch)
    return desired, [pushed], definition


def _make_redaction(run: HostRun) -> Redaction:
    return Redaction(tuple(manifest.parse(run.registered.agent.manifest).redact.allow))


def _notify(run: HostRun, title: str, words: str, severity: Severity = "warning") -> None:
    shared = run.registered.agent
    if not shared.notifies:
        return
    name = f"{run.definition.pipeline} {run.definition.run}"
    notifier = make_host_notifier(manifest.parse(shared.manifest).notify, _make_redaction(run))
    body = f"{words}\n→ rekindle pipeline status {name}\nproject {shared.project}"
    failures = notifier.send(f"{name}: {title}", body, severity)
    if failures:
        activity.logger.warning("the notification could not be sent: %s", "; ".join(failures))


@contextlib.asynccontextmanager
async def send_heartbeats() -> AsyncIterator[None]:
    """Send heartbeats while a task runs, so that another host repeats it if this host dies."""
    timeout = activity.info().heartbeat_timeout
    assert timeout is not None  # noqa: S101 - the workflow always sets it

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(timeout.total_seconds() * FLEET_BEAT_SHARE)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


@contextlib.asynccontextmanager
async def translate_errors() -> AsyncIterator[None]:
    """Convert Rekindle's errors to errors that the engine shows before it retries the task."""
    try:
        yield
    except RekindleError as error:
        hint = f" (→ {error.hint})" if error.hint else ""
        raise ApplicationError(f"{error}{hint}") from error
