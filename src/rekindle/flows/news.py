"""What the kept transcripts hold that no brief has told yet.

How far each was told is in the log, with the brief that told it: of a transcript only what comes
behind that place is read, and of those that nobody has written to since, nothing. What we asked a
session ourselves is nobody's word.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from rekindle.documents.event import Told
from rekindle.documents.jsontext import fingerprint
from rekindle.documents.transcript import Turn, instant
from rekindle.errors import StoreError
from rekindle.flows.session_turns import without_primer
from rekindle.policy.mornings import Briefed
from rekindle.policy.settings import BRIEF_FIRST_DAYS, BRIEF_OVERLAP_DAYS
from rekindle.stores.files.transcripts import Kept, TranscriptArchive

_DAY_SECONDS = 86_400.0


class News:
    """Turns, oldest first, numbered through; at most so many characters, the newest."""

    def __init__(
        self,
        archive: TranscriptArchive,
        briefed: Briefed,
        now: datetime,
        room: int,
        ours: "Ours | None" = None,
    ) -> None:
        self._archive, self._ours = archive, ours or Ours()
        self.told: dict[str, Told] = {}
        self.read_bytes = 0
        self.left_out = 0
        self.unread: int
        """How many sessions were over long before the first brief."""
        found: list[deque[Turn]] = []
        horizon = _horizon(briefed, now)
        self._first = _instant(horizon) if briefed.until is None else ""
        self.unread = archive.older_than(horizon) if self._first else 0
        for kept in reversed(archive.written_since(horizon)):
            place = briefed.told.get(kept.name)
            before = place.told if place else Told()
            told = Told(kept.size, kept.cursor.number - 1, _mark(kept))
            if (before.at, before.rest) == (told.at, told.rest):
                continue
            self.told[kept.name] = told
            if room <= 0:
                self.left_out += max(0, told.turn - before.turn) + len(kept.rest)
                continue
            turns, room = self._newest(kept, before, room)
            found.append(turns)
        self.turns = tuple(
            msgspec.structs.replace(turn, number=number)
            for number, turn in enumerate(self._once(_in_order(found)), 1)
        )

    def _once(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The task is said once, however many sessions are given it: it takes back nothing."""
        is_said = False
        for turn in turns:
            is_task = turn.who == "person" and turn.text == self._ours.task
            again = msgspec.structs.replace(turn, who="cli", text="")
            yield again if is_task and is_said else turn
            is_said = is_said or is_task

    def _newest(self, kept: Kept, before: Told, room: int) -> tuple[deque[Turn], int]:
        """The newest of its turns that there is room for, and how much room is left."""
        start = before.at if before.at <= kept.size else 0
        self.read_bytes += kept.size - start
        turns: deque[Turn] = deque()
        with suppress(StoreError):  # damaged: what stands before the damage is told
            for turn in self._theirs(kept, start, before):
                if self._first and "" < instant(turn.at) < self._first:
                    self.left_out += 1
                    continue
                turns.append(turn)
                room -= _size(turn)
                while room < 0 and len(turns) > 1:
                    room += _size(turns.popleft())
                    self.left_out += 1
        return turns, room

    def _theirs(self, kept: Kept, start: int, before: Told) -> Iterator[Turn]:
        main = (
            turn
            for turn in self._archive.turns(kept, start)
            if not turn.thread and turn.number > before.turn
        )
        return without_primer(
            main,
            self._ours.task,
            is_supervised=kept.session in self._ours.sessions,
            is_begun=before.turn > 0,
        )


class Ours(msgspec.Struct, frozen=True):
    """The sessions that a supervisor has started, and what for."""

    sessions: frozenset[str] = frozenset()
    task: str = ""


def _horizon(briefed: Briefed, now: datetime) -> float:
    """What was last written to before this was told long ago; a clock set back tells nothing.

    Where no brief was ever written, or none for which a model could be had, it is history.
    """
    if briefed.until is None:
        return now.timestamp() - BRIEF_FIRST_DAYS * _DAY_SECONDS
    if briefed.until > now:
        return 0.0
    return briefed.until.timestamp() - BRIEF_OVERLAP_DAYS * _DAY_SECONDS


def _instant(then: float) -> str:
    return instant(datetime.fromtimestamp(then, UTC).isoformat())


def _mark(kept: Kept) -> str:
    return fingerprint(msgspec.json.encode(kept.rest))[:16] if kept.rest else ""


def _size(turn: Turn) -> int:
    return len(turn.text) + sum(len(call.about) + len(call.shown) for call in turn.calls)


def _in_order(parts: Iterable[Iterable[Turn]]) -> list[Turn]:
    """By time; what tells none stays behind what it follows."""
    placed: list[tuple[str, int, Turn]] = []
    for turns in parts:
        at = ""
        for turn in turns:
            at = max(at, instant(turn.at))
            placed.append((at, len(placed), turn))
    placed.sort(key=lambda one: one[:2])
    return [turn for _, _, turn in placed]
