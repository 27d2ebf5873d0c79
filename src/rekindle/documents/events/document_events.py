"""Events about an agent's documents: loops, state, relays, checkpoints and briefs."""

from datetime import datetime
from typing import Any, ClassVar

import msgspec

from rekindle.documents.events.event import Event
from rekindle.documents.state import OpenLoop, Resolution


class LoopAdded(Event, frozen=True, kw_only=True, tag="loop.added"):
    summary = "An open loop was added, reworded or reopened."
    id: str
    text: str
    """Text of the loop."""
    added: str = ""
    """Day on which the loop was first seen, if that was before this event."""


class LoopResolved(Event, frozen=True, kw_only=True, tag="loop.resolved"):
    summary = "An open loop was explicitly resolved."
    id: str
    reason: str


class LoopCorrection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event with a new text for a loop, which is neither opened nor closed.

    Its time is just after the event that it corrects, so that a resolution still counts that the
    editor of the file did not see.
    """

    ts: datetime
    id: str
    text: str
    closes: bool = False
    added: str = ""
    extra: dict[str, Any] | None = None


class StateAdopted(Event, frozen=True, kw_only=True, tag="state.adopted"):
    summary = "A person edited state.json; the additions were adopted, and nothing was dropped."
    open_loops: tuple[OpenLoop, ...] = ()
    """Loops that were added or changed."""
    resolved: tuple[Resolution, ...] = ()
    """Resolutions that were added."""
    corrections: tuple[LoopCorrection, ...] = ()
    """Loops whose text was corrected."""
    numbers: dict[str, str] = {}
    """Numbers that were added or changed."""
    extra: dict[str, Any] = {}
    """Fields that Rekindle does not know."""
    last_active: datetime | None = None
    """Time of the last activity in the edited file."""


class SourceAdopted(Event, frozen=True, kw_only=True, tag="source.adopted"):
    summary = "The files of another loop were adopted; the same files are not adopted twice."
    source: str
    """Path from which the files were adopted."""
    sha256: str
    """Hash of everything that was found at the source."""


class RelayProposed(Event, frozen=True, kw_only=True, tag="relay.proposed"):
    summary = "A relay was submitted; it stays in the inbox until the writer commits it."
    text: str
    """Text of the relay."""
    by: str
    """Author of the relay."""


class DocumentCommitted(Event, frozen=True, kw_only=True):
    """New content of a document, which is current from this event on."""

    document: ClassVar[str]
    sha256: str
    """Hash of the document's content."""
    previous: str = ""
    """Hash of the previous content, for rolling forward after a crash."""
    path: str
    """Archive path of the content, relative to the agent's folder."""
    by: str
    """Author: person, agent, agent-edit (an edit of a relay file that the agent can write; a person
    may have made it), summarizer or machine.
    """
    tokens: int = 0
    """Estimated size of the document in tokens."""
    headline: str = ""
    """First meaningful line, so that `status` does not have to read the document."""


class RelayCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="relay.committed"):
    summary = "A relay became the current one."
    document = "relay"
    trimmed: str = ""
    """Archive path of the part that was removed when the relay was trimmed."""
    over_cap: bool = False
    """Whether the relay exceeds `runtime.relay.max_relay_tokens`."""


class CheckpointCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="checkpoint.committed"):
    summary = "A checkpoint became the current one."
    document = "checkpoint"
    session: str = ""
    """Id of a person's own session that continues from the checkpoint; otherwise empty."""


class BriefCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="brief.committed"):
    summary = "A brief became the current one."
    document = "brief"


class BriefedPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """The position in an archived transcript up to which briefs have covered it."""

    at: int = 0
    """Byte offset of the first part that is not covered yet."""
    turn: int = 0
    """Number of the last turn before the offset."""
    rest: str = ""
    """Fingerprint of the turns that were still unfinished at that point."""


class BriefMade(Event, frozen=True, kw_only=True, tag="brief.made"):
    summary = "A brief was written; it covers everything up to here, and the state has its results."
    morning: str
    """Date of the morning that the brief is for."""
    closes: bool = False
    """Whether the brief was written when due and is the last one for its morning."""
    covered: dict[str, BriefedPosition] = {}
    """Position up to which each transcript is covered, if it has grown since the previous brief."""
    turns: int = 0
    """Number of turns that the brief covers."""
    left_out: int = 0
    """Number of old turns that did not fit into the summarizer's input."""
    failed: int = 0
    """Number of consecutive briefs for which no model was available.

    The next brief covers their turns.
    """
    unusable: int = 0
    """Number of consecutive briefs for which the model's answer was unusable."""
    claimed: dict[str, str] = {}
    """Loops reported as resolved, with the reason; they stay open, as no turn confirms it."""
    numbers: dict[str, str] = {}
    """Numbers that the brief added to the state."""
    last_active: datetime | None = None
    """Time of the latest activity that the brief covers."""
    resolved: int = 0
    """Position in the log up to which resolved loops were archived in resolved.jsonl."""


class DocumentRejected(Event, frozen=True, kw_only=True, tag="document.rejected"):
    summary = "An edit made a document unusable; the edit was set aside."
    document: str
    """Name of the document."""
    path: str
    """Path of the rejected content, relative to the agent's folder."""
    reason: str


class InboxRejected(Event, frozen=True, kw_only=True, tag="inbox.rejected"):
    summary = "A record of the inbox was torn or unreadable, and was skipped."
    bytes: int
    """Size of the record in bytes."""
    reason: str
