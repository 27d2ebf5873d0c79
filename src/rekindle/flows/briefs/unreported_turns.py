"""Read the turns in archived transcripts that no brief has reported yet.

For each brief, the log records how much of each transcript it covers. Only newer content is read,
and unchanged transcripts are skipped. Prompts that Rekindle sent to a session do not count as
statements by the user.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from rekindle.documents.events import BriefedPosition
from rekindle.documents.transcripts.turns import Turn, normalize_time
from rekindle.errors import StoreError
from rekindle.flows.transcripts.session_turns import strip_primers
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.briefs.brief_schedule import BriefState
from rekindle.policy.settings.runtime_settings import BRIEF_FIRST_DAYS, BRIEF_OVERLAP_DAYS
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive

_DAY_SECONDS = 86_400.0


class UnreportedTurns:
    """The newest unreported turns, up to `room` characters, numbered from the oldest."""

    def __init__(
        self,
        archive: TranscriptArchive,
        briefed: BriefState,
        now: datetime,
        room: int,
        ours: "SupervisedSessions | None" = None,
    ) -> None:
        self._archive, self._ours = archive, ours or SupervisedSessions()
        self.positions: dict[str, BriefedPosition] = {}
        """How much of each transcript has been reported, by transcript name."""
        self.read_bytes = 0
        self.left_out = 0
        self.too_old: int
        """Number of sessions that are too old for the first brief."""
        parts: list[deque[Turn]] = []
        horizon = _find_horizon(briefed, now)
        self._first = (
            ""
            if briefed.until
            else normalize_time(datetime.fromtimestamp(horizon, UTC).isoformat())
        )
        self.too_old = archive.older_than(horizon) if self._first else 0
        for transcript in reversed(archive.written_since(horizon)):
            position = briefed.covered.get(transcript.name)
            before = position.covered if position else BriefedPosition()
            reported = BriefedPosition(
                transcript.size, transcript.cursor.number - 1, _make_mark(transcript)
            )
            if (before.at, before.rest) == (reported.at, reported.rest):
                continue
            self.positions[transcript.name] = reported
            if room <= 0:
                self.left_out += max(0, reported.turn - before.turn) + len(transcript.rest)
                continue
            turns, room = self._read_newest(transcript, before, room)
            parts.append(turns)
        self.turns = tuple(
            msgspec.structs.replace(turn, number=number)
            for number, turn in enumerate(self._drop_repeated_task(_merge_by_time(parts)), 1)
        )

    def _drop_repeated_task(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """Yield the turns, with repetitions of the task blanked out."""
        is_reported = False
        for turn in turns:
            is_task = turn.who == "person" and turn.text == self._ours.task
            blanked = msgspec.structs.replace(turn, who="cli", text="")
            yield blanked if is_task and is_reported else turn
            is_reported = is_reported or is_task

    def _read_newest(
        self, transcript: ArchivedTranscript, before: BriefedPosition, room: int
    ) -> tuple[deque[Turn], int]:
        """Return the newest turns that fit, and how many characters are left."""
        start = before.at if before.at <= transcript.size else 0
        self.read_bytes += transcript.size - start
        turns: deque[Turn] = deque()
        with suppress(StoreError):  # if the transcript is damaged, use the turns before the damage
            for turn in self._read_turns(transcript, start, before):
                if self._first and "" < normalize_time(turn.at) < self._first:
                    self.left_out += 1
                    continue
                turns.append(turn)
                room -= _measure_turn(turn)
                while room < 0 and len(turns) > 1:
                    room += _measure_turn(turns.popleft())
                    self.left_out += 1
        return turns, room

    def _read_turns(
        self, transcript: ArchivedTranscript, start: int, before: BriefedPosition
    ) -> Iterator[Turn]:
        main = (
            turn
            for turn in self._archive.turns(transcript, start)
            if not turn.thread and turn.number > before.turn
        )
        return strip_primers(
            main,
            self._ours.task,
            is_supervised=transcript.session in self._ours.sessions,
            is_begun=before.turn > 0,
        )


class SupervisedSessions(msgspec.Struct, frozen=True):
    """Sessions that a supervisor started, and their task."""

    sessions: frozenset[str] = frozenset()
    task: str = ""


def _find_horizon(briefed: BriefState, now: datetime) -> float:
    """Return the time before which transcripts do not need to be read.

    The first brief looks back only a few days. If the clock was set back, everything is read.
    """
    if briefed.until is None:
        return now.timestamp() - BRIEF_FIRST_DAYS * _DAY_SECONDS
    if briefed.until > now:
        return 0.0
    return briefed.until.timestamp() - BRIEF_OVERLAP_DAYS * _DAY_SECONDS


def _make_mark(transcript: ArchivedTranscript) -> str:
    return hash_bytes(msgspec.json.encode(transcript.rest))[:16] if transcript.rest else ""


def _measure_turn(turn: Turn) -> int:
    return len(turn.text) + sum(len(call.about) + len(call.shown) for call in turn.calls)


def _merge_by_time(parts: Iterable[Iterable[Turn]]) -> list[Turn]:
    """Return all turns sorted by time. A turn without a time stays after the previous turn."""
    placed: list[tuple[str, int, Turn]] = []
    for turns in parts:
        at = ""
        for turn in turns:
            at = max(at, normalize_time(turn.at))
            placed.append((at, len(placed), turn))
    placed.sort(key=lambda entry: entry[:2])
    return [turn for _, _, turn in placed]
