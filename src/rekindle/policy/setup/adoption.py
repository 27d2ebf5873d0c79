"""Plan the adoption of documents written by another tool, before anything is written.

An unreadable state is refused, because adopting only part of it would be misleading. A relay
without a directive, or a brief without a title, is left out and reported if there are other
documents.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from rekindle.documents import brief as briefs
from rekindle.documents import relay as relays
from rekindle.documents import state as states
from rekindle.documents.brief import Brief
from rekindle.documents.events import LoopResolved
from rekindle.documents.relay import Relay
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.errors import CheckFailedError, DocumentError, NewerSchemaError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import (
    derive_id,
    to_one_line,
)
from rekindle.policy.projection.open_loops import LoopMap
from rekindle.policy.relay.relay_check import classify_relay
from rekindle.policy.settings.runtime_settings import ADOPT_DEPTH
from rekindle.thresholds.texts import LOOP_ID_CHARACTERS

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class ResolvedLine(msgspec.Struct, frozen=True):
    """A line in resolved.jsonl."""

    id: str
    reason: str
    when: datetime | None


class AdoptionPlan(msgspec.Struct, frozen=True):
    relay: Relay | None = None
    brief: Brief | None = None
    state: State | None = None
    closings: tuple[ResolvedLine, ...] = ()
    left: tuple[str, ...] = ()
    """Documents and lines that cannot be adopted, with the reasons."""


def plan_adoption(
    cap: int,
    *,
    relay: bytes | None,
    brief: bytes | None,
    state: bytes | None,
    resolved: bytes | None,
) -> AdoptionPlan:
    left: list[str] = []
    is_alone = brief is None and state is None and resolved is None
    closings, spoiled = parse_resolved_lines(resolved or b"")
    if spoiled:
        left.append(f"resolved.jsonl has unreadable lines: {spoiled}")
    return AdoptionPlan(
        relay=None if relay is None else _read_relay(relay, cap, left, is_alone=is_alone),
        brief=None if brief is None else _read_brief(brief, left),
        state=None if state is None else _read_state(state),
        closings=closings,
        left=tuple(left),
    )


def select_open_loops(state: State, closings: Mapping[str, ResolvedLine]) -> tuple[OpenLoop, ...]:
    """Return the open loops, except those that were resolved on a later day.

    A loop that was resolved on the day it was added may have been reopened, so it stays open.
    """
    return tuple(
        loop
        for loop in state.open_loops
        if not (
            (closing := closings.get(loop.id))
            and closing.when
            and loop.added
            and closing.when.date().isoformat() > loop.added
        )
    )


def collect_resolutions(
    state: State, closings: Mapping[str, ResolvedLine], loops: LoopMap, now: datetime
) -> tuple[list[LoopResolved], tuple[Resolution, ...]]:
    """Return events for resolved loops unknown here, and resolutions for loops open here."""
    still_open = {loop.id for loop in select_open_loops(state, closings)}
    resolved = {
        item.id: ResolvedLine(item.id, item.reason, states.parse_time(item.resolved_date))
        for item in state.resolved
    } | dict(closings)
    closed = [line for line in resolved.values() if line.id not in still_open]
    events = [
        LoopResolved(ts=_clamp_time(line.when, now), id=line.id, reason=line.reason)
        for line in closed
        if line.id not in loops
    ]
    ours = tuple(
        Resolution(line.id, line.reason, "")
        for line in closed
        if line.id in loops and loops[line.id].is_open
    )
    return events, ours


def _clamp_time(when: datetime | None, now: datetime) -> datetime:
    return when if when and _EARLIEST <= when <= now else now


def _read_relay(data: bytes, cap: int, left: list[str], *, is_alone: bool) -> Relay | None:
    parsed = relays.parse(data.removeprefix(b"\xef\xbb\xbf"))
    report = classify_relay(parsed, cap)
    if report.usable:
        return parsed
    if is_alone:
        raise CheckFailedError(
            f"this relay cannot be used: {report.findings[0].message}",
            hint="add a `## Next Action` with one directive, then adopt the relay again",
        )
    left.append(f"the relay: {report.findings[0].message}")
    return None


def _read_state(data: bytes) -> State:
    try:
        raw = json_codec.decode_object(data, "state.json", schema=states.SCHEMA)
        if _measure_depth(raw) > ADOPT_DEPTH:
            raise DocumentError("state.json", "is nested too deeply")  # noqa: TRY301 - shared hint
        return states.parse(data)
    except NewerSchemaError:
        raise
    except DocumentError as error:
        error.hint = "fix it, or adopt only the relay, by giving its path"
        raise


def _measure_depth(value: Any) -> int:
    """Return the nesting depth of a value, but at most one more than the limit."""
    level, depth = [value], 0
    while level and depth <= ADOPT_DEPTH:
        inner = (item.values() if isinstance(item, dict) else item for item in level)
        level = [deeper for item in inner for deeper in item if isinstance(deeper, dict | list)]
        depth += 1
    return depth


def _read_brief(data: bytes, left: list[str]) -> Brief | None:
    try:
        return briefs.parse(data)
    except NewerSchemaError:
        raise
    except DocumentError as error:
        left.append(f"the brief: {error.reason}")
        return None


def parse_resolved_lines(data: bytes) -> tuple[tuple[ResolvedLine, ...], int]:
    """Return the last resolution of each loop, and the number of unusable lines."""
    lines_by_id: dict[str, ResolvedLine] = {}
    spoiled = 0
    for line in filter(bytes.strip, data.splitlines()):
        try:
            row = json_codec.decode_foreign(line, "resolved.jsonl")
        except DocumentError:
            row = None
        closing = _parse_resolved_line(row)
        if closing is None:
            spoiled += 1
        else:
            lines_by_id[closing.id] = closing
    return tuple(lines_by_id.values()), spoiled


def _parse_resolved_line(row: object) -> ResolvedLine | None:
    if not isinstance(row, dict):
        return None
    identity, reason = (
        value if isinstance(value := row.get(key), str) else "" for key in ("id", "reason")
    )
    if not identity and not reason:
        return None
    when = states.parse_time(row.get("ts")) or states.parse_time(row.get("resolved_date"))
    line = to_one_line(reason or "resolved")
    return ResolvedLine(to_one_line(identity, LOOP_ID_CHARACTERS) or derive_id(line), line, when)
