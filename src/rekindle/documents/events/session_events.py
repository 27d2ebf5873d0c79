"""Events about sessions, most of them reported by a CLI's hooks."""

from rekindle.documents.events.event import Event


class SessionStarted(Event, frozen=True, kw_only=True, tag="session.started"):
    summary = "A session started, or continued after a resume, clear, compact or fork."
    session: str
    harness: str
    source: str = ""
    """How the session started: startup, resume, clear, compact or fork."""
    launch: str = ""
    """Id of the launch that the session belongs to, or empty for a person's own session."""
    process: str = ""
    """Identity of the session's process: pid, start time and boot id."""
    transcript: str = ""
    """Path to the session's transcript."""
    visitor: bool = False
    """Whether a person started this session next to a supervised one. Rekindle ignores it."""


class SessionLost(Event, frozen=True, kw_only=True, tag="session.lost"):
    summary = "A session's process ended without a report. A later session was told about this."
    session: str


class SessionEnded(Event, frozen=True, kw_only=True, tag="session.ended"):
    summary = "A session reported that it ended. A killed session never reports this."
    session: str
    reason: str = ""
    """Why the session ended, according to the CLI."""
    visitor: bool = False


class PromptSubmitted(Event, frozen=True, kw_only=True, tag="prompt.submitted"):
    summary = "A prompt was submitted to the session."
    session: str
    text: str
    """Prompt text."""
    call: str = ""
    """Id of the prompt, used to drop duplicate reports if a hook is installed twice."""
    visitor: bool = False


class SessionCompacted(Event, frozen=True, kw_only=True, tag="session.compacted"):
    summary = "A CLI is about to compact a session's context."
    session: str
    trigger: str = ""
    """What triggered the compaction, according to the CLI: auto or manual."""
    visitor: bool = False


class Heartbeat(Event, frozen=True, kw_only=True, tag="heartbeat"):
    summary = "A session completed a tool call, so it is alive."
    session: str = ""
    tool: str = ""
    call: str = ""
    """Tool call id, used to drop duplicate reports if a hook is installed twice."""
    visitor: bool = False


class PrimerGiven(Event, frozen=True, kw_only=True, tag="primer.given"):
    summary = "A session received the state of the work."
    session: str
    source: str
    """How the session started."""
    characters: int
    """Length of the primer in characters."""
    recovery: bool = False
    """Whether the primer reported a lost session."""
