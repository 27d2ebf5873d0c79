"""Open loops: the items that an agent must not forget, and their resolutions.

A loop is a set of marks, each of which opens or closes the loop at a certain time. Sets can be
merged in any order and any number of times. Two writers, a replay or a duplicate can therefore
neither lose a loop nor reopen a resolved one. The last mark decides: only an explicit resolution
closes a loop, and a later opening reopens it and keeps its history.

A writer gives its mark a later time than every mark that it has seen, even if the clock was set
back. Otherwise, an earlier mark with a time in the future could hide a resolution.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Any

import msgspec

from rekindle.documents.events import (
    AnyEvent,
    LoopAdded,
    LoopCorrection,
    LoopResolved,
    StateAdopted,
    UnknownEvent,
)
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.errors import NotFoundError, UsageError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import (
    require_loop_id,
    to_one_line,
)
from rekindle.policy.settings import runtime_settings

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def select_resolving_events(happened: Iterable[AnyEvent | UnknownEvent]) -> list[AnyEvent]:
    """Return the events that resolve a loop."""
    return [
        event
        for event in happened
        if isinstance(event, LoopResolved) or (isinstance(event, StateAdopted) and event.resolved)
    ]


class LoopMark(msgspec.Struct, frozen=True, omit_defaults=True):
    ts: datetime
    text: str
    """Text of the loop, or the reason for closing it."""
    closes: bool = False
    corrects: datetime | None = None
    """Time of the correction, if this mark only corrects the text of the previous mark; None if it
    opens or closes the loop.
    """
    added: str = ""
    extra: dict[str, Any] | None = None
    """Unknown fields; None to keep the previous ones."""
    by: str = ""
    """Agent that added the mark; empty for a person or a brief."""

    @property
    def order(self) -> tuple[datetime, int, datetime, str, str, bytes, str]:
        """Return the sort key: by time, and openings last, so that no loop is lost."""
        extra = b"" if self.extra is None else encode_value(self.extra)
        # Corrections sort before other marks with the same time, and the newest correction is last.
        rank = 0 if self.corrects else 1 if self.closes else 2
        return (self.ts, rank, self.corrects or self.ts, self.text, self.added, extra, self.by)

    @property
    def day(self) -> str:
        return self.ts.astimezone(UTC).date().isoformat()


class Loop(msgspec.Struct, frozen=True):
    id: str
    marks: tuple[LoopMark, ...]

    @property
    def is_open(self) -> bool:
        return not self.marks[-1].closes

    @property
    def text(self) -> str:
        return next((mark.text for mark in reversed(self.marks) if not mark.closes), "")

    @property
    def added(self) -> str:
        """Return the date on which the loop was opened, or last reopened."""
        date_given = ""
        first = self.marks[-1]
        for mark in reversed(self.marks):
            if mark.closes:
                break
            date_given = date_given or mark.added
            first = mark
        return date_given or first.day

    @property
    def opened_at(self) -> datetime:
        """Return when the loop was opened, or last reopened.

        Rewording does not change this time.
        """
        return self._opening.ts

    @property
    def opened_by(self) -> str:
        """Return the agent that opened the loop, or "" for a person or a brief."""
        return self._opening.by

    @property
    def _opening(self) -> LoopMark:
        first = self.marks[-1]
        for mark in reversed(self.marks):
            if mark.closes:
                break
            first = mark
        return first

    @property
    def times_reopened(self) -> int:
        return sum(
            before.closes and not after.closes
            for before, after in zip(self.marks, self.marks[1:], strict=False)
        )

    def to_open_loop(self, today: date, stale_after_days: int) -> OpenLoop:
        extras = (mark.extra for mark in reversed(self.marks) if not mark.closes)
        extra = next((extra for extra in extras if extra is not None), {})
        return OpenLoop(
            self.id, self.text, self.added, is_stale(self.added, today, stale_after_days), extra
        )

    def to_resolution(self) -> Resolution:
        last = self.marks[-1]
        return Resolution(self.id, last.text, last.day, last.extra or {})


LoopMap = Mapping[str, Loop]


def add_mark(loops: dict[str, Loop], identity: str, mark: LoopMark) -> None:
    """Add a mark to a loop, unless the loop already has it."""
    loop = loops.get(identity)
    marks = loop.marks if loop else ()
    position = len(marks)
    if marks and mark.order <= marks[-1].order:  # most marks are appended at the end
        position = bisect_left(marks, mark.order, key=lambda existing: existing.order)
        if marks[position].order == mark.order:
            return
    loops[identity] = Loop(identity, (*marks[:position], mark, *marks[position:]))


def is_stale(added: str, today: date, after_days: int) -> bool:
    """Return whether a date is more than `after_days` days ago, or False if it is invalid."""
    try:
        return (today - date.fromisoformat(added)).days > after_days
    except ValueError:
        return False


def propose_loop(loops: LoopMap, identity: str, text: str, now: datetime) -> LoopAdded | None:
    """Return the event that opens, rewords or reopens a loop, or None if nothing changes."""
    identity = require_loop_id(identity)
    line = to_one_line(text)
    if not line:
        raise UsageError("an open loop needs a text", hint="describe the open work in one sentence")
    loop = loops.get(identity)
    return reopen_loop(loop, line, now) if loop else LoopAdded(ts=now, id=identity, text=line)


def reopen_loop(loop: Loop, line: str, now: datetime) -> LoopAdded | None:
    """Return the event that reopens or rewords a loop, or None if it is open with this text."""
    if loop.is_open and loop.text == line:
        return None
    return LoopAdded(ts=_stamp_after_marks(now, loop), id=loop.id, text=line)


def require_loop(loops: LoopMap, identity: str) -> Loop:
    loop = loops.get(identity)
    if loop is None:
        similar = get_close_matches(identity, loops, n=1)
        raise NotFoundError(
            f"no loop with id {identity!r}",
            hint=f"did you mean `{similar[0]}`?" if similar else "list them with `rekindle loops`",
        )
    return loop


def resolve_loop(loops: LoopMap, identity: str, reason: str, now: datetime) -> LoopResolved | None:
    """Return the event that closes a loop, or None if it is already closed."""
    loop = require_loop(loops, identity)
    line = to_one_line(reason)
    if not line:
        raise UsageError(
            "a resolution needs a reason", hint="explain in one sentence why it is done"
        )
    if not loop.is_open:
        return None
    return LoopResolved(ts=_stamp_after_marks(now, loop), id=identity, reason=line)


def adopt_loops(loops: LoopMap, edited: State, now: datetime) -> StateAdopted:
    """Return the event that adopts an edit to state.json.

    Loops that are missing from the file stay unchanged. `loops` contains the loops that the file
    was written from. If the file already listed a loop as open, the edit only rewords it. A loop
    that has been resolved since then stays resolved.
    """
    written = [_keep_text(loops.get(loop.id), loop) for loop in edited.open_loops]
    changed = [loop for loop in written if _has_news(loops.get(loop.id), loop)]
    opened = [loop for loop in changed if not _is_in_state(loops, loop.id, is_open=True)]
    open_ids = {loop.id for loop in edited.open_loops}
    settled = [
        item
        for item in edited.resolved
        if item.id not in open_ids and _resolves_loop(loops.get(item.id), item)
    ]
    closed = [item for item in settled if not _is_in_state(loops, item.id, is_open=False)]
    touched = [loop.id for loop in opened] + [item.id for item in closed]
    corrected = [mark.corrects for loop in loops.values() for mark in loop.marks if mark.corrects]
    return StateAdopted(
        ts=stamp_after(
            _stamp_after_marks(now, *(loops.get(identity) for identity in touched)), *corrected
        ),
        open_loops=tuple(opened),
        resolved=tuple(closed),
        corrections=(
            *(_correct_text(loops[loop.id], loop) for loop in changed if loop not in opened),
            *(_correct_resolution(loops[item.id], item) for item in settled if item not in closed),
        ),
    )


def list_open_loops(
    loops: LoopMap, now: datetime, limits: runtime_settings.LoopSettings
) -> tuple[OpenLoop, ...]:
    """Return the open loops, oldest first."""
    today = now.date()
    open_items = [
        loop.to_open_loop(today, limits.stale_after_days) for loop in loops.values() if loop.is_open
    ]
    return tuple(sorted(open_items, key=lambda loop: (loop.added, loop.id)))


def render_loop_line(loop: OpenLoop, *more: str) -> str:
    """Render an open loop as one line."""
    details = (f"since {loop.added}", "stale" if loop.stale else "", *more)
    return f"{loop.id}: {loop.text} ({', '.join(filter(None, details))})"


def list_recently_resolved(
    loops: LoopMap, now: datetime, limits: runtime_settings.LoopSettings
) -> tuple[Resolution, ...]:
    """Return the resolutions that are recent enough for state.json, newest first."""
    resolved = [
        loop
        for loop in loops.values()
        if not loop.is_open and (now - loop.marks[-1].ts) / _DAY <= limits.keep_resolved_days
    ]
    resolved.sort(key=lambda loop: (loop.marks[-1].ts, loop.id), reverse=True)
    return tuple(loop.to_resolution() for loop in resolved)


def encode_value(value: Any) -> bytes:
    """Encode a value as JSON for comparison, because Python treats 1, 1.0 and True as equal."""
    return json_codec.encode(value, "state.json")


def stamp_after(now: datetime, *times: datetime) -> datetime:
    """Return `now`, or a time just after the latest of `times` if that is later."""
    return max([now, *(ts + _TICK for ts in times)])


def _keep_text(previous: Loop | None, loop: OpenLoop) -> OpenLoop:
    """Return the edited loop, with its previous text if the edit has none."""
    return msgspec.structs.replace(loop, text=loop.text or (previous.text if previous else ""))


def _has_news(previous: Loop | None, loop: OpenLoop) -> bool:
    if previous is None or not previous.is_open:
        return True
    current = previous.to_open_loop(date.min, 0)
    if loop.added and loop.added != current.added:
        return True
    return current.text != loop.text or encode_value(current.extra) != encode_value(loop.extra)


def _is_in_state(loops: LoopMap, identity: str, *, is_open: bool) -> bool:
    loop = loops.get(identity)
    return loop is not None and loop.is_open is is_open


def _correct_text(previous: Loop, loop: OpenLoop) -> LoopCorrection:
    return LoopCorrection(
        _find_correction_time(previous), loop.id, loop.text, added=loop.added, extra=loop.extra
    )


def _correct_resolution(previous: Loop, item: Resolution) -> LoopCorrection:
    return LoopCorrection(
        _find_correction_time(previous), item.id, item.reason, closes=True, extra=item.extra
    )


def _find_correction_time(loop: Loop) -> datetime:
    """Return the time just after the loop was last opened or closed."""
    return next(mark.ts for mark in reversed(loop.marks) if not mark.corrects) + _TICK


def _resolves_loop(loop: Loop | None, item: Resolution) -> bool:
    if loop is None or loop.is_open:
        return True
    current = loop.to_resolution()
    return current.reason != item.reason or encode_value(current.extra) != encode_value(item.extra)


def _stamp_after_marks(now: datetime, *loops: Loop | None) -> datetime:
    return stamp_after(now, *(loop.marks[-1].ts for loop in loops if loop))
