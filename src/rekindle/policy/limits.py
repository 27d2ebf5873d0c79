"""When a usage limit ends, read from the sentence in which a CLI says so.

An agent that is woken early only hits its limit again, so every doubt counts for later, and what is
not understood, or contradicts itself, is None: an unknown reset, never a guess.

- A clock is cut to its minute and a duration to its last unit: the reset may lie that much later.
- A clock without a date is its next occurrence; one that has just passed is tomorrow's.
- A date without a year is the nearest; where that has passed, or no clock stands by it: None.
- An hour that the clocks skip or repeat is read both ways, and the later counts.
- Of several times the latest counts. An epoch outranks them: it does not depend on who reads it.
"""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from rekindle.policy.settings import (
    RESET_MINUTE_MARGIN_SECONDS,
    RESET_SECOND_MARGIN_SECONDS,
    RESET_SHORT_SECONDS,
)

Said = datetime | None
"""What an expression of time means; None where it is one, but cannot be told."""

_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
    "fev": 2, "abr": 4, "mai": 5, "ago": 8, "set": 9, "out": 10, "dez": 12,
    "ene": 1, "dic": 12,
}  # fmt: skip
"""How the names of the months begin, in English, Portuguese and Spanish."""
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WORDS = {"midnight": time(0), "noon": time(12)}
_ABBREVIATIONS = {
    "UTC": 0, "GMT": 0,
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AKST": -9, "AKDT": -8, "HST": -10,
    "WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3,
    "SGT": 8, "HKT": 8, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11, "NZST": 12, "NZDT": 13,
}  # fmt: skip
"""As `Intl` writes them in en-US, which has names for American zones and GMT±n for most others: CST
is not China's. What means several zones even so (IST, BST) is missing on purpose."""
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1, "ms": 0.001}
_FINE = {"s", "ms"}

# Every repetition below is bounded: a hostile text of any length is read in linear time.
_ESCAPES = re.compile(r"\\+(?:[nrt]|u[0-9a-f]{4})?")
_EDGES = " \t│┃⎿■✕✗⚡⏺*"
_NEVER = re.compile(r"\blimit\W{1,4}0(?![.,]?\d)", re.IGNORECASE)
"""Not on this plan at all: the delay beside it is made up."""
_LONG_WINDOW = re.compile(r"weekly|daily|monthly|per[ _-]?(?:day|week|month)", re.IGNORECASE)

_EPOCH = re.compile(r"(?:\bresets_?at\W{1,6}|\|) ?(\d{10})\b", re.IGNORECASE)
_COUNT = r"\d{1,9}(?:\.\d{1,12})?"
_UNIT = (
    r"(?:(ms|millisecond)|(s|sec|second)|(m|min|minute)|(h|hr|hour)|(d|day)|(w|week))s?(?![a-z])"
)
_SPAN = re.compile(rf"({_COUNT}) ?{_UNIT}", re.IGNORECASE)
_RELATIVE = re.compile(
    r"(?:\b(?:again|resets?|retry) (?:in|after) |\bwait (?:for )?|\bretrydelay\W{1,6}"
    r"|\bretrying in (?=\d{1,4} ?h)"  # shorter ones are the CLI's own pauses
    r"|\b(?P<counted>resets_in_seconds)\W{1,6})"
    rf"(?P<span>(?(counted)\d{{1,9}}\b|(?:{_COUNT} ?{_UNIT}(?:,| and)? ?){{1,6}}))"
    r"(?![a-z ,]{0,12}\d|…)",  # more of it, torn by a line break, or cut off
    re.IGNORECASE,
)
_ANCHOR = re.compile(
    r"\b(?:resets?|again|automatically|redefinid[oa]|restablece(?:rá)?)\b:?"
    r"(?: (?:at|on|em|el)\b)? ?",
    re.IGNORECASE,
)
_MONTH = rf"(?:{'|'.join(_MONTHS)})"
_DAY = re.compile(
    r"(?:(?P<weekday>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|r|ur)?(?:day)?\b[.,]? ?)?"
    rf"(?:(?:(?P<month>{_MONTH})[a-z]{{0,7}}\.? (?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    rf"|(?P<day_first>\d{{1,2}}) (?P<of>de )?(?P<its_month>{_MONTH})[a-zç]{{0,7}}\.?)"
    r"(?:,? (?:de )?(?P<year>20\d\d))?(?![\w:]))?"
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


def resets_at(hint: str, *, now: datetime, zone: tzinfo) -> datetime | None:
    """When the limit of this sentence ends, in UTC; `zone` is that of the process that printed it.

    Always after `now`, and never before the reset that was meant; None: it cannot be told.
    """
    try:
        told = [_latest(text, now.astimezone(UTC), zone) for text in _unwrapped(hint)]
    except (OverflowError, ValueError):  # beyond what a calendar holds
        return None
    return max((instant for instant in told if instant), default=None)


