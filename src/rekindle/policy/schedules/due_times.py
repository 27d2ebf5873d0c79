"""Find the times at which a schedule is due.

A cron expression refers to local time in its time zone. A time that a clock change skips is due
once, right after the gap. A time that occurs twice is due once, at its first occurrence, unless the
expression matches every hour. An interval is counted from 1970, so it never drifts.
"""

import hashlib
from bisect import bisect_right
from collections.abc import Collection, Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache

import msgspec

from rekindle.policy.schedules.cron_expression import CronExpression
from rekindle.thresholds.schedule_limits import SCHEDULE_COUNTED, SCHEDULE_DAYS

_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_NOTHING = timedelta(0)


class DueRange(msgspec.Struct, frozen=True):
    first: datetime
    last: datetime
    count: int
    """Number of due times, up to a maximum."""


class DueTimes(msgspec.Struct, frozen=True):
    """Due times of a cron expression in a time zone, or of an interval."""

    name: str
    """Name of the agent or pipeline, from which delays within `jitter` are derived."""
    zone: tzinfo = UTC
    cron: CronExpression | None = None
    interval: timedelta = _DAY
    jitter: timedelta = _NOTHING

    def find_next(self, after: datetime) -> datetime:
        """Return the first due time after the given time."""
        if self.cron is None:
            return _EPOCH + ((after - _EPOCH) // self.interval + 1) * self.interval
        # The times of neighbouring days may interleave, because a clock change can move the clock
        # back across midnight.
        start = after.astimezone(self.zone).date() - 2 * _DAY
        for number in range(SCHEDULE_DAYS):
            times = self._list_day(start + number * _DAY)
            if times and times[-1] > after:
                days = [self._list_day(start + (number + more) * _DAY) for more in range(3)]
                return min(day[bisect_right(day, after)] for day in days if day and day[-1] > after)
        raise AssertionError("a valid cron expression matches within a few years")

    def find_latest(self, at: datetime) -> datetime:
        """Return the last due time at or before the given time."""
        if self.cron is None:
            return _EPOCH + (at - _EPOCH) // self.interval * self.interval
        start = at.astimezone(self.zone).date() + 2 * _DAY
        for number in range(SCHEDULE_DAYS):
            times = self._list_day(start - number * _DAY)
            if times and times[0] <= at:
                days = [self._list_day(start - (number + more) * _DAY) for more in range(3)]
                return max(day[bisect_right(day, at) - 1] for day in days if day and day[0] <= at)
        raise AssertionError("a valid cron expression matches within a few years")

    def find_start(self, due: datetime) -> datetime:
        """Return when to start the run for a due time, which is always before the next due time."""
        if not self.jitter:
            return due
        longest = min(self.jitter, self.find_next(due) - due) // _SECOND
        digest = hashlib.sha256(f"{self.name} {due.timestamp():.0f}".encode()).digest()
        return due + _SECOND * (int.from_bytes(digest[:8]) % longest) if longest else due

    def find_range(
        self, after: datetime, before: datetime, without: Collection[datetime] = ()
    ) -> DueRange | None:
        """Return the range of due times between two times (exclusive), except those in `without`.

        They are counted only up to a maximum.
        """
        first = last = None
        count, due = 0, self.find_next(after)
        while due < before and count < SCHEDULE_COUNTED:
            if due not in without:
                first, last, count = first or due, due, count + 1
            due = self.find_next(due)
        if due < before:
            last = self.find_latest(before - _TICK)
        return DueRange(first, last, count) if first and last else None

    def _list_day(self, day: date) -> tuple[datetime, ...]:
        cron = self.cron
        return _list_instants(cron, self.zone, day) if cron and cron.matches_day(day) else ()


@lru_cache(maxsize=1_000)
def _list_instants(cron: CronExpression, zone: tzinfo, day: date) -> tuple[datetime, ...]:
    """Return the times in UTC at which an expression matches on a day that it includes."""
    instants = set[datetime]()
    for hour, minute in cron.list_times():
        wall = datetime(day.year, day.month, day.day, hour, minute)  # noqa: DTZ001 - a wall time
        first, *second = _resolve_wall_time(wall, zone)
        instants.update([first, *second] if cron.is_hourly else [first])
    return tuple(sorted(instants))


def _resolve_wall_time(wall: datetime, zone: tzinfo) -> Iterator[datetime]:
    """Yield the times in UTC at which clocks show a time, or the end of the gap that skips it."""
    early = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
    late = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if early > late:
        # For a time in a gap, both values are guesses, with the clock change between them.
        yield _find_change(late, early, zone)
        return
    yield early
    if late > early:
        yield late


def _find_change(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """Return the first second after a clock change that lies between two times."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2 // _SECOND * _SECOND
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
