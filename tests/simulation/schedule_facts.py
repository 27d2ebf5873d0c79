"""Schedules of random shape, and an independent calculation of their due times.

A schedule is drawn as sets of numbers and then written in cron's notation, so the calculation needs
no parser. It tries the offsets of the zone in turn, instead of asking about folds and gaps.
"""

from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import msgspec

from rekindle.documents.manifest_schedules import Schedule

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = (
    "Europe/Zurich",
    "America/New_York",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
    "Asia/Kathmandu",
    "Asia/Gaza",
    "UTC",
)
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class Drawn(msgspec.Struct, frozen=True):
    """A schedule as sets of numbers; an interval if it has seconds."""

    every: Schedule
    seconds: int = 0
    minutes: tuple[int, ...] = (0,)
    hours: tuple[int, ...] = ()
    days: frozenset[int] = frozenset(range(1, 32))
    months: frozenset[int] = frozenset(range(1, 13))
    weekdays: frozenset[int] = frozenset(range(7))


def draw_schedule(random):
    """Draw a schedule, mostly with a few due times a day, and its rules for late runs."""
    rules = {
        "missed": random.choice([None, "run", "skip"]),
        "overlap": random.choice([None, "skip", "queue"]),
        "jitter": random.choice([None, None, "5m"]),
    }
    if random.random() < 0.25:
        seconds = random.choice([6 * 3_600, 7 * 3_600 + 60, 86_400, 604_800])
        return Drawn(Schedule(interval=f"{seconds}s", **rules), seconds)
    minutes = tuple(sorted(random.sample(range(0, 60, 6), random.choice([1, 1, 1, 2]))))
    hours = tuple(sorted(random.sample(range(24), random.choice([1, 1, 1, 2]))))
    hours_text = ",".join(map(str, hours))
    if random.random() < 0.04:
        hours, hours_text, minutes = tuple(range(24)), "*", minutes[:1]
    elif random.random() < 0.2:
        hours, hours_text = tuple(range(1, 24, 6)), "1-23/6"
    weekdays, weekdays_text = random.choice(
        [
            (frozenset(range(7)), "*"),
            (frozenset(range(7)), "*"),
            (frozenset(range(1, 6)), "mon-fri"),
            (frozenset({0, 6}), "6-7"),
            (frozenset({3}), "wed"),
        ]
    )
    days, days_text = frozenset(range(1, 32)), "*"
    if random.random() < 0.15:
        days, days_text = frozenset({1, 15, 29, 31}), "1,15,29,31"
    months, months_text = frozenset(range(1, 13)), "*"
    if random.random() < 0.2:
        months, months_text = frozenset({3, 4, 10, 11}), "mar,4,10-nov"
    cron = f"{','.join(map(str, minutes))} {hours_text} {days_text} {months_text} {weekdays_text}"
    every = Schedule(cron=cron, zone=random.choice(ZONES), **rules)
    return Drawn(every, 0, minutes, hours, days, months, weekdays)


class Oracle:
    """The due times of a schedule, calculated day by day."""

    def __init__(self, drawn):
        self.drawn, self.zone = drawn, ZoneInfo(drawn.every.zone or "UTC")
        self._known, self._from, self._to = [], None, None

    def between(self, after, until):
        """Return the due times after a time, until another."""
        if self.drawn.seconds:
            step = timedelta(seconds=self.drawn.seconds)
            first, last = ((at - EPOCH) // step for at in (after, until))
            return [EPOCH + number * step for number in range(first + 1, last + 1)]
        self._extend(after.date() - 3 * DAY, until.date() + 3 * DAY)
        return self._known[bisect_right(self._known, after) : bisect_right(self._known, until)]

    def _extend(self, first, last):
        if self._from is not None and self._from <= first and last <= self._to:
            return
        first, last = min(first, self._from or first), max(last + 60 * DAY, self._to or last)
        self._from, self._to = first, last
        days = ((last - first).days + 1) * [first]
        times = {
            due for number, day in enumerate(days) for due in self._list_day(day + number * DAY)
        }
        self._known = sorted(times)

    @cache  # noqa: B019 - the world is short-lived
    def _list_day(self, day: date):
        drawn = self.drawn
        is_day, is_weekday = day.day in drawn.days, day.isoweekday() % 7 in drawn.weekdays
        is_either = len(drawn.days) < 31 and len(drawn.weekdays) < 7
        matches = (is_day or is_weekday) if is_either else (is_day and is_weekday)
        if day.month not in drawn.months or not matches:
            return ()
        return tuple(
            due
            for hour in drawn.hours
            for minute in drawn.minutes
            for due in self._resolve(datetime(day.year, day.month, day.day, hour, minute))  # noqa: DTZ001
        )

    def _resolve(self, wall):
        """Return the instants at which clocks show a time, or the end of the gap."""
        about = wall.replace(tzinfo=UTC)
        offsets = {
            (about + hours * timedelta(hours=1)).astimezone(self.zone).utcoffset()
            for hours in (-40, 0, 40)
        }
        shown = sorted(
            about - offset
            for offset in offsets
            if (about - offset).astimezone(self.zone).replace(tzinfo=None) == wall
        )
        if shown:
            return shown if len(self.drawn.hours) == 24 else shown[:1]
        at = about - max(offsets)
        while at.astimezone(self.zone).replace(tzinfo=None) < wall:
            at += MINUTE
        return [at]
