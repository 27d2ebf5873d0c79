"""A schedule on a fleet: what its engine starts, and what became of each due time.

The engine's schedule starts one short workflow for each due time. The result of that workflow is
the schedule's record, which the engine gives to the next one.
"""

from datetime import datetime, timedelta, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo

import msgspec

from rekindle.documents.manifest_schedules import Schedule
from rekindle.policy.fleet.registered_pipeline import RegisteredPipeline
from rekindle.policy.schedules.decide_run import RunRules
from rekindle.policy.schedules.due_times import DueRange
from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord
from rekindle.policy.schedules.schedule_rules import (
    decode_schedule,
    encode_schedule,
    expand_schedule,
    make_rules,
)
from rekindle.thresholds.schedule_limits import (
    SCHEDULE_CLOCK_CHANGE_SECONDS,
    SCHEDULE_GRACE_SECONDS,
)

NO_HOST = "the engine was down, no host was running, or an earlier run was still waiting to start"
FLEET_ZONE = "UTC"
"""Default time zone, because a fleet has none."""
_CHANGE = timedelta(seconds=SCHEDULE_CLOCK_CHANGE_SECONDS)
_GRACE = timedelta(seconds=SCHEDULE_GRACE_SECONDS)


class ScheduledOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What a schedule starts."""

    kind: Literal["agents", "pipelines"]
    name: str
    schedule: str
    """The `every:` as JSON, with its time zone."""
    heartbeat_seconds: float
    pool: str = ""
    """Pool whose hosts start the run. Empty in orders of older versions."""
    pipeline: RegisteredPipeline | None = None
    """Run to start, without its number and its first commit; None for an agent."""

    def make_rules(self) -> RunRules:
        return make_rules(self.name, decode_schedule(msgspec.json.decode(self.schedule)), ZoneInfo)


class DueResult(msgspec.Struct, frozen=True):
    """What a host did for a due time."""

    refusal: str = ""
    """Why no run may start, or empty."""
    run: RegisteredPipeline | None = None
    """Run of a pipeline that the engine has to start."""


def render_fleet_schedule(every: Schedule | str) -> str:
    """Return a schedule as JSON, with the time zone that it has on a fleet."""
    schedule = expand_schedule(every)
    if schedule.cron is not None and not schedule.zone:
        schedule = msgspec.structs.replace(schedule, zone=FLEET_ZONE)
    return encode_schedule(schedule)


def find_missed(
    before: ScheduleRecord | None, order: ScheduledOrder, due: datetime, now: datetime
) -> list[ScheduleOutcome]:
    """Return the due times that the engine passed over since the last one, as one outcome."""
    if before is None or before.schedule != order.schedule:
        return []
    times = order.make_rules().times
    missed = times.find_range(before.handled, due)
    if missed is None or _is_clock_change(missed, times.zone):
        return []
    return [ScheduleOutcome("missed", missed.first, missed.last, now, missed.count, NO_HOST)]


def _is_clock_change(due: DueRange, zone: tzinfo) -> bool:
    """Return whether due times are at a clock change, for which the engine has its own rules."""
    before, after = (due.first - _CHANGE).astimezone(zone), (due.last + _CHANGE).astimezone(zone)
    return due.last - due.first <= _CHANGE and before.utcoffset() != after.utcoffset()


def continue_record(
    before: ScheduleRecord | None, order: ScheduledOrder, due: datetime
) -> ScheduleRecord:
    """Return the record with a due time that is handled now."""
    record = before or ScheduleRecord(order.schedule, due)
    return msgspec.structs.replace(record, schedule=order.schedule, handled=due)


def is_missed(rules: RunRules, due: datetime, now: datetime) -> bool:
    """Return whether a run is too late to start. The engine delays a start by up to the jitter."""
    return rules.missed == "skip" and now - due > rules.times.jitter + _GRACE


def make_outcome(refusal: str, due: datetime, now: datetime) -> ScheduleOutcome:
    """Return what happened at a due time that was not missed."""
    return ScheduleOutcome("skipped" if refusal else "started", due, due, now, reason=refusal)
