"""Due times around clock changes. Every expected time was checked by hand."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec
import pytest

from rekindle.policy.schedules.cron_expression import parse_cron
from rekindle.policy.schedules.due_times import DueTimes

pytestmark = pytest.mark.pure
TICK = timedelta(microseconds=1)


def list_due(cron, zone, after, count):
    """Return the next due times in the zone, and check that looking back finds each of them."""
    times = DueTimes("trades", ZoneInfo(zone), parse_cron(cron))
    at = datetime.fromisoformat(after).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    listed = []
    for _ in range(count):
        previous, at = at, times.find_next(at)
        assert at > previous
        assert times.find_latest(at) == at
        if listed:
            assert times.find_latest(at - TICK) == previous
        listed.append(at.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes"))
    return listed


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        (
            "0 6 * * 1-5",
            "Europe/Zurich",
            "2026-11-13T07:00",
            ["2026-11-16T06:00+01:00", "2026-11-17T06:00+01:00"],
        ),
        (
            "0 0 31 * *",
            "Europe/Zurich",
            "2026-09-01T00:00",
            ["2026-10-31T00:00+01:00", "2026-12-31T00:00+01:00"],
        ),
        ("0 0 29 2 *", "America/New_York", "2096-03-01T00:00", ["2104-02-29T00:00-05:00"]),
        ("@yearly", "UTC", "2026-01-01T00:00", ["2027-01-01T00:00+00:00"]),
        # The clock goes from 2:00 to 3:00: a skipped time is due at 3:00, once.
        (
            "30 2 * * *",
            "Europe/Zurich",
            "2026-03-28T12:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"],
        ),
        (
            "*/15 2 * * *",
            "Europe/Zurich",
            "2026-03-28T12:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"],
        ),
        (
            "0 2,3 * * *",
            "Europe/Zurich",
            "2026-03-28T12:00",
            ["2026-03-29T03:00+02:00", "2026-03-30T02:00+02:00"],
        ),
        (
            "0 * * * *",
            "Europe/Zurich",
            "2026-03-29T01:00",
            ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"],
        ),
        (
            "30 2 8 3 *",
            "America/New_York",
            "2026-03-07T12:00",
            ["2026-03-08T03:00-04:00", "2027-03-08T02:30-05:00"],
        ),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00",
            ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"],
        ),
        # The clock goes from 3:00 to 2:00: a repeated time is due once.
        (
            "30 2 * * *",
            "Europe/Zurich",
            "2026-10-24T12:00",
            ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"],
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00",
            ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"],
        ),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T12:00",
            ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"],
        ),
        # For every hour, both hours count.
        (
            "0 * * * *",
            "Europe/Zurich",
            "2026-10-25T01:00",
            ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"],
        ),
        (
            "0 */2 * * *",
            "Europe/Zurich",
            "2026-10-25T00:00",
            ["2026-10-25T02:00+02:00", "2026-10-25T04:00+01:00"],
        ),
        # The change is at midnight: the time goes back into the previous day.
        (
            "30 23 * * *",
            "America/St_Johns",
            "2006-10-28T12:00",
            ["2006-10-28T23:30-02:30", "2006-10-29T23:30-03:30"],
        ),
        (
            "0 0 * * *",
            "Africa/Cairo",
            "2026-04-23T12:00",
            ["2026-04-24T01:00+03:00", "2026-04-25T00:00+03:00"],
        ),
        # 30 December 2011 does not exist in Samoa.
        (
            "0 6 * * *",
            "Pacific/Apia",
            "2011-12-28T12:00",
            ["2011-12-29T06:00-10:00", "2011-12-31T00:00+14:00", "2011-12-31T06:00+14:00"],
        ),
        (
            "0 6 30 * *",
            "Pacific/Apia",
            "2011-12-01T12:00",
            ["2011-12-31T00:00+14:00", "2012-01-30T06:00+14:00"],
        ),
        # Morocco changes its clock around Ramadan.
        (
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-14T12:00",
            ["2026-02-15T02:30+01:00", "2026-02-16T02:30+00:00"],
        ),
    ],
)
def test_due_times_at_clock_changes(cron, zone, after, expected):
    assert list_due(cron, zone, after, len(expected)) == expected


def test_an_interval_does_not_drift():
    times = DueTimes("trades", interval=timedelta(hours=6))
    at = datetime(2026, 3, 29, 1, 17, 3, tzinfo=UTC)
    assert times.find_next(at) == datetime(2026, 3, 29, 6, tzinfo=UTC)
    assert times.find_latest(at) == datetime(2026, 3, 29, 0, tzinfo=UTC)
    due = datetime(2026, 3, 29, 6, tzinfo=UTC)
    assert times.find_latest(due) == due
    assert times.find_next(due) - due == timedelta(hours=6)
    uneven = DueTimes("trades", interval=timedelta(hours=7))
    assert (uneven.find_next(at) - datetime(1970, 1, 1, tzinfo=UTC)) % timedelta(
        hours=7
    ) == timedelta(0)


def test_a_delay_is_fixed_and_within_its_bounds():
    cron = parse_cron("*/10 * * * *")
    times = DueTimes("trades", UTC, cron, jitter=timedelta(minutes=5))
    due, delays = datetime(2026, 1, 1, tzinfo=UTC), []
    for _ in range(300):
        due = times.find_next(due)
        delays.append(times.find_start(due) - due)
        assert times.find_start(due) == times.find_start(due)
    assert max(delays) < timedelta(minutes=5)
    assert min(delays) >= timedelta(0)
    assert len(set(delays)) > 100
    other = DueTimes("quotes", UTC, cron, jitter=timedelta(minutes=5))
    assert other.find_start(due) != times.find_start(due)


def test_a_start_is_before_the_next_due_time_even_at_a_clock_change():
    """Times of 2:30 and 3:01 are one minute apart on the day when the clock skips 2:30."""
    cron, zone = parse_cron("30 2 * * *"), ZoneInfo("Europe/Zurich")
    late = msgspec.structs.replace(cron, hours=(2, 3), minutes=(1, 30))
    times = DueTimes("trades", zone, late, jitter=timedelta(minutes=29))
    due = datetime(2026, 3, 28, 12, tzinfo=UTC)
    for _ in range(12):
        due = times.find_next(due)
        assert due <= times.find_start(due) < times.find_next(due)


def test_a_range_is_counted_up_to_a_maximum():
    times = DueTimes("trades", UTC, parse_cron("* * * * *"))
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    few = times.find_range(begin, begin + timedelta(minutes=4), [begin + timedelta(minutes=2)])
    assert (few.first, few.last, few.count) == (
        begin + timedelta(minutes=1),
        begin + timedelta(minutes=3),
        2,
    )
    many = times.find_range(begin, begin + timedelta(days=30))
    assert many.count == 1_000
    assert many.last == begin + timedelta(days=30, minutes=-1)
    assert times.find_range(begin, begin + timedelta(minutes=1)) is None
