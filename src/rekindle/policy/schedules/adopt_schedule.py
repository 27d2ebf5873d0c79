"""Create a schedule's record, or continue it after the schedule changed."""

from datetime import datetime

import msgspec

from rekindle.policy.schedules.decide_run import NOT_WATCHED
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord


def adopt_schedule(
    before: ScheduleRecord | None,
    schedule: str,
    since: datetime,
    now: datetime,
    old: DueTimes | None = None,
) -> tuple[ScheduleRecord, list[ScheduleOutcome]]:
    """Return the record for a schedule that the operator accepted at `since`.

    Due times before `since` do not count. If the schedule replaces another one, the other one's
    unhandled due times before `since` are recorded as missed. `old` contains all its due times, if
    they are known.
    """
    since = min(since, now)
    if before is None:
        return ScheduleRecord(schedule, since), []
    if before.schedule == schedule:
        return before, []
    missed = old.find_range(before.handled, since, before.ahead) if old else None
    # Without these due times, the new schedule could repeat a run after the clock was set back.
    handled = {outcome.last for outcome in before.history if outcome.kind in {"started", "skipped"}}
    start = min(max(before.handled, since), now)
    record = msgspec.structs.replace(
        before,
        schedule=schedule,
        handled=start,
        jump=None,
        ahead=tuple(sorted(due for due in {*handled, *before.ahead} if due > start)),
    )
    if missed is None:
        return record, []
    outcome = ScheduleOutcome(
        "missed", missed.first, missed.last, now, missed.count, reason=NOT_WATCHED
    )
    return record, [outcome]
