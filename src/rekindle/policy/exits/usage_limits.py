"""Parse a usage limit's reset time from a CLI's message.

An agent that restarts too early hits its limit again. When in doubt, the parser therefore uses the
later time, and returns None for an unclear or contradictory message instead of guessing.

- CLIs round clock times down to minutes and durations to their last unit, so a margin is added.
- A clock time without a date means its next occurrence: tomorrow, if it has just passed.
- A date without a year means the nearest one. If it has passed or has no clock time, the result is
  None. A period that "ends on" a date includes that day.
- A date such as 11/12/2026 may be in November or December. The next one of the two is used.
- If daylight saving skips or repeats an hour, both readings are computed and the later one is used.
- If there are several times, the latest is used. Epoch times take precedence, because they need no
  time zone.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from rekindle.policy.settings.runtime_settings import (
    RESET_MINUTE_MARGIN_SECONDS,
    RESET_SECOND_MARGIN_SECONDS,
    RESET_SHORT_SECONDS,
)

ResetTime = datetime | None
"""Time at which a usage limit ends; None if it cannot be determined."""

_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
    "fev": 2, "abr": 4, "mai": 5, "ago": 8, "set": 9, "out": 10, "dez": 12,
    "ene": 1, "dic": 12,
}  # fmt: skip
"""Month numbers by the first three letters of the name in English, Portuguese or Spanish."""
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WORDS = {"midnight": time(0), "noon": time(12)}
_LAST_MINUTE = time(23, 59)
_ABBREVIATIONS = {
    "UTC": 0, "GMT": 0,
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AKST": -9, "AKDT": -8, "HST": -10,
    "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "SGT": 8, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}  # fmt: skip
"""UTC offsets in hours, by time zone abbreviation as `Intl` prints it in en-US. American zones have
names there, and most others are printed as GMT±n, so CST does not mean China Standard Time.
Ambiguous abbreviations (IST, BST) are omitted on purpose.
"""
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_FINE = {"s", "ms"}

# All repetitions below are bounded, so that even malicious text is parsed in linear time.
_ESCAPES = re.compile(r"\\+(?:[nrt]|u[0-9a-f]{4})?")
_EDGES = " \t│┃⎿■✕✗⚡⏺*"
_NEVER = re.compile(r"\blimit\W{1,4}0(?![.,]?\d)", re.IGNORECASE)
"""Matches a limit of 0: the plan excludes the model, so any reported delay is meaningless."""
_LONG_WINDOW = re.compile(r"weekly|daily|monthly|per[ _-]?(?:day|week|month)", re.IGNORECASE)

_EPOCH = re.compile(r"(?:\bresets_?at\W{1,6}|\|) ?(\d{10})\b", re.IGNORECASE)
_COUNT = r"\d{1,9}(?:\.\d{1,12})?"
_UNIT = (
    r"(?:(ms|millisecond)|(s|sec|second)|(m|min|minute)|(h|hr|hour)|(d|day)|(w|week))s?(?![a-z])"
)
_SPAN = re.compile(rf"({_COUNT}) ?{_UNIT}", re.IGNORECASE)
_RELATIVE = re.compile(
    r"(?:\b(?:again|available|back|resets?|retry) (?:in|after) |\bwait (?:for )?"
    r"|\bretrydelay\W{1,6}"
    r"|\bretrying in (?=~?\d{1,4} ?[hdw])"  # shorter delays are the CLI's own retries
    r"|\b(?P<counted>resets_in_seconds)\W{1,6})"
    rf"~?(?P<span>(?(counted)\d{{1,9}}\b|(?:{_COUNT} ?{_UNIT}(?:,| and)? ?){{1,6}}))"
    r"(?![a-z ,]{0,12}\d|…)",  # the rest of the duration is on the next line, or was cut off
    re.IGNORECASE,
)
_ANCHOR = re.compile(
    r"\b(?:resets?|again|automatically|redefinid[oa]|restablece(?:rá)?|(?P<ends>ends(?= on)))\b:?"
    r"(?: (?:at|on|em|el)\b)? ?",
    re.IGNORECASE,
)
_ISO = re.compile(
    r"\bresets?(?:_?at)?\W{1,6}(?:at |on )?(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d)"
    r"(?::\d\d(?:\.\d{1,9})?)?(?:(Z|[+-]\d\d:?\d\d)|(?![\w…]| ?[:.] ?\d| ?(?:Z\b|[+-] ?\d)))",
    re.IGNORECASE,
)
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_DAY = re.compile(
    r"(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|r|ur)?(?:day)?\b[.,]? ?)?"
    r"(?:(?:(?P<slashes>\d{1,2}/\d{1,2}/20\d\d)"
    rf"|(?P<month>{_MONTH})[a-z]{{0,7}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<day_first>\d{{1,2}}) (?P<of>de )?(?P<its_month>{_MONTH})[a-zç]{{0,7}}\.?)"
    r"(?:,? (?:de )?(?P<year>20\d\d))?(?![\w:/]))?"
    r",? ?(?:(?:at|a las|às) )?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<word>midnight|noon)\b"
    r"|(?P<hour>\d{1,2})(?::(?P<minute>[0-5]\d)(?::[0-5]\d)?)?"
    r"(?: ?(?P<half>[ap])(?:m\b|\. ?m\b\.?))?(?![\w:/%…])",
    re.IGNORECASE,
)
_ZONE = re.compile(
    r" ?(?:\((?!in )(?P<inside>[^()]{0,64})"
    r"|(?P<bare>[A-Z]{1,5}(?: ?[+-] ?\d{1,2}(?: ?: ?\d\d)?)?(?!\w)"
    r"|[A-Z][A-Za-z]{1,15}/[\w+/-]{1,40}))"
)
_OFFSET = re.compile(r"(?:UTC|GMT)([+-])(\d{1,2})(?::?([0-5]\d))?")
_IANA = re.compile(r"(?!posix|right)[A-Za-z]{2,15}(?:/[\w+-]{1,40}){1,2}", re.ASCII)


def parse_reset_time(hint: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """Return when the limit in this message ends, in UTC, or None if it is unclear.

    `zone` is the time zone of the process that printed the message. The result is always after
    `now`, and never before the reset time in the message.
    """
    try:
        times = [_find_latest(text, now.astimezone(UTC), zone) for text in _unwrap_lines(hint)]
    except (OverflowError, ValueError):  # outside the range of datetime
        return None
    return max((instant for instant in times if instant), default=None)


def _unwrap_lines(hint: str) -> set[str]:
    """Return the text with its lines joined with spaces, and joined without spaces.

    Both variants are parsed, because a terminal may wrap a line between words or inside one.
    """
    lines = [line.strip(_EDGES) for line in _ESCAPES.sub(" ", hint).splitlines()]
    return {" ".join(glue.join(lines).split()) for glue in (" ", "")}


def _find_latest(text: str, now: datetime, zone: tzinfo) -> ResetTime:
    if _NEVER.search(text):
        return None
    times: list[ResetTime] = [
        datetime.fromtimestamp(int(match[1]), UTC) for match in _EPOCH.finditer(text)
    ]
    times = times or [
        *_find_relative_times(text, now),
        *_find_absolute_times(text, now, zone),
        *_find_iso_times(text, zone),
    ]
    future = [instant for instant in times if instant and instant > now]
    # If one of the times is past or unclear, the others are unreliable too.
    return max(future) if future and len(future) == len(times) else None


def _find_relative_times(text: str, now: datetime) -> Iterator[ResetTime]:
    long_window = _LONG_WINDOW.search(text)
    for match in _RELATIVE.finditer(text):
        span = f"{match['span']}s" if match["counted"] else match["span"]
        parts = [(float(part[1]), _read_unit(part)) for part in _SPAN.finditer(span)]
        seconds = sum(count * _SECONDS[unit] for count, unit in parts)
        if not seconds or (long_window and seconds < RESET_SHORT_SECONDS):
            yield None
            continue
        fine = any(unit in _FINE for _, unit in parts)
        margin = RESET_SECOND_MARGIN_SECONDS if fine else RESET_MINUTE_MARGIN_SECONDS
        yield now + timedelta(seconds=seconds + margin)


def _read_unit(match: re.Match[str]) -> str:
    return ("ms", "s", "m", "h", "d", "w")[(match.lastindex or 2) - 2]


def _find_absolute_times(text: str, now: datetime, zone: tzinfo) -> Iterator[ResetTime]:
    for anchor in _ANCHOR.finditer(text):
        day = _DAY.match(text, anchor.end())
        clock = _CLOCK.match(text, day.end() if day else anchor.end())
        if not day or not (clock or any(day.group("weekday", "month", "its_month", "slashes"))):
            continue
        at = _parse_clock(clock, whole_day=bool(day["of"])) if clock else None
        where = _find_zone(text, clock.end(), zone) if clock else None
        if anchor["ends"] and not clock:
            at, where = _LAST_MINUTE, zone
        instant = _resolve_instant(day, at, now, where) if at and where else None
        yield instant and instant + timedelta(seconds=RESET_MINUTE_MARGIN_SECONDS)


def _find_iso_times(text: str, zone: tzinfo) -> Iterator[ResetTime]:
    for match in _ISO.finditer(text):
        offset = (match[3] or "").upper()
        wall = datetime.fromisoformat(f"{match[1]}T{match[2]}{offset}")
        instant = wall.astimezone(UTC) if offset else _make_moment(wall.date(), wall.time(), zone)
        yield instant + timedelta(seconds=RESET_MINUTE_MARGIN_SECONDS)


def _parse_clock(clock: re.Match[str], *, whole_day: bool) -> time | None:
    """Return the time of day, or None if it is invalid or could mean either morning or evening."""
    noon = 12
    if clock["word"]:
        return _WORDS[clock["word"].lower()]
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    if clock["half"]:
        afternoon = noon if clock["half"].lower() == "p" else 0
        return time(hour % noon + afternoon, minute) if 1 <= hour <= noon else None
    plain = whole_day or hour > noon or clock["hour"].startswith("0")
    return time(hour, minute) if clock["minute"] and plain and hour < 2 * noon else None


def _resolve_instant(day: re.Match[str], at: time, now: datetime, zone: tzinfo) -> ResetTime:
    if day["slashes"]:
        first, second, year = map(int, day["slashes"].split("/"))
        readings = (_make_date(year, first, second), _make_date(year, second, first))
        moments = [_make_moment(each, at, zone) for each in readings if each]
        return min((moment for moment in moments if moment > now), default=None)
    today = now.astimezone(zone).date()
    month = day["month"] or day["its_month"]
    if month:
        number = _MONTHS[month.lower()], int(day["day"] or day["day_first"])
        years = (int(day["year"]),) if day["year"] else range(today.year - 1, today.year + 2)
        dates = [candidate for year in years if (candidate := _make_date(year, *number))]
        moments = [_make_moment(each, at, zone) for each in dates]
        return min(moments, key=lambda moment: abs(moment - now), default=None)
    weekday = day["weekday"] and _WEEKDAYS.index(day["weekday"].lower())
    days = (today + timedelta(days=number) for number in range(-1, 9))
    coming = (_make_moment(each, at, zone) for each in days if weekday in {None, each.weekday()})
    return next((moment for moment in coming if moment > now), None)


def _make_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _make_moment(day: date, at: time, zone: tzinfo) -> datetime:
    """Convert a wall-clock time to UTC. If it is ambiguous, use the later of the two times."""
    wall = datetime.combine(day, at, zone)
    return max(wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _find_zone(text: str, start: int, default: tzinfo) -> tzinfo | None:
    """Return the time zone after a clock time, or None if the zone is unknown.

    If there is no zone, return `default`.
    """
    match = _ZONE.match(text, start)
    if not match:
        return default
    if match["inside"] is not None and text[match.end() : match.end() + 1] != ")":
        return None  # the zone's name was cut off
    return _look_up_zone("".join((match["inside"] or match["bare"] or "").split()))


def _look_up_zone(name: str) -> tzinfo | None:
    if name in _ABBREVIATIONS:
        return timezone(timedelta(hours=_ABBREVIATIONS[name]))
    if offset := _OFFSET.fullmatch(name):
        east = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(east if offset[1] == "+" else -east)
    if not _IANA.fullmatch(name):
        return None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
