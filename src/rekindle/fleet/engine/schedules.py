"""Schedule daily briefs on the engine."""

from datetime import time, timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleCalendarSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleRange,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from rekindle.fleet.agent.brief_workflow import BriefWorkflow
from rekindle.fleet.agent.host_orders import DECISION_QUEUE
from rekindle.policy.briefs.brief_schedule import NEVER
from rekindle.policy.settings.runtime_settings import (
    FLEET_BRIEF_SPREAD_SECONDS,
    FLEET_RPC_SECONDS,
    BriefSettings,
)
from rekindle.thresholds.fleet_limits import FLEET_BRIEF_CATCH_UP_DAYS

SCHEDULE_ZONE = "UTC"
"""Default time zone, because the engine has no time zone."""
_CATCH_UP = timedelta(days=FLEET_BRIEF_CATCH_UP_DAYS)
_MOST = timedelta(seconds=FLEET_RPC_SECONDS)


def make_schedule_name(client: Client, agent: str) -> str:
    return f"brief/{client.namespace}/{agent}"


async def update_schedule(client: Client, agent: str, workflow: str, brief: BriefSettings) -> None:
    """Create, change or delete the schedule for an agent's brief to match the settings."""
    if brief.at == NEVER:
        await drop_schedule(client, agent)
        return
    schedule = _make_schedule(make_schedule_name(client, agent), workflow, brief)
    try:
        await client.create_schedule(make_schedule_name(client, agent), schedule, rpc_timeout=_MOST)
    except ScheduleAlreadyRunningError:
        await client.get_schedule_handle(make_schedule_name(client, agent)).update(
            lambda current: _make_update(current, schedule), rpc_timeout=_MOST
        )


async def drop_schedule(client: Client, agent: str) -> None:
    try:
        await client.get_schedule_handle(make_schedule_name(client, agent)).delete(
            rpc_timeout=_MOST
        )
    except RPCError as failed:
        if failed.status != RPCStatusCode.NOT_FOUND:
            raise


def _make_update(current: ScheduleUpdateInput, schedule: Schedule) -> ScheduleUpdate | None:
    """Return the update, or None if nothing changed. The engine would store every update."""
    return None if current.description.schedule.spec == schedule.spec else ScheduleUpdate(schedule)


def _make_schedule(name: str, workflow: str, brief: BriefSettings) -> Schedule:
    at = time.fromisoformat(brief.at)
    moment = ScheduleCalendarSpec(hour=[ScheduleRange(at.hour)], minute=[ScheduleRange(at.minute)])
    return Schedule(
        action=ScheduleActionStartWorkflow(
            BriefWorkflow.run, workflow, id=name, task_queue=DECISION_QUEUE
        ),
        spec=ScheduleSpec(
            calendars=[moment],
            time_zone_name=brief.zone or SCHEDULE_ZONE,
            jitter=timedelta(seconds=FLEET_BRIEF_SPREAD_SECONDS),
        ),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=_CATCH_UP),
    )
