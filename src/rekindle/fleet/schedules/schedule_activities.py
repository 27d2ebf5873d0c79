"""Activities that a host performs for schedules. Any host can repeat them."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError

from rekindle.documents import manifest
from rekindle.errors import NotOnFleetError, WorkspaceError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.hosts.local_remotes import check_remote
from rekindle.fleet.pipelines.host_run import open_clone
from rekindle.fleet.pipelines.pipeline_activities import send_heartbeats, translate_errors
from rekindle.fleet.pipelines.run_numbers import (
    find_base_branch,
    find_branch_commit,
    reserve_number,
)
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline, begin_run
from rekindle.policy.fleet.scheduled_run import DueResult, ScheduledOrder
from rekindle.policy.operator.make_notification import make_notice
from rekindle.policy.operator.notification_kinds import NotificationKind
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.schedules.decide_run import STILL_RUNNING
from rekindle.policy.schedules.describe_outcomes import render_outcome
from rekindle.policy.schedules.schedule_record import ScheduleOutcome
from rekindle.policy.settings.runtime_settings import find_cycle_limit
from rekindle.policy.supervision import run_moves
from rekindle.system import clock
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.wiring.credential_setup import make_host_notifier


class ScheduleActivities:
    def __init__(
        self,
        client: Client,
        root: Path,
        host: str,
        clone: asyncio.Lock,
        floor: SandboxFloor | None = None,
    ) -> None:
        self._agents, self._pipelines = AgentClient(client), PipelineClient(client)
        self._root, self._host = root, host
        self._floor, self._clone = floor, clone
        """Lock held by the task that uses a clone."""

    @activity.defn
    async def start_due(self, workflow: str, order: ScheduledOrder, due: datetime) -> DueResult:
        """Start an agent, or return the pipeline run that the engine must start.

        With `overlap: queue`, the task fails and is retried until the previous run has ended.
        """
        del workflow
        async with send_heartbeats(), translate_errors():
            if order.pipeline is None:
                return await self._start_agent(order, due)
            if running := await self._pipelines.find_open(order.name):
                # After a restart, the engine can repeat a due time whose run it has started.
                return DueResult() if running.due == due else _wait_for_end(order)
            template = order.pipeline
            async with self._clone:
                return await asyncio.to_thread(self._prepare_run, template, due)

    async def _start_agent(self, order: ScheduledOrder, due: datetime) -> DueResult:
        agent = await self._find_agent(order.name)
        if agent is None:
            return DueResult("the agent is not on the fleet any more")
        run = agent.projection.run
        if run.scheduled is not None and run.scheduled.due >= due:
            # Another attempt already started this run, unless a person repeats an old due time.
            is_this = run.scheduled.due == due
            return DueResult("" if is_this else "a later run was started before")
        if run.desired == "stopped":
            return DueResult(f"you stopped the agent; `rekindle run {order.name}` starts it again")
        if run.desired == "running" and not run.is_over:
            return _wait_for_end(order)
        entry = manifest.parse(agent.definition.manifest).agents[order.name]
        cycles, now = find_cycle_limit(entry), clock.read_clock()
        desired = run_moves.make_desired_event(
            run, "running", now, cycles, unbounded=False, due=due
        )
        await self._agents.say(order.name, desired)
        return DueResult()

    def _prepare_run(self, template: RegisteredPipeline, due: datetime) -> DueResult:
        """Reserve the number of a run, and push its first commit."""
        definition, url = template.definition, template.agent.remote
        check_remote(url, self._root, self._floor)
        branch = find_base_branch(definition.definition.base)
        try:
            base = find_branch_commit(url, branch)
        except WorkspaceError as error:
            if error.cause == "missing":
                return DueResult(str(error))
            raise
        clone = open_clone(self._root, url)
        if not clone.has(base):
            RemoteRepository(url, "").fetch(clone, f"refs/heads/{branch}" if branch else "HEAD")
        number = reserve_number(clone, url, definition.pipeline, base)
        return DueResult(run=begin_run(template, base, number, clock.read_clock(), due))

    @activity.defn
    async def report_outcomes(
        self, workflow: str, order: ScheduledOrder, outcomes: Sequence[ScheduleOutcome]
    ) -> None:
        """Notify the operator about runs that were not started."""
        del workflow
        async with send_heartbeats(), translate_errors():
            if order.pipeline is not None:
                definition = order.pipeline.agent
            elif agent := await self._find_agent(order.name):
                definition = agent.definition
            else:
                return
            if definition.notifies:
                await asyncio.to_thread(self._notify, order, definition, outcomes)

    def _notify(
        self,
        order: ScheduledOrder,
        definition: AgentDefinition,
        outcomes: Sequence[ScheduleOutcome],
    ) -> None:
        parsed = manifest.parse(definition.manifest)
        notifier = make_host_notifier(parsed.notify, Redaction(tuple(parsed.redact.allow)))
        zone = order.make_rules().times.zone
        for outcome in outcomes:
            words = f"{render_outcome(outcome, zone)}\n→ rekindle schedules"
            kind: NotificationKind = "run skipped" if outcome.kind == "skipped" else "runs missed"
            where = {"project": definition.project, "host": self._host}
            notice = make_notice(order.name, kind, words, **where)
            for failure in notifier.send(notice.title, notice.body, notice.severity):
                activity.logger.warning("the notification could not be sent: %s", failure)

    async def _find_agent(self, agent: str) -> RegisteredAgent | None:
        try:
            return await self._agents.kept(agent)
        except NotOnFleetError:
            return None


def _wait_for_end(order: ScheduledOrder) -> DueResult:
    if order.make_rules().overlap == "queue":
        raise ApplicationError(STILL_RUNNING)
    return DueResult(STILL_RUNNING)
