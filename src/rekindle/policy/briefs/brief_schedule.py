"""When a brief is due, and which morning it is for.

There is one moment of a day at which the brief of that morning is written, in the operator's zone:
one also on the days on which the clocks are set. Whatever is written since the last such moment is
for the next morning, and says what the earlier ones of it said; the one that is written when it is
due closes it. A host that was off at that moment, or for a week, writes one when it is back.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo

import msgspec

from rekindle.documents.events import (
    BriefedPosition,
    BriefMade,
)
from rekindle.policy.projection.sessions import (
    NOT_IN_LOG,
    LaunchRecords,
    SessionRecords,
)
from rekindle.policy.settings.runtime_settings import (
    BRIEF_TOLD_DAYS,
    BRIEF_TOLD_KEPT,
    BriefSettings,
)

NEVER = "never"
_DAY = timedelta(days=1)
_NEVER = datetime.min.replace(tzinfo=UTC)


class TranscriptPosition(msgspec.Struct, frozen=True):
    """How far a transcript was told, and by which event."""

    seq: int
    ts: datetime
    told: BriefedPosition


class ClosedMorning(msgspec.Struct, frozen=True, order=True):
    """The last morning whose brief was written when it was due, and where in the log."""

    seq: int = 0
    morning: str = ""


class BriefState(msgspec.Struct, frozen=True):
    """What the last brief was about."""

    seq: int = 0
    ts: datetime | None = None
    """Up to when it tells."""
    morning: str = ""
    closed: ClosedMorning = ClosedMorning()
    failed: int = 0
    """How often in a row no model could be had for it."""
    unusable: int = 0
    """How often in a row there was an answer that could not be used."""
    until: datetime | None = None
    """Up to when the last one tells for which a model could be had, or nobody was asked."""
    until_seq: int = 0
    until_morning: str = ""
    """And the morning that it was for."""
    resolved: int = 0
    """How far resolved.jsonl was put away."""
    claimed: dict[str, str] = {}
    told: dict[str, TranscriptPosition] = {}


def record_brief(before: BriefState, event: BriefMade) -> BriefState:
    told, at = dict(before.told), event.seq or NOT_IN_LOG
    for name, place in event.told.items():
        found = TranscriptPosition(at, event.ts, place)
        known = told.get(name)
        if known is None or _position_order(found) > _position_order(known):
            told[name] = found
    merged = msgspec.structs.replace(
        before,
        told=told,
        closed=max(
            before.closed, ClosedMorning(at, event.morning) if event.closes else ClosedMorning()
        ),
        resolved=max(before.resolved, event.resolved),
    )
    if not event.failed and (at, event.ts) > (before.until_seq, before.until or _NEVER):
        merged = msgspec.structs.replace(
            merged, until=event.ts, until_seq=at, until_morning=event.morning
        )
    if (at, event.ts) <= (before.seq, before.ts or _NEVER):
        return merged
    return msgspec.structs.replace(
        merged,
        seq=at,
        ts=event.ts,
        morning=event.morning,
        failed=event.failed,
        unusable=event.unusable,
        claimed=event.claimed,
    )


def _position_order(place: TranscriptPosition) -> tuple[int, datetime, int, int, str]:
    return place.seq, place.ts, place.told.at, place.told.turn, place.told.rest


def prune_brief_state(briefed: BriefState) -> BriefState:
    """What a snapshot keeps: of transcripts that have long been told nothing more will come."""
    if briefed.ts is None:
        return briefed
    since = briefed.ts - _DAY * BRIEF_TOLD_DAYS
    young = [item for item in briefed.told.items() if item[1].ts >= since]
    order = sorted(young, key=lambda item: (item[1].seq, item[0]))
    return msgspec.structs.replace(briefed, told=dict(order[-BRIEF_TOLD_KEPT:]))


class DueBrief(msgspec.Struct, frozen=True):
    morning: str
    closes: bool
    """It is the brief of that morning; else one before it."""


def find_next_morning(now: datetime, at: str, zone: tzinfo) -> str:
    """The next morning: the day of the first moment after now at which a brief is due."""
    today = now.astimezone(zone).date()
    days = (today + _DAY * ahead for ahead in (-1, 0, 1, 2))
    return next(
        (day for day in days if resolve_time_of_day(day, at, zone) > now), today
    ).isoformat()


def find_due_brief(
    now: datetime,
    zone: tzinfo,
    limits: BriefSettings,
    briefed: BriefState,
    *,
    lives: SessionRecords,
    attempts: LaunchRecords,
    last_active: datetime | None,
) -> DueBrief | None:
    """The brief that is to be written now, if any is.

    None without work, between the last brief and the moment: what is begun after it is for the next
    morning.
    """
    # One from the future was written before the clock was set back: it says nothing of now.
    told = briefed.ts if briefed.ts is not None and briefed.ts <= now else None
    # A program that reports nothing is known to work by its launches alone.
    signs = [
        *filter(None, [last_active]),
        *_list_start_times({}, attempts),
        *_list_end_times({}, attempts),
    ]
    if not signs or (told is not None and max(signs) <= told):
        return None
    coming = find_next_morning(now, limits.at, zone)
    latest = None if limits.at == NEVER else _find_latest_day(now, limits.at, zone)
    if latest is not None:
        is_closed = latest.isoformat() <= briefed.closed.morning <= coming
        then = resolve_time_of_day(latest, limits.at, zone)
        if not is_closed and _has_worked(told, then, lives, attempts, last_active):
            return DueBrief(latest.isoformat(), closes=True)
    ended = _list_end_times(lives, attempts)
    if limits.on_session_end and any(told is None or one > told for one in ended):
        return DueBrief(coming, closes=False)
    return None


def _has_worked(
    told: datetime | None,
    then: datetime,
    lives: SessionRecords,
    attempts: LaunchRecords,
    last_active: datetime | None,
) -> bool:
    """Whether a session or a launch was there at some time after one moment and up to another."""
    began = list(_list_start_times(lives, attempts))
    # The last sign of life is that of whoever began last.
    active = last_active if all(one <= then for one in began) else None
    spans = [(life.started, active if life.is_open else life.ended) for life in lives.values()]
    spans += [(one.began, one.ended or active) for one in attempts.values()]
    return any(
        start is not None and start <= then and (told is None or max(start, end or start) > told)
        for start, end in spans
    )


def resolve_time_of_day(day: date, at: str, zone: tzinfo) -> datetime:
    """The moment of a day, once: one that the clocks skip is as long after the midnight before."""
    hour = time.fromisoformat("06:00" if at == NEVER else at)
    return datetime.combine(day, hour, zone).astimezone(UTC)


def _find_latest_day(now: datetime, at: str, zone: tzinfo) -> date | None:
    today = now.astimezone(zone).date()
    days = (today + _DAY * back for back in (1, 0, -1, -2))
    return next((day for day in days if resolve_time_of_day(day, at, zone) <= now), None)


def _list_start_times(lives: SessionRecords, attempts: LaunchRecords) -> Iterable[datetime]:
    yield from (life.started for life in lives.values() if life.started)
    yield from (one.began for one in attempts.values() if one.began)


def _list_end_times(lives: SessionRecords, attempts: LaunchRecords) -> Iterable[datetime]:
    yield from (life.ended for life in lives.values() if life.ended and not life.is_open)
    yield from (one.ended for one in attempts.values() if one.ended)
