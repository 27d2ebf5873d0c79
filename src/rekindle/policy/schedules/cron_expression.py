"""Parse cron expressions: five fields, or a name such as `@daily`.

As in cron, a day matches if the day of the month and the day of the week match. If both are
restricted, one of them is enough. A field that begins with `*` does not restrict the day.
"""

import re
from calendar import monthrange
from datetime import date, timedelta

import msgspec

_NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(
    r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>\d+))?", re.ASCII
)
_HOURS = frozenset(range(24))
_LEAP_YEAR = 2000
_DAY = timedelta(days=1)


class CronError(ValueError):
    """A cron expression that cannot be parsed, with a hint."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class CronField(msgspec.Struct, frozen=True):
    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of the month", 1, 31),
    CronField("month", 1, 12, _MONTHS),
    CronField("day of the week", 0, 7, _WEEKDAYS),
)
_FIELD_HINT = (
    'write five fields: minute, hour, day of the month, month and day of the week, such as "0 6 * '
    '* 1-5"'
)


class CronExpression(msgspec.Struct, frozen=True):
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """Days of the week, from 0 (Sunday) to 6."""
    needs_both: bool
    """Whether the day of the month and the day of the week must both match."""

    @property
    def is_hourly(self) -> bool:
        """Return whether the expression matches in every hour, not only at certain times of day."""
        return _HOURS.issubset(self.hours)

    @property
    def shortest_gap(self) -> timedelta:
        """Return the shortest time between two matches, or a day if there is one match a day."""
        times = [timedelta(hours=hour, minutes=minute) for hour, minute in self.list_times()]
        following = [*times[1:], times[0] + _DAY]
        return min(later - time for time, later in zip(times, following, strict=True))

    def list_times(self) -> list[tuple[int, int]]:
        """Return the hours and minutes that match, in order."""
        return [(hour, minute) for hour in self.hours for minute in self.minutes]

    def matches_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return (is_day and is_weekday) if self.needs_both else (is_day or is_weekday)


def parse_cron(text: str) -> CronExpression:
    """Parse an expression.

    Raises:
        CronError: The expression has a mistake, or never matches.
    """
    words = text.split()
    if text.strip().startswith("@"):
        named = _NAMED.get(text.strip().lower())
        if named is None:
            raise CronError(
                f"{text.strip()!r} is not a schedule", f"use one of: {', '.join(sorted(_NAMED))}"
            )
        words = named.split()
    if len(words) != len(_FIELDS):
        raise CronError(f"{text!r} has {len(words)} fields instead of 5", _FIELD_HINT)
    minutes, hours, days, months, weekdays = (
        _parse_field(word, field) for word, field in zip(words, _FIELDS, strict=True)
    )
    parsed = CronExpression(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(day % 7 for day in weekdays),
        needs_both=words[2].startswith("*") or words[4].startswith("*"),
    )
    longest = max(monthrange(_LEAP_YEAR, month)[1] for month in parsed.months)
    if parsed.needs_both and min(parsed.days) > longest:
        raise CronError(
            f"{text!r} never matches: there is no day {min(parsed.days)} in these months",
            "correct the day of the month, or the month",
        )
    return parsed


def _parse_field(word: str, field: CronField) -> set[int]:
    values = set[int]()
    for part in word.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise _refuse_part(part, word, field)
        step = int(match["step"] or 1)
        if match["all"]:
            first, last = field.least, field.most if field.most != len(_WEEKDAYS) else 6
        else:
            first = _parse_value(match["first"], part, word, field)
            last = _parse_value(match["last"], part, word, field) if match["last"] else first
            if last == 0 < first and field.names is _WEEKDAYS:
                last = len(_WEEKDAYS)  # Sunday at the end of a range
            if match["step"] and not match["last"]:
                raise CronError(
                    f"{part!r} in the field {field.name} has a step without a range",
                    f"write `{first}-{field.most}/{step}`",
                )
        if last < first:
            raise CronError(
                f"the range {part!r} in the field {field.name} ends before it begins",
                f"write it as two ranges: `{first}-{field.most},{field.least}-{last}`",
            )
        if step == 0:
            raise _refuse_part(part, word, field)
        values.update(range(first, last + 1, step))
    return values


def _parse_value(text: str, part: str, word: str, field: CronField) -> int:
    name = text.lower()
    if name in field.names:
        return field.names.index(name) + field.least
    if not text.isdecimal() or len(text) > len("00") or not field.least <= int(text) <= field.most:
        raise _refuse_part(part, word, field)
    return int(text)


def _refuse_part(part: str, word: str, field: CronField) -> CronError:
    where = f" in {word!r}" if part != word else ""
    names = f", or names such as {field.names[1]}" if field.names else ""
    return CronError(
        f"{part!r}{where} is not a valid {field.name}",
        f"use numbers from {field.least} to {field.most}{names}; a list is `1,2`, a range `1-5`, "
        "and every second value `*/2`",
    )
