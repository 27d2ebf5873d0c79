"""Render a projection as state.json, and adopt edits to that file."""

from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents import events
from rekindle.documents.state import State
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection, TimedValue
from rekindle.policy.settings import runtime_settings


def make_state(
    projection: Projection, now: datetime, limits: runtime_settings.LoopSettings
) -> State:
    """Return the state.json content for a projection."""
    return State(
        agent=projection.agent,
        seq=projection.seq,
        last_active=projection.last_active,
        open_loops=open_loops.list_open_loops(projection.loops, now, limits),
        resolved=open_loops.list_recently_resolved(projection.loops, now, limits),
        numbers={key: entry.value for key, entry in projection.numbers.items()},
        extra={key: entry.value for key, entry in projection.extra.items()},
    )


def adopt_state(projection: Projection, edited: State, now: datetime) -> events.StateAdopted | None:
    """Return the event that adopts an edit to state.json, or None if nothing changed.

    `projection` is the one that the file was written from. With a newer one, every later change
    would look as if the edit had reverted it.
    """
    adopted_loops = open_loops.adopt_loops(projection.loops, edited, now)
    numbers = _find_changed_values(projection.numbers, edited.numbers)
    extra = _find_changed_values(projection.extra, edited.extra)
    replaced = [
        values[key].ts
        for values, news in ((projection.numbers, numbers), (projection.extra, extra))
        for key in news
        if key in values
    ]
    adopted = msgspec.structs.replace(
        adopted_loops,
        ts=open_loops.stamp_after(adopted_loops.ts, *replaced),
        numbers=numbers,
        extra=extra,
        last_active=edited.last_active,
    )
    is_later = edited.last_active is not None and (
        projection.last_active is None or edited.last_active > projection.last_active
    )
    has_loops = adopted.open_loops or adopted.resolved or adopted.corrections
    return adopted if has_loops or adopted.numbers or adopted.extra or is_later else None


def _find_changed_values(values: dict[str, TimedValue], edited: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in edited.items()
        if key not in values
        or open_loops.encode_value(values[key].value) != open_loops.encode_value(value)
    }
