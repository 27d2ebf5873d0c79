"""Build one agent's night from its events and from the turns of its transcripts."""

from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo

import msgspec

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.manifest_keys import Budget
from rekindle.documents.screens.agent_night import AgentNight, NightSpan, WindowPoint
from rekindle.policy.night import night_points
from rekindle.policy.night.night_marks import find_marks
from rekindle.policy.night.night_spans import find_spans
from rekindle.policy.night.timeline import make_lines
from rekindle.thresholds.screens import NIGHT_HOURS

_PERIOD_STARTS = (
    events.AgentCreated,
    events.LaunchStarted,
    events.LaunchEnded,
    events.WaitStarted,
    events.SafeModeEntered,
    events.RunStarted,
    events.RunEnded,
)
"""Events that show what a supervised agent was doing afterwards."""
_SILENT = frozenset(
    {
        events.Heartbeat,
        events.PromptSubmitted,
        events.PrimerGiven,
        events.SnapshotTaken,
        events.LoopAdded,
        events.LoopResolved,
    }
)
"""Frequent events that a night does not show."""


class NightInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The period, and facts about an agent that are not in its log."""

    now: datetime
    since: datetime | None = None
    """Start of the night; None for `night.hours` before its end."""
    until: datetime | None = None
    """End of the night; None for now."""
    zone: tzinfo | None = None
    """The operator's time zone; None for this process's time zone."""
    budget: Budget | None = None
    handoff_percent: int | None = None
    """Context-window usage at which a handoff is due; None if handoffs are disabled."""

    @property
    def end(self) -> datetime:
        return min(self.until or self.now, self.now)

    @property
    def start(self) -> datetime:
        return self.since or self.end - timedelta(hours=NIGHT_HOURS)


def shows_activity(event: AnyEvent | UnknownEvent) -> bool:
    """Return whether the last such event before a night is enough to know how the night began."""
    if isinstance(event, events.SessionStarted):
        return not event.launch and not event.visitor
    return isinstance(event, _PERIOD_STARTS)


def build_night(
    agent: str,
    happened: Sequence[AnyEvent | UnknownEvent],
    around: NightInputs,
    turns: Sequence[WindowPoint] = (),
) -> AgentNight:
    """Return the night for events in log order, which may include earlier and later ones.

    `turns` has the context-window usage from transcripts.
    """
    since, until = around.start, around.end
    seq = max((event.seq for event in happened), default=0)
    happened = [event for event in happened if type(event) not in _SILENT]

    def is_inside(at: datetime) -> bool:
        return since <= at <= until

    window = night_points.build_window_points(happened, turns)
    spend = night_points.build_spend_points(happened)
    budget = around.budget or Budget()
    return AgentNight(
        agent=agent,
        since=since,
        until=until,
        seq=seq,
        spans=tuple(
            span for span in find_spans(happened, around.now) if _overlaps(span, since, until)
        ),
        marks=tuple(mark for mark in find_marks(happened) if is_inside(mark.at)),
        lines=tuple(
            line for line in make_lines(happened, around.now, around.zone) if is_inside(line.at)
        ),
        window=night_points.thin_points(
            [point for point in window if is_inside(point.at)], lambda point: point.tokens
        ),
        window_size=night_points.find_window_size(happened),
        handoff_percent=around.handoff_percent,
        spend=night_points.thin_points(
            [point for point in spend if is_inside(point.at)], lambda point: point.tokens
        ),
        usd_cap=budget.usd,
        tokens_cap=budget.tokens,
    )


def _overlaps(span: NightSpan, since: datetime, until: datetime) -> bool:
    return span.start <= until and (span.end is None or span.end >= since)
