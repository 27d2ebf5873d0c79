"""A schedule's record begins when the operator accepts the schedule."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.policy.schedules.adopt_schedule import adopt_schedule
from rekindle.policy.schedules.decide_run import RunRules
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord

pytestmark = pytest.mark.pure

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
RULES = RunRules(DueTimes("trades", interval=DAY))
RECORD = ScheduleRecord("1d", MONDAY)
change = msgspec.structs.replace


def test_a_schedule_begins_when_it_is_accepted():
    """Runs between the acceptance and the daemon's first check are not lost."""
    record, outcomes = adopt_schedule(None, "1d", MONDAY, MONDAY + 60 * DAY)
    assert (record.handled, outcomes) == (MONDAY, [])
    future, _ = adopt_schedule(None, "1d", MONDAY + DAY, MONDAY)
    assert future.handled == MONDAY


def test_a_changed_schedule_does_not_lose_or_repeat_runs():
    now = MONDAY + 5 * DAY
    unchanged, outcomes = adopt_schedule(RECORD, "1d", now, now)
    assert (unchanged, outcomes) == (RECORD, [])
    changed, outcomes = adopt_schedule(RECORD, "2d", MONDAY + 2 * DAY + MINUTE, now, RULES.times)
    assert [(outcome.kind, outcome.count) for outcome in outcomes] == [("missed", 2)]
    assert changed.handled == MONDAY + 2 * DAY + MINUTE
    started = ScheduleOutcome("started", MONDAY + DAY, MONDAY + DAY, MONDAY + DAY)
    ran = change(RECORD, handled=MONDAY + DAY, history=(started,))
    back, _ = adopt_schedule(ran, "2d", MONDAY, MONDAY + MINUTE, RULES.times)
    assert (back.handled, back.ahead) == (MONDAY + MINUTE, (MONDAY + DAY,))
