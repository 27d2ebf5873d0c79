"""Open loops: what an agent must not forget, and what takes one off the list.

A loop is the set of its marks, each an opening or a closing at a moment. Sets merge the
same way in any order and any number of times, so two writers, a replay or a duplicate can
neither lose a loop nor bring a resolved one back. The last mark decides: only an explicit
resolution closes a loop, and a later opening opens it again, with its history.

A writer stamps its mark later than every mark it has seen, even when the clock has been set
back: what somebody just resolved must not stay open because yesterday was in the future.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Any

import msgspec

from rekindle.documents import jsontext
from rekindle.documents.event import (
    AnyEvent,
    Correction,
    LoopAdded,
    LoopResolved,
    StateAdopted,
    Unrecognised,
)
from rekindle.documents.identity import loop_id, one_line
from rekindle.documents.state import OpenLoop, Resolution, State
from rekindle.errors import UnknownLoopError, UsageError
from rekindle.policy import settings

_TICK = timedelta(microseconds=1)
_DAY = timedelta(days=1)


def select_resolving(happened: Iterable[AnyEvent | Unrecognised]) -> list[AnyEvent]:
    """Return the events that resolve a loop."""
    return [
        event
        for event in happened
        if isinstance(event, LoopResolved) or (isinstance(event, StateAdopted) and event.resolved)
    ]


class Mark(msgspec.Struct, frozen=True, omit_defaults=True):
    ts: datetime
    text: str
    """What is open, or why it was closed."""
    closes: bool = False
    corrects: datetime | None = None
    """When somebody found other words for the mark before it: they neither open nor close."""
    added: str = ""
    extra: dict[str, Any] | None = None
    """Fields that we do not know; None: nothing was said about them, what stood there stays."""

    @property
    def order(self) -> tuple[datetime, int, datetime, str, str, bytes]:
        """By time; at the same instant an opening counts last, for a loop must not be lost."""
        extra = b"" if self.extra is None else as_written(self.extra)
        # A correction comes before anything else of its instant, the newest correction last.
        rank = 0 if self.corrects else 1 if self.closes else 2
        return (self.ts, rank, self.corrects or self.ts, self.text, self.added, extra)

    @property
    def day(self) -> str:
        return self.ts.astimezone(UTC).date().isoformat()


class Loop(msgspec.Struct, frozen=True):
    id: str
    marks: tuple[Mark, ...]

    @property
    def is_open(self) -> bool:
        return not self.marks[-1].closes

    @property
    def text(self) -> str:
        return next((mark.text for mark in reversed(self.marks) if not mark.closes), "")

    @property
    def added(self) -> str:
        """The day of the opening that still stands: a loop that was reopened is young again."""
        said = ""
        first = self.marks[-1]
        for mark in reversed(self.marks):
            if mark.closes:
                break
            said = said or mark.added
            first = mark
        return said or first.day

    @property
    def opened_at(self) -> datetime:
        """When it was opened that it is open since; other words for it came later."""
        first = self.marks[-1]
        for mark in reversed(self.marks):
            if mark.closes:
                break
            first = mark
        return first.ts

    @property
    def times_reopened(self) -> int:
        return sum(
            before.closes and not after.closes
            for before, after in zip(self.marks, self.marks[1:], strict=False)
        )

    def as_open(self, today: date, stale_after_days: int) -> OpenLoop:
        said = (mark.extra for mark in reversed(self.marks) if not mark.closes)
        extra = next((extra for extra in said if extra is not None), {})
        return OpenLoop(
            self.id, self.text, self.added, is_stale(self.added, today, stale_after_days), extra
        )

    def as_resolved(self) -> Resolution:
        last = self.marks[-1]
        return Resolution(self.id, last.text, last.day, last.extra or {})


Loops = Mapping[str, Loop]


def merge(loops: dict[str, Loop], identity: str, mark: Mark) -> None:
    """Add a mark to a loop; one that it has already changes nothing."""
    known = loops.get(identity)
    marks = known.marks if known else ()
    place = len(marks)
    if marks and mark.order <= marks[-1].order:  # most marks come last: look only where not
        place = bisect_left(marks, mark.order, key=lambda one: one.order)
        if marks[place].order == mark.order:
            return
    loops[identity] = Loop(identity, (*marks[:place], mark, *marks[place:]))


def is_stale(added: str, today: date, after_days: int) -> bool:
    """Older than `after_days` by date; a date that cannot be read, or lies ahead, is not stale."""
    try:
        return (today - date.fromisoformat(added)).days > after_days
    except ValueError:
        return False


def add(loops: Loops, identity: str, text: str, now: datetime) -> LoopAdded | None:
    """The event that opens, rewords or reopens a loop; None where it stands so already."""
    identity = loop_id(identity)
    line = one_line(text)
    if not line:
        raise UsageError("an open loop needs a text", hint="say in a sentence what is open")
    known = loops.get(identity)
    return opened(known, line, now) if known else LoopAdded(ts=now, id=identity, text=line)


def opened(known: Loop, line: str, now: datetime) -> LoopAdded | None:
    """The event by which a loop that is known is open, in these words; None where it is so."""
    if known.is_open and known.text == line:
        return None
    return LoopAdded(ts=_after(now, known), id=known.id, text=line)


def resolve(loops: Loops, identity: str, reason: str, now: datetime) -> LoopResolved | None:
    """The event that closes a loop; None where it is closed already."""
    known = loops.get(identity)
    if known is None:
        like = get_close_matches(identity, loops, n=1)
        raise UnknownLoopError(identity, like[0] if like else None)
    line = one_line(reason)
    if not line:
        raise UsageError("a resolution needs a reason", hint="say in a sentence why it is done")
    if not known.is_open:
        return None
    return LoopResolved(ts=_after(now, known), id=identity, reason=line)


def adopt(loops: Loops, edited: State, now: datetime) -> StateAdopted:
    """What somebody who edited state.json wants; what they left out stays as it is.

    `loops` are those that the file was made from. A loop that it listed already was only reworded:
    should it have been resolved meanwhile, it stays resolved.
    """
    written = [_with_text(loops.get(loop.id), loop) for loop in edited.open_loops]
    changed = [loop for loop in written if _says_something_new(loops.get(loop.id), loop)]
    opened = [loop for loop in changed if not _stands(loops, loop.id, is_open=True)]
    open_ids = {loop.id for loop in edited.open_loops}
    settled = [
        item
        for item in edited.resolved
        if item.id not in open_ids and _closes_something(loops.get(item.id), item)
    ]
    closed = [item for item in settled if not _stands(loops, item.id, is_open=False)]
    touched = [one.id for one in opened] + [one.id for one in closed]
    corrected = [mark.corrects for loop in loops.values() for mark in loop.marks if mark.corrects]
    return StateAdopted(
        ts=later(_after(now, *(loops.get(identity) for identity in touched)), *corrected),
        open_loops=tuple(opened),
        resolved=tuple(closed),
        corrections=(
            *(_reworded(loops[loop.id], loop) for loop in changed if loop not in opened),
            *(_recounted(loops[item.id], item) for item in settled if item not in closed),
        ),
    )


def open_now(loops: Loops, now: datetime, limits: settings.Loops) -> tuple[OpenLoop, ...]:
    """What is open, oldest first."""
    today = now.date()
    found = [
        loop.as_open(today, limits.stale_after_days) for loop in loops.values() if loop.is_open
    ]
    return tuple(sorted(found, key=lambda loop: (loop.added, loop.id)))


def line(one: OpenLoop, *more: str) -> str:
    """An open loop on a line, for whoever has to know of it."""
    said = (f"since {one.added}", "stale" if one.stale else "", *more)
    return f"{one.id}: {one.text} ({', '.join(filter(None, said))})"


def resolved_lately(loops: Loops, now: datetime, limits: settings.Loops) -> tuple[Resolution, ...]:
    """What was resolved within the time that state.json shows it, newest first."""
    found = [
        loop
        for loop in loops.values()
        if not loop.is_open and (now - loop.marks[-1].ts) / _DAY <= limits.keep_resolved_days
    ]
    found.sort(key=lambda loop: (loop.marks[-1].ts, loop.id), reverse=True)
    return tuple(loop.as_resolved() for loop in found)


def as_written(value: Any) -> bytes:
    """A value as state.json has it: to Python 1, 1.0 and true are equal, in a file they are not."""
    return jsontext.encode(value, "state.json")


def later(now: datetime, *seen: datetime) -> datetime:
    """Now, or just after the latest of what was seen, should the clock have been set back."""
    return max([now, *(ts + _TICK for ts in seen)])


def _with_text(known: Loop | None, loop: OpenLoop) -> OpenLoop:
    """Whoever wrote the id alone said nothing about the text."""
    return msgspec.structs.replace(loop, text=loop.text or (known.text if known else ""))


def _says_something_new(known: Loop | None, loop: OpenLoop) -> bool:
    if known is None or not known.is_open:
        return True
    stands = known.as_open(date.min, 0)
    if loop.added and loop.added != stands.added:
        return True
    return stands.text != loop.text or as_written(stands.extra) != as_written(loop.extra)


def _stands(loops: Loops, identity: str, *, is_open: bool) -> bool:
    known = loops.get(identity)
    return known is not None and known.is_open is is_open


def _reworded(known: Loop, loop: OpenLoop) -> Correction:
    return Correction(_corrected_at(known), loop.id, loop.text, added=loop.added, extra=loop.extra)


def _recounted(known: Loop, item: Resolution) -> Correction:
    return Correction(_corrected_at(known), item.id, item.reason, closes=True, extra=item.extra)


def _corrected_at(known: Loop) -> datetime:
    """Just after the word that opened or closed it: however often it is corrected, never later."""
    return next(mark.ts for mark in reversed(known.marks) if not mark.corrects) + _TICK


def _closes_something(known: Loop | None, item: Resolution) -> bool:
    if known is None or known.is_open:
        return True
    stands = known.as_resolved()
    return stands.reason != item.reason or as_written(stands.extra) != as_written(item.extra)


def _after(now: datetime, *known: Loop | None) -> datetime:
    return later(now, *(loop.marks[-1].ts for loop in known if loop))
