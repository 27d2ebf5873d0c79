"""Events about an agent's documents: loops, state, relays, checkpoints and briefs."""

from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

from rekindle.documents.events.event import Event
from rekindle.documents.state import OpenLoop, Resolution


class LoopAdded(Event, frozen=True, kw_only=True, tag="loop.added"):
    summary = "An open loop was added, reworded or reopened."
    id: str
    text: str
    """Loop text."""
    added: str = ""
    """Day on which the loop was first seen, if earlier than this event."""
    by: str = ""
    """Agent that proposed the loop; empty for a person or a brief."""


class LoopResolved(Event, frozen=True, kw_only=True, tag="loop.resolved"):
    summary = "An open loop was explicitly resolved."
    id: str
    reason: str
    by: str = ""
    """Agent that resolved its own loop; empty for a person or a brief."""


Proposal = Literal["resolution", "decision", "failed approach", "question"]


class ProposalMade(Event, frozen=True, kw_only=True, tag="proposal.made"):
    summary = "The agent proposed something. A person, or the next relay, takes it up."
    about: Proposal
    """Kind of proposal: the resolution of a loop that the agent did not open, a decision or a
    failed approach for the next relay, or a question to a person.
    """
    text: str
    """The proposal, in one line. For a resolution, its reason."""
    id: str = ""
    """Loop to resolve."""
    choices: tuple[str, ...] = ()
    """Answers that the agent suggests for its question."""
    by: str = ""
    """Agent that made the proposal."""


class LoopCorrection(msgspec.Struct, frozen=True, omit_defaults=True):
    """Event that changes a loop's text without opening or closing the loop.

    It is dated just after the event that it corrects. A later resolution therefore still counts,
    even if the person who edited the file had not seen it.
    """

    ts: datetime
    id: str
    text: str
    closes: bool = False
    added: str = ""
    extra: dict[str, Any] | None = None


class StateAdopted(Event, frozen=True, kw_only=True, tag="state.adopted"):
    summary = "A person edited state.json. Rekindle adopted the additions and removed nothing."
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
    """Time of the last activity, as given in the edited file."""


class SourceAdopted(Event, frozen=True, kw_only=True, tag="source.adopted"):
    summary = "Another tool's files were adopted; the same files are never adopted twice."
    source: str
    """Path from which the files were adopted."""
    sha256: str
    """Hash of all content found at the source."""


class RelayProposed(Event, frozen=True, kw_only=True, tag="relay.proposed"):
    summary = "A relay was submitted. It stays in the inbox until the writer commits it."
    text: str
    """Relay text."""
    by: str
    """Who wrote the relay."""
    base: str = ""
    """Hash of the relay that this one replaces, or empty to replace any relay."""


class DocumentCommitted(Event, frozen=True, kw_only=True):
    """Event that replaces a document's content."""

    document: ClassVar[str]
    sha256: str
    """Hash of the document's content."""
    previous: str = ""
    """Hash of the previous content, used to roll forward after a crash."""
    path: str
    """Archive path of the content, relative to the agent's folder."""
    by: str
    """Author: person, agent, agent-edit (an edit to a relay file that the agent can write; a person
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
    """Id of the person's own session that continues from the checkpoint, or empty for other
    checkpoints.
    """


class BriefCommitted(DocumentCommitted, frozen=True, kw_only=True, tag="brief.committed"):
    summary = "A brief became the current one."
    document = "brief"


class BriefedPosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Position up to which briefs cover an archived transcript."""

    at: int = 0
    """Byte offset of the first part that no brief covers yet."""
    turn: int = 0
    """Number of the last turn before the offset."""
    rest: str = ""
    """Fingerprint of the turns that were still unfinished at that point."""


class BriefMade(Event, frozen=True, kw_only=True, tag="brief.made"):
    summary = "A brief was written. It covers everything up to this event and updates the state."
    morning: str
    """Date of the morning that the brief is for."""
    closes: bool = False
    """Whether this is the last scheduled brief for its morning."""
    covered: dict[str, BriefedPosition] = {}
    """How far the brief covers each transcript that has grown since the previous brief."""
    turns: int = 0
    """Number of turns that the brief covers."""
    left_out: int = 0
    """Number of older turns that did not fit into the summarizer's input."""
    failed: int = 0
    """Number of consecutive briefs for which no model was available. The next brief also covers
    their turns.
    """
    unusable: int = 0
    """Number of consecutive briefs for which the model's answer was unusable."""
    claimed: dict[str, str] = {}
    """Loops that were reported as resolved, with the reason. They stay open, because no turn
    confirms it.
    """
    numbers: dict[str, str] = {}
    """Numbers that the brief added to the state."""
    last_active: datetime | None = None
    """Time of the latest activity that the brief covers."""
    resolved: int = 0
    """Position in the log up to which resolved loops were archived in resolved.jsonl."""


class DocumentRejected(Event, frozen=True, kw_only=True, tag="document.rejected"):
    summary = "An edit made a document unusable. Rekindle set the edit aside."
    document: str
    """Document name."""
    path: str
    """Path of the rejected content, relative to the agent's folder."""
    reason: str


class InboxRejected(Event, frozen=True, kw_only=True, tag="inbox.rejected"):
    summary = "An inbox record was incomplete or unreadable, and was skipped."
    bytes: int
    """Size of the record in bytes."""
    reason: str
