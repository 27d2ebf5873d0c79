"""A schedule's record lists what became of its due times."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.policy.schedules.schedule_record import (
    PendingRun,
    ScheduleOutcome,
    ScheduleRecord,
    select_news,
)
from rekindle.thresholds.schedule_limits import SCHEDULE_HISTORY

pytestmark = pytest.mark.pure

DAY = timedelta(days=1)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
RECORD = ScheduleRecord("1d", MONDAY)


def skip(day, reason="busy", count=1):
    due = MONDAY + day * DAY
    return ScheduleOutcome("skipped", due, due, due, count, reason)


def test_runs_skipped_for_the_same_reason_are_one_entry():
    record = RECORD.add_outcomes(skip(1), skip(2, count=2), skip(3, "not accepted"))
    assert [(entry.count, entry.reason) for entry in record.history] == [
        (3, "busy"),
        (1, "not accepted"),
    ]
    assert (record.history[0].first, record.history[0].last) == (MONDAY + DAY, MONDAY + 2 * DAY)


def test_missed_runs_and_repeated_times_stay_separate():
    missed = ScheduleOutcome("missed", MONDAY, MONDAY, MONDAY)
    assert len(RECORD.add_outcomes(missed, missed).history) == 2
    assert len(RECORD.add_outcomes(skip(1), skip(1)).history) == 2


def test_the_oldest_entries_are_removed():
    outcomes = [skip(day, str(day)) for day in range(SCHEDULE_HISTORY + 5)]
    history = RECORD.add_outcomes(*outcomes).history
    assert [entry.reason for entry in (history[0], history[-1])] == ["5", str(SCHEDULE_HISTORY + 4)]


def test_a_confirmed_start_is_recorded_once():
    pending = ScheduleRecord("1d", MONDAY, pending=PendingRun(MONDAY))
    started = pending.confirm_start(MONDAY + DAY)
    assert started.pending is None
    assert [(entry.kind, entry.last, entry.at) for entry in started.history] == [
        ("started", MONDAY, MONDAY + DAY)
    ]
    assert started.confirm_start(MONDAY + DAY) == started


def test_only_news_are_worth_a_notification():
    record = RECORD.add_outcomes(skip(1))
    started = ScheduleOutcome("started", MONDAY, MONDAY, MONDAY)
    other = skip(4, "not accepted")
    assert select_news(record, [skip(2), started, skip(3), other]) == [skip(3), other]
    assert select_news(RECORD, [skip(1)]) == [skip(1)]
