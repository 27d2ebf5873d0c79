"""Create, change, read and remove the schedules of agents and pipelines in the engine."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta

import msgspec
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionExecution,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleDescription,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
    WorkflowExecutionStatus,
)
from temporalio.converter import WorkflowSerializationContext
from temporalio.service import RPCError, RPCStatusCode

from rekindle.documents.manifest_schedules import Schedule as EverySchedule
from rekindle.errors import EngineError
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.fleet.schedules.scheduled_workflow import ScheduledRunWorkflow
from rekindle.policy.fleet.scheduled_run import ScheduledOrder, render_fleet_schedule
from rekindle.policy.schedules.cron_expression import CronExpression
from rekindle.policy.schedules.decide_run import RunRules
from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS, FleetSettings
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS

_MOST = timedelta(seconds=FLEET_RPC_SECONDS)
_CATCH_UP = SchedulePolicy().catchup_window
_GRACE = timedelta(seconds=SCHEDULE_GRACE_SECONDS)
_ALL_DAYS, _ALL_WEEKDAYS = frozenset(range(1, 32)), frozenset(range(7))


class EngineSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule in the engine."""

    schedule: str
    """Value of `every:` as JSON."""
    next: datetime | None
    is_waiting: bool
    """Whether a run is waiting for the previous run or for a host."""
    is_paused: bool
    """Whether a person has paused the schedule in the engine."""
    history: tuple[ScheduleOutcome, ...]


def make_schedule_id(client: Client, kind: str, name: str) -> str:
    return f"run/{client.namespace}/{kind}/{name}"


async def keep_schedule(client: Client, order: ScheduledOrder) -> None:
    """Create or replace the schedule of an agent or a pipeline."""
    schedule_id = make_schedule_id(client, order.kind, order.name)
    schedule = _make_schedule(schedule_id, order)
    try:
        try:
            await client.create_schedule(schedule_id, schedule, rpc_timeout=_MOST)
        except ScheduleAlreadyRunningError:
            await client.get_schedule_handle(schedule_id).update(
                lambda current: _make_update(current, schedule), rpc_timeout=_MOST
            )
    except RPCError as failed:
        if failed.status != RPCStatusCode.INVALID_ARGUMENT:
            raise
        raise EngineError(
            "refused",
            f"the engine refused the schedule of {order.name}: {failed.message}",
            hint="correct `every:` in rekindle.yaml, then repeat the command",
        ) from failed


async def update_agent_schedule(
    client: Client, agent: str, every: EverySchedule | str | None, fleet: FleetSettings
) -> None:
    """Create, change or remove the schedule of an agent to match its `every:`."""
    if every is None:
        await drop_schedule(client, "agents", agent)
        return
    order = ScheduledOrder(
        kind="agents",
        name=agent,
        schedule=render_fleet_schedule(every),
        heartbeat_seconds=float(fleet.heartbeat_timeout),
        pool=fleet.pool,
    )
    await keep_schedule(client, order)


async def drop_schedule(client: Client, kind: str, name: str) -> None:
    """Remove a schedule, and any run that is waiting to start."""
    described = await _describe(client, kind, name)
    if described is None:
        return
    with _ignore_missing():
        await client.get_schedule_handle(described.id).delete(rpc_timeout=_MOST)
    for workflow in _list_workflows(described.info.running_actions):
        with _ignore_missing():
            waiting = client.get_workflow_handle(workflow)
            await waiting.terminate("its schedule was removed", rpc_timeout=_MOST)