def _unwrapped(hint: str) -> set[str]:
    """The text on one line in two ways: a terminal breaks lines between words, and inside them."""
    lines = [line.strip(_EDGES) for line in _ESCAPES.sub(" ", hint).splitlines()]
    return {" ".join(glue.join(lines).split()) for glue in (" ", "")}


def _latest(text: str, now: datetime, zone: tzinfo) -> Said:
    if _NEVER.search(text):
        return None
    told: list[Said] = [datetime.fromtimestamp(int(one[1]), UTC) for one in _EPOCH.finditer(text)]
    told = told or [*_relative(text, now), *_absolute(text, now, zone)]
    known = [instant for instant in told if instant and instant > now]
    # One that is past, or not understood, makes the rest doubtful.
    return max(known) if known and len(known) == len(told) else None


def _relative(text: str, now: datetime) -> Iterator[Said]:
    long_window = _LONG_WINDOW.search(text)
    for found in _RELATIVE.finditer(text):
        span = f"{found['span']}s" if found["counted"] else found["span"]
        parts = [(float(one[1]), _unit(one)) for one in _SPAN.finditer(span)]
        seconds = sum(count * _SECONDS[unit] for count, unit in parts)
        if not seconds or (long_window and seconds < RESET_SHORT_SECONDS):
            yield None
            continue
        fine = any(unit in _FINE for _, unit in parts)
        margin = RESET_SECOND_MARGIN_SECONDS if fine else RESET_MINUTE_MARGIN_SECONDS
        yield now + timedelta(seconds=seconds + margin)


def _unit(found: re.Match[str]) -> str:
    return ("ms", "s", "m", "h", "d", "w")[(found.lastindex or 2) - 2]


def _absolute(text: str, now: datetime, zone: tzinfo) -> Iterator[Said]:
    for anchor in _ANCHOR.finditer(text):
        day = _DAY.match(text, anchor.end())
        clock = _CLOCK.match(text, day.end() if day else anchor.end())
        if not day or not (clock or day["weekday"] or day["month"] or day["its_month"]):
            continue
        at = _time(clock, whole_day=bool(day["of"])) if clock else None
        where = _zone(text, clock.end(), zone) if clock else None
        instant = _instant(day, at, now, where) if at and where else None
        yield instant and instant + timedelta(seconds=RESET_MINUTE_MARGIN_SECONDS)


def _time(clock: re.Match[str], *, whole_day: bool) -> time | None:
    """A time of day; None where it may be morning or evening."""
    noon = 12
    if clock["word"]:
        return _WORDS[clock["word"].lower()]
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    if clock["half"]:
        afternoon = noon if clock["half"].lower() == "p" else 0
        return time(hour % noon + afternoon, minute) if 1 <= hour <= noon else None
    plain = whole_day or hour > noon or clock["hour"].startswith("0")
    return time(hour, minute) if clock["minute"] and plain and hour < 2 * noon else None


def _instant(day: re.Match[str], at: time, now: datetime, zone: tzinfo) -> Said:
    today = now.astimezone(zone).date()
    month = day["month"] or day["its_month"]
    if month:
        number = _MONTHS[month.lower()], int(day["day"] or day["day_first"])
        years = (int(day["year"]),) if day["year"] else range(today.year - 1, today.year + 2)
        dates = [found for year in years if (found := _date(year, *number))]
        moments = [_moment(one, at, zone) for one in dates]
        return min(moments, key=lambda one: abs(one - now), default=None)
    weekday = day["weekday"] and _WEEKDAYS.index(day["weekday"].lower())
    days = (today + timedelta(days=number) for number in range(-1, 9))
    coming = (_moment(one, at, zone) for one in days if weekday in {None, one.weekday()})
    return next((one for one in coming if one > now), None)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _moment(day: date, at: time, zone: tzinfo) -> datetime:
    """The later of the two instants that a wall clock can mean where the clocks are changed."""
    wall = datetime.combine(day, at, zone)
    return max(wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1))


def _zone(text: str, start: int, default: tzinfo) -> tzinfo | None:
    """The zone that stands behind a clock; None where it is not known, so that none is guessed."""
    found = _ZONE.match(text, start)
    if not found:
        return default
    if found["inside"] is not None and text[found.end() : found.end() + 1] != ")":
        return None  # cut off
    return _zone_named("".join((found["inside"] or found["bare"] or "").split()))


def _zone_named(name: str) -> tzinfo | None:
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
