"""Events about sessions, most of them reported by a CLI's hooks."""

from rekindle.documents.events.event import Event


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    summary = "A session started, or continued after a resume, clear, compact or fork."
    session: str
    harness: str
    source: str = ""
    """Cause of the start: startup, resume, clear, compact or fork."""
    launch: str = ""
    """Id of the launch that the session belongs to; empty for a person's own session."""
    process: str = ""
    """Identity of the session's process: pid, start time and boot id."""
    transcript: str = ""
    """Path of the session's transcript."""
    visitor: bool = False
    """Whether this is a person's own session beside a supervised one; Rekindle leaves it alone."""


class SessionLost(Event, frozen=True, kw_only=True, tag="session.lost"):
    summary = "A session's process ended without a report; a later session was told."
    session: str


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    summary = "A session reported its end; a killed session never does."
    session: str
    reason: str = ""
    """Reason for the end that the CLI reports."""
    visitor: bool = False


class PromptSubmitted(Event, frozen=True, kw_only=True, tag="prompt.submitted"):
    summary = "A prompt was submitted to the session."
    session: str
    text: str
    """Text of the prompt."""
    call: str = ""
    """Id of the prompt, used to drop the second report of a hook that is installed twice."""
    visitor: bool = False


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    summary = "A CLI is about to compact a session's context."
    session: str
    trigger: str = ""
    """Cause of the compaction according to the CLI: auto or manual."""
    visitor: bool = False


class Heartbeat(Event, frozen=True, kw_only=True, tag="heartbeat"):
    summary = "A session showed a sign of life: a tool call ended."
    session: str = ""
    tool: str = ""
    call: str = ""
    """Id of the tool call, used to drop the second report of a hook that is installed twice."""
    visitor: bool = False


class PrimerGiven(Event, frozen=True, kw_only=True, tag="primer.given"):
    summary = "A session received the state of the work."
    session: str
    source: str
    """Cause of the session's start."""
    characters: int
    """Length of the primer in characters."""
    recovery: bool = False
    """Whether the primer reported a lost session."""
