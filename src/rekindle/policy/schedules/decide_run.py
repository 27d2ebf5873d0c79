"""Decide whether a schedule starts a run now, or record why it does not.

Each due time is either started once, or recorded as skipped or missed. To ensure this, the caller
writes the record before the start and again after it. If it is killed partway, the next call
learns whether the pending run was started, and starts it only if it was not.

If the clock is set back, due times are not repeated. But if due times were recorded as missed only
because the clock was ahead, they are due again.
"""

from datetime import datetime, timedelta
from typing import Literal

import msgspec

from rekindle.policy.schedules.due_times import DueRange, DueTimes
from rekindle.policy.schedules.schedule_record import (
    ClockJump,
    OutcomeKind,
    PendingRun,
    ScheduleOutcome,
    ScheduleRecord,
)
from rekindle.thresholds.schedule_limits import SCHEDULE_GRACE_SECONDS, SCHEDULE_REVISED

STILL_RUNNING = "the previous run was still going"
STILL_QUEUED = "an earlier run was still waiting to start"
NOT_WATCHED = "the host was asleep, or no daemon was running"
TOO_LATE = "the run was not started in time"
SET_BACK = "the clock was set back, so these runs are due again"

_GRACE = timedelta(seconds=SCHEDULE_GRACE_SECONDS)
_TICK = timedelta(microseconds=1)
replace = msgspec.structs.replace


class RunRules(msgspec.Struct, frozen=True):
    """Due times of a schedule, and the rules for runs that are late or overlap."""

    times: DueTimes
    missed: Literal["run", "skip"] = "run"
    overlap: Literal["skip", "queue"] = "skip"


class RunFacts(msgspec.Struct, frozen=True):
    """The current state of the agent or pipeline."""

    is_running: bool = False
    """Whether a run is in progress, even if its supervisor has to be restarted."""
    has_started: bool = False
    """Whether the record's pending run has been started."""
    obstacle: str = ""
    """Why no run can start now; empty if one can."""
    hint: str = ""
    """How to remove the obstacle, if this is known."""


class ScheduleDecision(msgspec.Struct, frozen=True):
    record: ScheduleRecord
    """The record to write before anything else happens."""
    start: datetime | None = None
    """Due time of the run to start now. Afterwards, the caller writes `confirm_start`."""
    outcomes: tuple[ScheduleOutcome, ...] = ()
    """New outcomes, which are also in the record."""


def is_due(rules: RunRules, record: ScheduleRecord, now: datetime) -> bool:
    """Return whether there is anything to decide."""
    jump = record.jump
    return (
        record.pending is not None
        or (jump is not None and jump.since <= now < jump.last)
        or _find_latest(rules.times, record, now) is not None
    )


def find_next_run(rules: RunRules, record: ScheduleRecord | None, now: datetime) -> datetime:
    """Return when the schedule will start its next run if nothing prevents it."""
    if record is None:
        return rules.times.find_start(rules.times.find_next(now))
    if record.pending is not None:
        return now
    due = rules.times.find_next(record.handled)
    while due in record.ahead:
        due = rules.times.find_next(due)
    return rules.times.find_start(due)


def decide_run(
    rules: RunRules, record: ScheduleRecord, now: datetime, facts: RunFacts
) -> ScheduleDecision:
    """Decide what happens at the due times up to now."""
    record, outcomes = _restore_missed(rules.times, record, now)
    if record.pending is not None:
        record, settled = _settle_pending(rules, record, record.pending, now, facts)
        outcomes += settled
    record, handled = _handle_due(rules, record, now, facts)
    outcomes += handled
    record = record.add_outcomes(*outcomes)
    pending = record.pending
    start = pending.due if pending and not pending.is_queued else None
    return ScheduleDecision(record, start, tuple(outcomes))


_Step = tuple[ScheduleRecord, list[ScheduleOutcome]]


