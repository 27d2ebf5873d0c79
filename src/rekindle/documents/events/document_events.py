"""Events of an agent's documents: loops, state, relays, checkpoints and briefs."""

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
    """New text for a loop that neither opens nor closes.

    Its time is just after the event that it corrects, so that a resolution which the editor did not
    see still counts.
    """

    ts: datetime
    id: str
    text: str
    closes: bool = False
    added: str = ""
    extra: dict[str, Any] | None = None


class StateAdopted(Event, frozen=True, kw_only=True, tag="state.adopted"):
    summary = "state.json was edited by hand; additions were adopted, and nothing was dropped."
    open_loops: tuple[OpenLoop, ...] = ()
    """Added or changed loops."""
    resolved: tuple[Resolution, ...] = ()
    """Added resolutions."""
    corrections: tuple[LoopCorrection, ...] = ()
    """Corrected texts of loops."""
    numbers: dict[str, str] = {}
    """Added or changed numbers."""
    extra: dict[str, Any] = {}
    """Unknown fields."""
    last_active: datetime | None = None
    """Time of the last activity in the edited file."""


class SourceAdopted(Event, frozen=True, kw_only=True, tag="source.adopted"):
    summary = "The files of another loop were adopted; the same files are not adopted twice."
    source: str
    """Path of the adopted files."""
    sha256: str
    """Hash of everything found at the source."""


class RelayProposed(Event, frozen=True, kw_only=True, tag="relay.proposed"):
    summary = "A relay was submitted; it stays in the inbox until the fold commits it."
    text: str
    """Text of the relay."""
    by: str
    """Author of the relay."""


class DocumentCommitted(Event, frozen=True, kw_only=True):
    """New content of a document, current from this event on."""

    document: ClassVar[str]
    sha256: str
    """Hash of the content."""
    previous: str = ""
    """Hash of the previous content, for rolling forward after a crash."""
    path: str
    """Archive path of the content, relative to the agent's folder."""
    by: str
    """Author: person, agent, agent-edit (an edit of a relay file that the agent can write, so
    possibly by a person), summarizer or machine.
    """
    tokens: int = 0
    """Estimated size in tokens."""
    headline: str = ""
    """First line of substance, so that `status` need not read the document."""


class RelayCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="relay.committed"):
    summary = "A relay became the current one."
    document = "relay"
    trimmed: str = ""
    """Archive path of the part that was trimmed away."""
    over_cap: bool = False
    """Whether the relay exceeds `runtime.relay.max_relay_tokens`."""


class CheckpointCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="checkpoint.committed"):
    summary = "A checkpoint became the current one."
    document = "checkpoint"
    session: str = ""
    """A person's own session that continues from the checkpoint; empty if the next one does."""


class BriefCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="brief.committed"):
    summary = "A brief became the current one."
    document = "brief"


class BriefedPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Position in an archived transcript up to which a brief has covered it."""

    at: int = 0
    """Byte offset of the first part that is not covered yet."""
    turn: int = 0
    """Number of the last turn before that offset."""
    rest: str = ""
    """Fingerprint of the turns that were not finished yet."""


class BriefMade(Event, frozen=True, kw_only=True, tag="brief.made"):
    summary = "A brief covers everything up to here, and the state has its results."
    morning: str
    """Date of the morning that the brief is for."""
    closes: bool = False
    """Whether the brief was written when due and is the last one for that morning."""
    told: dict[str, BriefedPosition] = {}
    """Covered position of each transcript that has grown since the previous brief."""
    turns: int = 0
    """Number of turns that the brief covers."""
    left_out: int = 0
    """Number of oldest turns that the summarizer had no room for."""
    failed: int = 0
    """Consecutive briefs without an available model; the next one covers their turns again."""
    unusable: int = 0
    """Consecutive briefs for which the model's answer was unusable."""
    claimed: dict[str, str] = {}
    """Loops reported as resolved, with the reason, that stay open because no turn confirms it."""
    numbers: dict[str, str] = {}
    """Numbers that the brief added to the state."""
    last_active: datetime | None = None
    """Time of the latest activity that the brief covers."""
    resolved: int = 0
    """Position in the log up to which resolved.jsonl was archived."""


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