async def read_schedule(client: Client, kind: str, name: str) -> EngineSchedule | None:
    """Return a schedule, or None if it is not in the engine."""
    described = await _describe(client, kind, name)
    if described is None:
        return None
    action, info = described.schedule.action, described.info
    assert isinstance(action, ScheduleActionStartWorkflow)  # noqa: S101 - there is no other kind
    context = WorkflowSerializationContext(client.namespace, action.id)
    converter = client.data_converter.with_context(context)
    [order] = await converter.decode(action.args, [ScheduledOrder])
    recent = _list_workflows([result.action for result in info.recent_actions])
    return EngineSchedule(
        schedule=order.schedule,
        next=info.next_action_times[0] if info.next_action_times else None,
        is_waiting=bool(info.running_actions),
        is_paused=described.schedule.state.paused,
        history=await _read_history(client, recent),
    )


async def _describe(client: Client, kind: str, name: str) -> ScheduleDescription | None:
    handle = client.get_schedule_handle(make_schedule_id(client, kind, name))
    with _ignore_missing():
        return await handle.describe(rpc_timeout=_MOST)
    return None


async def _read_history(client: Client, recent: Sequence[str]) -> tuple[ScheduleOutcome, ...]:
    """Return the outcomes at the last due times, if the engine still has their workflows."""
    for workflow in reversed(recent):
        handle = client.get_workflow_handle(workflow, result_type=ScheduleRecord)
        with _ignore_missing():
            described = await handle.describe(rpc_timeout=_MOST)
            if described.status == WorkflowExecutionStatus.COMPLETED:
                record: ScheduleRecord = await handle.result()
                return record.history
    return ()


def _list_workflows(actions: Iterable[ScheduleActionExecution]) -> list[str]:
    return [
        action.workflow_id
        for action in actions
        if isinstance(action, ScheduleActionExecutionStartWorkflow)
    ]


@contextmanager
def _ignore_missing() -> Iterator[None]:
    """Ignore errors about a missing schedule or workflow."""
    try:
        yield
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:
            raise


def _make_update(current: ScheduleUpdateInput, schedule: Schedule) -> ScheduleUpdate:
    """Return the update. If a person has paused the schedule in the engine, it stays paused."""
    schedule.state.paused = current.description.schedule.state.paused
    return ScheduleUpdate(schedule)


def _make_schedule(schedule_id: str, order: ScheduledOrder) -> Schedule:
    rules = order.make_rules()
    return Schedule(
        action=ScheduleActionStartWorkflow(
            ScheduledRunWorkflow.run, order, id=schedule_id, task_queue=DECISION_QUEUE
        ),
        spec=_make_spec(rules),
        # The workflow is short. If a run is still in progress, the workflow decides what to do.
        policy=SchedulePolicy(
            overlap=ScheduleOverlapPolicy.SKIP,
            catchup_window=_CATCH_UP if rules.missed == "run" else _GRACE,
        ),
    )


def _make_spec(rules: RunRules) -> ScheduleSpec:
    times = rules.times
    jitter = times.jitter or None
    if times.cron is None:
        return ScheduleSpec(intervals=[ScheduleIntervalSpec(times.interval)], jitter=jitter)
    return ScheduleSpec(
        calendars=_make_calendars(times.cron), time_zone_name=str(times.zone), jitter=jitter
    )


def _make_calendars(cron: CronExpression) -> list[ScheduleCalendarSpec]:
    """Return calendars for a cron expression. A time must match all fields of one calendar."""
    if cron.needs_both:
        return [_make_calendar(cron, cron.days, cron.weekdays)]
    return [
        _make_calendar(cron, cron.days, _ALL_WEEKDAYS),
        _make_calendar(cron, _ALL_DAYS, cron.weekdays),
    ]


def _make_calendar(
    cron: CronExpression, days: Collection[int], weekdays: Collection[int]
) -> ScheduleCalendarSpec:
    return ScheduleCalendarSpec(
        minute=_list_ranges(cron.minutes),
        hour=_list_ranges(cron.hours),
        day_of_month=_list_ranges(days),
        month=_list_ranges(cron.months),
        day_of_week=_list_ranges(weekdays),
    )


def _list_ranges(values: Collection[int]) -> list[ScheduleRange]:
    return [ScheduleRange(value) for value in sorted(values)]
