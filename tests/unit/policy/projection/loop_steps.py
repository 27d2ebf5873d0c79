"""Steps of a loop's life, each folded into a projection."""

from datetime import UTC, datetime, timedelta

from rekindle.documents import events
from rekindle.documents.state import State
from rekindle.policy.projection import open_loops, state_document
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import LoopSettings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LIMITS = LoopSettings()


def after(*happened: events.AnyEvent) -> Projection:
    return fold_events(Projection("a"), happened)


def added(identity: str, text: str, ts: datetime, before: Projection | None = None) -> Projection:
    before = before or Projection("a")
    event = open_loops.propose_loop(before.loops, identity, text, ts)
    assert event is not None
    return fold_events(before, [event])


def resolved(identity: str, reason: str, ts: datetime, before: Projection) -> Projection:
    event = open_loops.resolve_loop(before.loops, identity, reason, ts)
    assert event is not None
    return fold_events(before, [event])


def adopted(before: Projection, edited: State, now: datetime) -> Projection:
    event = state_document.adopt_state(before, edited, now)
    assert event is not None
    return fold_events(before, [event])
