"""Describe the outcomes of a schedule's runs, for reports, notifications and `status`."""

from datetime import datetime, tzinfo

from rekindle.formats.counts import render_count
from rekindle.policy.schedules.schedule_record import ScheduleOutcome
from rekindle.thresholds.schedule_limits import SCHEDULE_COUNTED


def render_outcome(outcome: ScheduleOutcome, zone: tzinfo) -> str:
    """Return an outcome as one line."""
    first, last = render_time(outcome.first, zone), render_time(outcome.last, zone)
    if outcome.kind == "started":
        return f"the run for {last} was started"
    least = "at least " if outcome.count >= SCHEDULE_COUNTED else ""
    runs = (
        f"the run for {last} was"
        if outcome.count == 1
        else f"{least}{render_count(outcome.count, 'run')} from {first} to {last} were"
    )
    kind = "missed" if outcome.kind in {"missed", "restored"} else "skipped"
    return f"{runs} {kind}: {outcome.reason}"


def render_time(at: datetime, zone: tzinfo) -> str:
    """Return a time with its day of the week, in a time zone."""
    return f"{at.astimezone(zone):%a %Y-%m-%d %H:%M %Z}".rstrip()
