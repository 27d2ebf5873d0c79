"""The types of `rekindle search`: what is indexed, what is asked, and what is found."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.documents.transcripts.turns import Turn

EntryKind = Literal["turn", "relay", "decision"]


class SearchEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A text to index."""

    kind: EntryKind
    number: int
    """Number of the turn, or of the event that committed the relay."""
    at: str
    """Time in UTC and ISO format, or "" if it is unknown."""
    who: str = ""
    text: str
    calls: str = ""
    """The agent's tool calls, one per line. They contain the paths of the files it used."""


class IndexSource(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that are added to the end of one transcript, or of one agent's relays."""

    agent: str
    name: str
    session: str = ""
    thread: str = ""
    end: int
    """Position after the last entry that will not change."""
    stamp: str
    """Text that changes whenever the source changes."""


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    match: str
    """Expression for the index."""
    agents: Sequence[str] = ()
    """Agents to search, or empty for all agents."""
    since: datetime | None = None
    most: int


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """A turn, relay or decision that contains the words."""

    agent: str
    """Name of the agent."""
    kind: EntryKind
    """`turn`, `relay` or `decision`."""
    at: str
    """Time in UTC, or "" if it is unknown."""
    session: str
    """Session of a turn, or "" for a relay or a decision."""
    thread: str
    """Sub-agent that wrote the turn, or "" for the session itself."""
    number: int
    """Number of the turn, or of the event that committed the relay."""
    who: str
    """Author of the turn or relay."""
    excerpt: str
    """Part of the text around the words."""


def make_turn_entry(turn: Turn) -> SearchEntry:
    """Return the entry for a turn: its text, and its tool calls with their output."""
    if not turn.calls:
        return SearchEntry(
            kind="turn", number=turn.number, at=turn.at, who=turn.who, text=turn.text
        )
    return SearchEntry(
        kind="turn",
        number=turn.number,
        at=turn.at,
        who=turn.who,
        text="\n".join([turn.text, *(call.shown for call in turn.calls)]),
        calls="\n".join(f"{call.tool} {call.about}" for call in turn.calls),
    )
