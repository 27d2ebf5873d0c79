"""One agent's night: sessions, waits and other events between two times, for all screens.

A night describes the past. An agent's current state is only in its `AgentRow`.
"""

from datetime import datetime
from typing import Literal

import msgspec

from rekindle.documents.tables import require_rows

SpanLane = Literal["session", "wait", "safe", "question"]
"""What a span shows: a process or a person's own session, a wait, safe mode or an open question."""
MarkKind = Literal[
    "crash",
    "handoff",
    "hang",
    "repeat",
    "limit",
    "compaction",
    "relay",
    "cycle",
    "question",
    "answer",
    "refused",
]
LineKind = Literal[
    "crash",
    "resume",
    "handoff",
    "wait",
    "hang",
    "repeat",
    "compaction",
    "refused",
    "relay",
    "cycle",
    "question",
    "you",
    "end",
]

GLYPHS: dict[MarkKind | LineKind, str] = {
    "crash": "✕",
    "resume": "↻",
    "handoff": "▲",
    "wait": "░",
    "limit": "░",
    "hang": "⚠",
    "repeat": "⟳",
    "compaction": "▽",
    "refused": "⊘",
    "relay": "◆",
    "cycle": "▪",
    "question": "☺",
    "answer": "☺",
    "you": "☺",
    "end": "■",
}
"""Symbol for each kind of mark and line. The import fails if one is missing."""
require_rows(GLYPHS, MarkKind, LineKind)


class NightSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which a process ran, or in which the agent waited."""

    lane: SpanLane
    """`session`, `wait`, `safe` or `question`."""
    start: datetime
    """Start time, which may be before the night."""
    end: datetime | None = None
    """End time, or null if the period has not ended."""
    first: int
    """Log position of the event that started the period."""
    last: int
    """Log position of the event that ended it, or the same as `first` if there is none."""
    text: str = ""
    """Reason for the end of a launch, for a wait or for safe mode, or the text of a question."""
    launch: str = ""
    """Launch id, or empty for a person's own session."""
    session: str = ""
    """Session id, or empty if it is unknown."""
    cycle: int = 0
    """Cycle of a launch, or 0."""
    resumes: bool = False
    """Whether the launch resumed an earlier session."""
    exit: str = ""
    """Kind of exit, or empty if the launch has not ended."""
    why: str = ""
    """Reason for a wait or for safe mode, as recorded in the log."""
    until: datetime | None = None
    """Planned end of a wait, or null for other periods."""
    words: str = ""
    """The CLI's own message about a wait, or empty."""
    question: str = ""
    """Question id, or empty."""


class NightMark(msgspec.Struct, frozen=True):
    """A single event to mark on a timeline."""

    at: datetime
    seq: int
    """Log position of the event. For a relay, this is also its revision."""
    kind: MarkKind
    text: str = ""
    """Short description: for a relay its next action, for a question its text."""
    verdict: str = ""
    """Verdict on a cycle, or empty."""
    percent: float | None = None
    """Context-window usage at a handoff in percent, or null if it is unknown."""
    by: str = ""
    """Author of a relay or an answer, or cause of a handoff."""
    question: str = ""
    """Question id, or empty."""

    @property
    def glyph(self) -> str:
        return GLYPHS[self.kind]


class TimelineLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line that tells a person what happened. Repeated events share one line."""

    at: datetime
    """Time of the first event."""
    kind: LineKind
    glyph: str
    text: str
    count: int = 1
    """Number of similar events that the line describes."""
    first: int
    """Log position of the first event."""
    last: int
    """Log position of the last event."""


class WindowPoint(msgspec.Struct, frozen=True):
    """Context-window usage of a session at one time."""

    at: datetime
    tokens: int
    """Number of tokens in the context window."""
    session: str = ""
    """Session id, or empty if it is unknown."""
    percent: float | None = None
    """Usage in percent, or null if the size of the window is unknown."""


class SpendPoint(msgspec.Struct, frozen=True):
    """Spending of a run at one time."""

    at: datetime
    usd: float | None
    """Amount that the run had spent, in dollars, or null if it is unknown."""
    tokens: int
    """Number of tokens that the run had used."""
    is_estimated: bool = False
    """Whether a part of the amount was computed from tokens."""


class AgentNight(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to one agent between two times."""

    agent: str
    since: datetime
    until: datetime
    seq: int = 0
    """Log position of the last event that this night includes."""
    spans: tuple[NightSpan, ...] = ()
    """Periods that overlap the night, by start time."""
    marks: tuple[NightMark, ...] = ()
    """Events to mark on a timeline, by time."""
    lines: tuple[TimelineLine, ...] = ()
    """The night as text, by time."""
    window: tuple[WindowPoint, ...] = ()
    """Context-window usage, by time."""
    window_size: int | None = None
    """Context-window size in tokens, or null if it is unknown."""
    handoff_percent: int | None = None
    """Context-window usage at which a handoff is due, in percent, or null if there is none."""
    spend: tuple[SpendPoint, ...] = ()
    """Spending of each run, by time. It starts at 0 in each run."""
    usd_cap: float | None = None
    """Maximum amount that a run may spend, in dollars, or null for no limit."""
    tokens_cap: int | None = None
    """Maximum number of tokens that a run may use, or null for no limit."""
