"""The record of a schedule: which due times were handled, and how."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.thresholds.schedule_limits import SCHEDULE_HISTORY

OutcomeKind = Literal["started", "skipped", "missed", "restored"]


class ScheduleOutcome(msgspec.Struct, frozen=True):
    """The outcome of one due time, or of several in a row."""

    kind: OutcomeKind
    """`started`; `skipped` if a run was not possible or not wanted; `missed` if the host was asleep
    or no daemon was running; or `restored` for missed times that are due again because the clock
    was set back.
    """
    first: datetime
    """First due time."""
    last: datetime
    """Last due time."""
    at: datetime
    """Time of the decision."""
    count: int = 1
    """Number of due times, up to a maximum."""
    reason: str = ""
    """Why there was no run."""


class PendingRun(msgspec.Struct, frozen=True):
    """A run that must be started, unless it already has been."""

    due: datetime
    is_queued: bool = False
    """Whether the run waits for the previous one to end."""


class ClockJump(msgspec.Struct, frozen=True):
    """Due times that were missed together. They become due again if the clock is set back."""

    since: datetime
    """Last due time that was handled before the missed ones."""
    last: datetime
    """Last missed due time."""
    later: tuple[datetime, ...] = ()
    """Due times that were handled since then."""


class ScheduleRecord(msgspec.Struct, frozen=True):
    """The state of a schedule. It is written before each start, and again after it."""

    schedule: str
    """The value of `every:` as JSON."""
    handled: datetime
    """Time up to which all due times are handled."""
    pending: PendingRun | None = None
    jump: ClockJump | None = None
    ahead: tuple[datetime, ...] = ()
    """Due times after `handled` that were handled before the clock was set back."""
    history: tuple[ScheduleOutcome, ...] = ()
    """The last outcomes, oldest first."""

    def add_outcomes(self, *outcomes: ScheduleOutcome) -> "ScheduleRecord":
        """Add outcomes to the record. Runs that were skipped for the same reason are merged."""
        history = list(self.history)
        for outcome in outcomes:
            before = history[-1] if history else None
            if before and _is_repeated(before, outcome):
                history[-1] = msgspec.structs.replace(
                    outcome, first=before.first, count=before.count + outcome.count
                )
            else:
                history.append(outcome)
        return msgspec.structs.replace(self, history=tuple(history[-SCHEDULE_HISTORY:]))

    def confirm_start(self, now: datetime) -> "ScheduleRecord":
        """Return the record after the pending run, if any, was started."""
        if self.pending is None:
            return self
        due = self.pending.due
        return msgspec.structs.replace(self, pending=None).add_outcomes(
            ScheduleOutcome("started", due, due, now)
        )


def _is_repeated(before: ScheduleOutcome, outcome: ScheduleOutcome) -> bool:
    return (
        outcome.kind == before.kind == "skipped"
        and outcome.reason == before.reason
        and outcome.first > before.last
    )


def select_news(
    record: ScheduleRecord, outcomes: Sequence[ScheduleOutcome]
) -> list[ScheduleOutcome]:
    """Return the outcomes that need a notification: no starts, and no repeated outcomes."""
    last = record.history[-1] if record.history else None
    news = list[ScheduleOutcome]()
    for outcome in outcomes:
        if outcome.kind != "started" and not (last and _is_repeated(last, outcome)):
            news.append(outcome)
        last = outcome
    return news
