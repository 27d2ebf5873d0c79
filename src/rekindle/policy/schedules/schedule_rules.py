"""Convert `every:` to the rules of a schedule, or explain what is wrong with it."""

import re
from collections.abc import Callable
from datetime import UTC, timedelta, tzinfo

import msgspec

from rekindle.documents.manifest_schedules import Schedule
from rekindle.formats.validation import DURATION_PATTERN, Duration, parse_duration
from rekindle.policy.schedules.cron_expression import CronError, CronExpression, parse_cron
from rekindle.policy.schedules.decide_run import RunRules
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.thresholds.schedule_limits import SCHEDULE_JITTER_SECONDS, SCHEDULE_LEAST_SECONDS

_DURATION = re.compile(DURATION_PATTERN, re.ASCII)
_EXAMPLES = 'write a cron expression such as "0 6 * * 1-5", or an interval such as 6h'


class ScheduleError(ValueError):
    """A schedule that cannot be used."""

    def __init__(self, key: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.key, self.hint = key, hint


def expand_schedule(every: Schedule | str) -> Schedule:
    """Return the long form of a schedule."""
    if isinstance(every, Schedule):
        return every
    is_interval = _DURATION.match(every.strip())
    return Schedule(interval=every.strip()) if is_interval else Schedule(cron=every)


def render_schedule(every: Schedule | str) -> str:
    """Render a schedule on one line, such as `0 6 * * 1-5 (Europe/Zurich)`."""
    schedule = expand_schedule(every)
    zone = f" ({schedule.zone})" if schedule.zone else ""
    return f"{schedule.cron or schedule.interval}{zone}"


def decode_schedule(value: object) -> Schedule | str:
    """Decode an accepted `every:`, which is stored as plain data."""
    return msgspec.convert(value, Schedule | str)


def encode_schedule(every: Schedule | str) -> str:
    """Encode a schedule as JSON. Schedules with the same text have the same due times."""
    return msgspec.json.encode(expand_schedule(every)).decode()


def make_rules(name: str, every: Schedule | str, find_zone: Callable[[str], tzinfo]) -> RunRules:
    """Return the rules of a schedule.

    Raises:
        ScheduleError: A value is not valid.
    """
    schedule = expand_schedule(every)
    if (schedule.cron is None) == (schedule.interval is None):
        message = "has both `cron` and `interval`" if schedule.cron else "has no time"
        raise ScheduleError("", message, _EXAMPLES)
    jitter = _parse_seconds("jitter", schedule.jitter or "0s")
    cron = _parse_cron(schedule.cron) if schedule.cron is not None else None
    if cron is not None:
        interval, gap = timedelta(days=1), cron.shortest_gap
    else:
        interval = gap = _parse_interval(schedule)
    if jitter >= gap or jitter > timedelta(seconds=SCHEDULE_JITTER_SECONDS):
        shortest = Duration(min(gap.total_seconds(), SCHEDULE_JITTER_SECONDS))
        raise ScheduleError(
            "jitter",
            f"the jitter {schedule.jitter} is too long: runs may be only {shortest} apart",
            f"use less than {shortest}",
        )
    try:
        zone = find_zone(schedule.zone or "") if cron is not None else UTC
    except LookupError as error:
        raise ScheduleError(
            "zone",
            f"there is no time zone {schedule.zone!r}",
            "use a name such as Europe/Zurich, or leave `zone` out for this machine's",
        ) from error
    return RunRules(
        DueTimes(name, zone, cron, interval, jitter),
        missed=schedule.missed or "run",
        overlap=schedule.overlap or "skip",
    )


def _parse_cron(text: str) -> CronExpression:
    try:
        return parse_cron(text)
    except CronError as error:
        # A single word was probably meant as an interval.
        hint = _EXAMPLES if len(text.split()) == 1 and not text.startswith("@") else error.hint
        raise ScheduleError("cron", str(error), hint) from error


def _parse_interval(schedule: Schedule) -> timedelta:
    interval = _parse_seconds("interval", schedule.interval or "")
    if schedule.zone:
        raise ScheduleError(
            "zone",
            "an interval has no time zone",
            'leave `zone` out, or use `cron` for a time of day, such as "0 6 * * *"',
        )
    if interval < timedelta(seconds=SCHEDULE_LEAST_SECONDS):
        raise ScheduleError(
            "interval",
            f"the interval {schedule.interval} is too short",
            f"use at least {Duration(SCHEDULE_LEAST_SECONDS)}",
        )
    return interval


def _parse_seconds(key: str, text: str) -> timedelta:
    try:
        return timedelta(seconds=parse_duration(text.strip()))
    except (ValueError, OverflowError) as error:
        raise ScheduleError(
            key, f"{text!r} is not a usable duration", "use a duration such as 10m or 6h"
        ) from error
