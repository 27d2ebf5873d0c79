"""Cron expressions in every notation that cron accepts, and messages for those that it does not."""

from datetime import date, timedelta

import pytest

from rekindle.policy.schedules.cron_expression import CronError, parse_cron

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "minutes", "hours"),
    [
        ("0 6 * * *", [0], [6]),
        ("*/20 * * * *", [0, 20, 40], list(range(24))),
        ("5,10-12 8-18/5 * * *", [5, 10, 11, 12], [8, 13, 18]),
        ("59 23 * * *", [59], [23]),
        ("10-30/10,0 0 * * *", [0, 10, 20, 30], [0]),
        ("@hourly", [0], list(range(24))),
        ("@daily", [0], [0]),
        ("  @Midnight ", [0], [0]),
        ("00 06 * * *", [0], [6]),
    ],
)
def test_times_of_day(text, minutes, hours):
    parsed = parse_cron(text)
    assert list(parsed.minutes) == minutes
    assert list(parsed.hours) == hours
    assert parsed.list_times()[0] == (hours[0], minutes[0])


@pytest.mark.parametrize(
    ("text", "days"),
    [
        # November 2026 begins on a Sunday.
        ("0 0 * * *", range(1, 31)),
        ("0 0 1,15 * *", [1, 15]),
        ("0 0 * * 1-5", [day for day in range(1, 31) if day % 7 not in {0, 1}]),
        ("0 0 * * mon-FRI", [day for day in range(1, 31) if day % 7 not in {0, 1}]),
        ("0 0 * * 0", [1, 8, 15, 22, 29]),
        ("0 0 * * 7", [1, 8, 15, 22, 29]),
        ("0 0 * * sat-sun", [1, 7, 8, 14, 15, 21, 22, 28, 29]),
        ("0 0 * * fri-7", [1, 6, 7, 8, 13, 14, 15, 20, 21, 22, 27, 28, 29]),
        # Both days are restricted, so one of them is enough.
        ("0 0 13 * 5", [6, 13, 20, 27]),
        ("0 0 14 * fri", [6, 13, 14, 20, 27]),
        # A field that begins with * does not restrict the day, so both must match.
        ("0 0 */2 * 1", [9, 23]),
        ("0 0 * dec *", []),
        ("0 0 31 * *", []),
        ("0 0 * nov,12 tue", [3, 10, 17, 24]),
        ("@weekly", [1, 8, 15, 22, 29]),
        ("@monthly", [1]),
        ("@yearly", []),
    ],
)
def test_days_of_a_month(text, days):
    month = [date(2026, 11, day) for day in range(1, 31)]
    assert [day.day for day in month if parse_cron(text).matches_day(day)] == list(days)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "0 fields", "five fields"),
        ("0 6 * *", "4 fields", "five fields"),
        ("0 0 6 * * *", "6 fields", "five fields"),
        ("60 6 * * *", "'60' is not a valid minute", "from 0 to 59"),
        ("0 24 * * *", "'24' is not a valid hour", "from 0 to 23"),
        ("0 0 0 * *", "'0' is not a valid day of the month", "from 1 to 31"),
        ("0 0 1 13 *", "'13' is not a valid month", "or names such as feb"),
        ("0 0 * * 8", "'8' is not a valid day of the week", "or names such as mon"),
        ("0 0 * * monday", "'monday' is not a valid day of the week", "mon"),
        ("0 0 * * 5L", "'5L' is not a valid day of the week", "numbers"),
        ("0 0 ? * *", "is not a valid day of the month", "numbers"),
        ("1,,2 0 * * *", "'' in '1,,2' is not a valid minute", "a list is"),
        ("*/0 * * * *", "is not a valid minute", "every second value"),
        ("-5 * * * *", "is not a valid minute", "numbers"),
        ("5/10 * * * *", "has a step without a range", "5-59/10"),
        ("0 0 * * tue/1", "has a step without a range", "2-7/1"),
        ("30-10 * * * *", "ends before it begins", "30-59,0-10"),
        ("0 0 * * fri-mon", "ends before it begins", "5-7,0-1"),
        ("0 0 31 2 *", "there is no day 31", "correct the day"),
        ("0 0 30 feb *", "there is no day 30", "correct the day"),
        ("0 0 31 4,6,9,11 *", "there is no day 31", "correct the day"),
        ("@reboot", "is not a schedule", "@daily"),
        ("٣ 6 * * *", "is not a valid minute", "numbers"),
    ],
)
def test_a_mistake_is_explained(text, message, hint):
    with pytest.raises(CronError, match=message.replace("?", r"\?")) as caught:
        parse_cron(text)
    assert hint in caught.value.hint


@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2 mon", "0 0 31 2,3 *"])
def test_a_rare_date_is_allowed(text):
    """29 February exists, and with a day of the week, the day of the month need not."""
    assert parse_cron(text).minutes == (0,)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("*/15 * * * *", 15), ("0 6 * * *", 1440), ("0 6,8 * * *", 120), ("0,50 * * * *", 10)],
)
def test_the_shortest_gap(text, minutes):
    assert parse_cron(text).shortest_gap == timedelta(minutes=minutes)
