"""A schedule on a fleet records each due time once, with those that the engine passed over."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.manifest_schedules import Schedule
from rekindle.policy.fleet import scheduled_run
from rekindle.policy.fleet.scheduled_run import ScheduledOrder, render_fleet_schedule
from rekindle.policy.schedules.schedule_record import ScheduleOutcome, ScheduleRecord
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOW = NOON + timedelta(seconds=2)


def make_order(every: Schedule | str = "1h") -> ScheduledOrder:
    schedule = render_fleet_schedule(every)
    return ScheduledOrder(kind="agents", name="trades", schedule=schedule, heartbeat_seconds=5)


def handled(order: ScheduledOrder, due: datetime) -> ScheduleRecord:
    return ScheduleRecord(order.schedule, due)


@pytest.mark.parametrize(
    ("every", "zone"),
    [
        ("0 6 * * *", "UTC"),
        (Schedule(cron="0 6 * * *", zone="Europe/Zurich"), "Europe/Zurich"),
        ("6h", None),
    ],
)
def test_a_cron_expression_without_a_zone_is_in_utc(every, zone):
    assert msgspec.json.decode(render_fleet_schedule(every))["zone"] == zone


def test_due_times_that_were_passed_over_are_missed():
    order = make_order()
    [missed] = scheduled_run.find_missed(handled(order, NOON - 4 * HOUR), order, NOON, NOW)
    assert missed == ScheduleOutcome(
        "missed", NOON - 3 * HOUR, NOON - HOUR, NOW, 3, scheduled_run.NO_HOST
    )
    assert not scheduled_run.find_missed(handled(order, NOON - HOUR), order, NOON, NOW)


def test_a_new_schedule_has_missed_nothing():
    order = make_order()
    assert not scheduled_run.find_missed(None, order, NOON, NOW)
    before = handled(make_order("2h"), NOON - 10 * HOUR)
    assert not scheduled_run.find_missed(before, order, NOON, NOW)


@pytest.mark.parametrize(
    ("cron", "before", "due"),
    [
        # The engine passes over 2:30, which the clocks skip.
        ("30 2 * * *", "2027-03-27T01:30Z", "2027-03-29T00:30Z"),
        # The engine waits for the second 2:30.
        ("30 2 * * *", "2027-10-30T00:30Z", "2027-10-31T01:30Z"),
        ("*/15 * * * *", "2027-10-30T23:45Z", "2027-10-31T01:00Z"),
    ],
)
def test_a_clock_change_is_not_a_missed_run(cron, before, due):
    order = make_order(Schedule(cron=cron, zone="Europe/Zurich"))
    last, now_due = datetime.fromisoformat(before), datetime.fromisoformat(due)
    assert not scheduled_run.find_missed(handled(order, last), order, now_due, NOW)
    earlier = handled(order, last - timedelta(days=2))
    assert scheduled_run.find_missed(earlier, order, now_due, NOW)


def test_a_record_continues_under_a_changed_schedule():
    outcome = ScheduleOutcome("started", NOON - HOUR, NOON - HOUR, NOW)
    before = handled(make_order("2h"), NOON - HOUR).add_outcomes(outcome)
    order = make_order()
    record = scheduled_run.continue_record(before, order, NOON)
    assert (record.schedule, record.handled) == (order.schedule, NOON)
    assert record.history == (outcome,)
    assert scheduled_run.continue_record(None, order, NOON) == handled(order, NOON)


@pytest.mark.parametrize(("missed", "is_missed"), [("skip", True), ("run", False)])
def test_a_run_may_be_late_by_the_jitter_and_the_grace(missed, is_missed):
    rules = make_order(Schedule(interval="1h", jitter="5m", missed=missed)).make_rules()
    latest = NOON + timedelta(minutes=5, seconds=SCHEDULE_GRACE_SECONDS)
    assert not scheduled_run.is_missed(rules, NOON, latest)
    assert scheduled_run.is_missed(rules, NOON, latest + timedelta(seconds=1)) is is_missed


def test_a_refusal_is_the_reason_of_a_skipped_run():
    assert scheduled_run.make_outcome("", NOON, NOW).kind == "started"
    skipped = scheduled_run.make_outcome("it is stopped", NOON, NOW)
    assert (skipped.kind, skipped.reason) == ("skipped", "it is stopped")
