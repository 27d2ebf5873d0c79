"""Decide when a brief is due, and for which morning.

One brief is due every morning, at a fixed time in the operator's time zone, even on days when
daylight saving starts or ends. The brief written at the due time closes its morning. Every brief
written after the due time is for the next morning, and repeats the changes from earlier briefs for
that morning. If the host was off at the due time, even for a week, a single brief is written once
it is running again.
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
    """Position up to which briefs cover a transcript, and the event that recorded it."""

    seq: int
    ts: datetime
    covered: BriefedPosition


class ClosedMorning(msgspec.Struct, frozen=True, order=True):
    """The last morning whose brief was written, and that brief's log position."""

    seq: int = 0
    morning: str = ""


class BriefState(msgspec.Struct, frozen=True):
    """The state of an agent's briefs, computed from its log."""

    seq: int = 0
    ts: datetime | None = None
    """Time up to which the last brief covers the agent's work."""
    morning: str = ""
    closed: ClosedMorning = ClosedMorning()
    failed: int = 0
    """Number of recent briefs in a row for which no model was available."""
    unusable: int = 0
    """Number of recent briefs in a row for which the model's answer was unusable."""
    until: datetime | None = None
    """Timestamp (`ts`) of the last brief for which a model was available or not needed."""
    until_seq: int = 0
    until_morning: str = ""
    """Morning of the last brief for which a model was available or not needed."""
    resolved: int = 0
    """Log position up to which resolved.jsonl was moved to the archive."""
    claimed: dict[str, str] = {}
    covered: dict[str, TranscriptPosition] = {}


def record_brief(before: BriefState, event: BriefMade) -> BriefState:
    covered, position = dict(before.covered), event.seq or NOT_IN_LOG
    for name, place in event.covered.items():
        new = TranscriptPosition(position, event.ts, place)
        old = covered.get(name)
        if old is None or _position_order(new) > _position_order(old):
            covered[name] = new
    merged = msgspec.structs.replace(
        before,
        covered=covered,
        closed=max(
            before.closed,
            ClosedMorning(position, event.morning) if event.closes else ClosedMorning(),
        ),
        resolved=max(before.resolved, event.resolved),
    )
    if not event.failed and (position, event.ts) > (before.until_seq, before.until or _NEVER):
        merged = msgspec.structs.replace(
            merged, until=event.ts, until_seq=position, until_morning=event.morning
        )
    if (position, event.ts) <= (before.seq, before.ts or _NEVER):
        return merged
    return msgspec.structs.replace(
        merged,
        seq=position,
        ts=event.ts,
        morning=event.morning,
        failed=event.failed,
        unusable=event.unusable,
        claimed=event.claimed,
    )


def _position_order(place: TranscriptPosition) -> tuple[int, datetime, int, int, str]:
    return place.seq, place.ts, place.covered.at, place.covered.turn, place.covered.rest


def prune_brief_state(briefed: BriefState) -> BriefState:
    """Return the state to store in a snapshot, without transcripts that were covered long ago."""
    if briefed.ts is None:
        return briefed
    since = briefed.ts - _DAY * BRIEF_TOLD_DAYS
    young = [item for item in briefed.covered.items() if item[1].ts >= since]
    order = sorted(young, key=lambda item: (item[1].seq, item[0]))
    return msgspec.structs.replace(briefed, covered=dict(order[-BRIEF_TOLD_KEPT:]))


class DueBrief(msgspec.Struct, frozen=True):
    morning: str
    closes: bool
    """Whether this is the final brief for the morning."""


def find_next_morning(now: datetime, at: str, zone: tzinfo) -> str:
    """Return the date of the next morning: the day of the first due time after `now`."""
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
    """Return the brief to write now, or None if no brief is due.

    No brief is due if the agent has not worked since the last one. Work that starts after the due
    time belongs to the next morning.
    """
    # A brief with a future time was written before the clock was set back, so its time is ignored.
    covered = briefed.ts if briefed.ts is not None and briefed.ts <= now else None
    # For a program without hooks, launches are the only evidence of work.
    signs = [
        *filter(None, [last_active]),
        *_list_start_times({}, attempts),
        *_list_end_times({}, attempts),
    ]
    if not signs or (covered is not None and max(signs) <= covered):
        return None
    coming = find_next_morning(now, limits.at, zone)
    latest = None if limits.at == NEVER else _find_latest_day(now, limits.at, zone)
    if latest is not None:
        is_closed = latest.isoformat() <= briefed.closed.morning <= coming
        due = resolve_time_of_day(latest, limits.at, zone)
        if not is_closed and _has_worked(covered, due, lives, attempts, last_active):
            return DueBrief(latest.isoformat(), closes=True)
    ended = _list_end_times(lives, attempts)
    if limits.on_session_end and any(covered is None or end > covered for end in ended):
        return DueBrief(coming, closes=False)
    return None


def _has_worked(
    covered: datetime | None,
    due: datetime,
    lives: SessionRecords,
    attempts: LaunchRecords,
    last_active: datetime | None,
) -> bool:
    """Return whether a session or launch started by `due` and was active after `covered`."""
    began = list(_list_start_times(lives, attempts))
    # The last sign of life belongs to the session or launch that started last.
    active = last_active if all(start <= due for start in began) else None
    spans = [(life.started, active if life.is_open else life.ended) for life in lives.values()]
    spans += [(launch.began, launch.ended or active) for launch in attempts.values()]
    return any(
        start is not None
        and start <= due
        and (covered is None or max(start, end or start) > covered)
        for start, end in spans
    )


def resolve_time_of_day(day: date, at: str, zone: tzinfo) -> datetime:
    """Convert a local time of day to UTC.

    A time that daylight saving skips is converted with the offset from before the change.
    """
    hour = time.fromisoformat("06:00" if at == NEVER else at)
    return datetime.combine(day, hour, zone).astimezone(UTC)


def _find_latest_day(now: datetime, at: str, zone: tzinfo) -> date | None:
    today = now.astimezone(zone).date()
    days = (today + _DAY * back for back in (1, 0, -1, -2))
    return next((day for day in days if resolve_time_of_day(day, at, zone) <= now), None)


def _list_start_times(lives: SessionRecords, attempts: LaunchRecords) -> Iterable[datetime]:
    yield from (life.started for life in lives.values() if life.started)
    yield from (launch.began for launch in attempts.values() if launch.began)


def _list_end_times(lives: SessionRecords, attempts: LaunchRecords) -> Iterable[datetime]:
    yield from (life.ended for life in lives.values() if life.ended and not life.is_open)
    yield from (launch.ended for launch in attempts.values() if launch.ended)