def _restore_missed(times: DueTimes, record: ScheduleRecord, now: datetime) -> _Step:
    """If the clock was set back, make missed due times that are now in the future due again."""
    jump = record.jump
    if jump is None or not jump.since <= now < jump.last:
        return record, []
    ahead = {due for due in (*record.ahead, *jump.later) if due > now}
    restored = times.find_range(now, jump.last + _TICK, ahead)
    record = replace(record, handled=now, jump=None, ahead=tuple(sorted(ahead)))
    return record, [_make_outcome("restored", restored, now, SET_BACK)] if restored else []


def _settle_pending(
    rules: RunRules, record: ScheduleRecord, pending: PendingRun, now: datetime, facts: RunFacts
) -> _Step:
    """Confirm a pending run that has been started, and drop one that must not start."""
    due, dropped = pending.due, replace(record, pending=None)
    if facts.has_started:
        return dropped, [ScheduleOutcome("started", due, due, now)]
    if facts.obstacle:
        return dropped, [ScheduleOutcome("skipped", due, due, now, reason=facts.obstacle)]
    if facts.is_running:
        if rules.overlap == "skip":
            return dropped, [ScheduleOutcome("skipped", due, due, now, reason=STILL_RUNNING)]
        return replace(record, pending=PendingRun(due, is_queued=True)), []
    if not pending.is_queued and rules.missed == "skip" and _is_late(rules.times, due, now):
        return dropped, [ScheduleOutcome("skipped", due, due, now, reason=TOO_LATE)]
    return replace(record, pending=PendingRun(due)), []


def _handle_due(rules: RunRules, record: ScheduleRecord, now: datetime, facts: RunFacts) -> _Step:
    """Handle the due times since the last decision, of which at most one starts a run."""
    latest = _find_latest(rules.times, record, now)
    if latest is None:
        return record, []
    outcomes = list[ScheduleOutcome]()
    is_missed = rules.missed == "skip" and _is_late(rules.times, latest, now)
    end = latest + _TICK if is_missed else latest
    missed = rules.times.find_range(record.handled, end, record.ahead)
    jump = record.jump
    if missed:
        outcomes.append(_make_outcome("missed", missed, now, NOT_WATCHED))
        since, later = (jump.since, jump.later) if jump else (record.handled, ())
        jump = ClockJump(since, missed.last, later)
    if jump:
        passed = [due for due in record.ahead if due <= latest]
        jump = replace(jump, later=(*jump.later, *passed, *(() if is_missed else (latest,))))
    record = replace(
        record,
        handled=latest,
        jump=jump if jump and len(jump.later) <= SCHEDULE_REVISED else None,
        ahead=tuple(due for due in record.ahead if due > latest),
    )
    if is_missed:
        return record, outcomes
    if reason := _find_reason(rules, record, facts):
        outcomes.append(ScheduleOutcome("skipped", latest, latest, now, reason=reason))
    else:
        record = replace(record, pending=PendingRun(latest, is_queued=facts.is_running))
    return record, outcomes


def _find_latest(times: DueTimes, record: ScheduleRecord, now: datetime) -> datetime | None:
    """Return the last unhandled due time up to now, or None."""
    if now <= record.handled:
        return None
    due = times.find_latest(now)
    if times.find_start(due) > now:
        due = times.find_latest(due - _TICK)
    while due in record.ahead:
        due = times.find_latest(due - _TICK)
    return due if due > record.handled else None


def _find_reason(rules: RunRules, record: ScheduleRecord, facts: RunFacts) -> str:
    """Explain why the latest due time does not start a run, or return "" if it does."""
    if facts.obstacle:
        return facts.obstacle
    if record.pending is not None:
        return STILL_QUEUED
    return STILL_RUNNING if facts.is_running and rules.overlap == "skip" else ""


def _make_outcome(kind: OutcomeKind, due: DueRange, now: datetime, reason: str) -> ScheduleOutcome:
    return ScheduleOutcome(kind, due.first, due.last, now, due.count, reason)


def _is_late(times: DueTimes, due: datetime, now: datetime) -> bool:
    return now - times.find_start(due) > _GRACE
