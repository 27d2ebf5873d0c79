"""Events about a session's context window and about handoffs to a fresh session."""

from rekindle.documents.events.event import Event


class WindowSizeReported(Event, frozen=True, kw_only=True, tag="window.reported"):
    summary = "A CLI reported the size of its model's context window."
    harness: str
    model: str
    window: int


class WindowMeasured(Event, frozen=True, kw_only=True, tag="window.measured"):
    summary = "Rekindle measured the context-window usage of a running session."
    launch: str
    tokens: int
    """Number of tokens in the context window."""
    window: int | None = None
    """Context-window size in tokens, or None if unknown."""
    known: str = "unknown"
    """Where the context-window usage comes from: reported, exact, estimated or unknown."""


class HandoffTriggered(Event, frozen=True, kw_only=True, tag="handoff.triggered"):
    summary = (
        "A session was stopped between two turns. A fresh session continues from a checkpoint."
    )
    launch: str
    cycle: int
    session: str
    by: str
    """What caused the handoff: threshold for a full context window, person for an operator's
    request, or repetition for an agent that repeats itself.
    """
    tokens: int | None = None
    """Number of tokens in the context window."""
    window: int | None = None
    known: str = "unknown"
    """Where the context-window usage comes from: reported, exact, estimated or unknown."""
    threshold: int | None = None
    """Context-window usage, in percent, at which a handoff is due."""
    first: int | None = None
    """Number of tokens in the context window after the session's first turn."""
    work: str = ""
    """Fingerprint of the loops and the work in git, or empty if unknown."""


class RepetitionDetected(Event, frozen=True, kw_only=True, tag="repetition.detected"):
    summary = "An agent repeats itself: it makes the same calls or says the same again and again."
    launch: str
    pattern: str
    """What is repeated: call, failure, alternation, message or compaction. It is `cli` if the CLI
    has noticed it and stopped.
    """
    count: int
    """Number of times in a row, or 0 if only the CLI knows it."""
    words: str
    action: str
    """Response: `told` if only the agent is told, or `handoff` if a fresh session takes over."""


class HandoffResumed(Event, frozen=True, kw_only=True, tag="handoff.resumed"):
    summary = "A fresh session starts with the previous session's checkpoint."
    launch: str
    cycle: int
    count: int
    """Number of the handoff within its cycle, starting at 1."""
    checkpoint: str
    """Archive path of the checkpoint."""


class HandoffFailed(Event, frozen=True, kw_only=True, tag="handoff.failed"):
    summary = "A handoff failed, or no model could write its checkpoint. The work continues."
    launch: str
    words: str


class HandoffHalted(Event, frozen=True, kw_only=True, tag="handoff.halted"):
    summary = "Another handoff would not help. All work is saved, and a person must decide."
    cycle: int
    words: str


class SummaryMade(Event, frozen=True, kw_only=True, tag="summary.made"):
    summary = "A session's turns were summarized, with or without a model."
    document: str
    """Document that the summary was written for: checkpoint, relay or brief; `opinion` for a second
    opinion on a stall.
    """
    how: str
    """`headless` if a model wrote the summary, otherwise `mechanical`."""
    words: str = ""
    """Why no model could write the summary."""
    turns: int = 0
    """Number of turns that were summarized."""
    usd: float = 0.0
    """Cost of the request in dollars."""
    tokens: int = 0
    """Number of tokens that the request used."""
    seconds: float = 0.0
    """Seconds that the agent waited for the summary, including the time to collect its input."""
    run_usd: float | None = None
    run_tokens: int | None = None
    """Number of tokens that the run has used so far, or None if a person requested the summary."""
    unpriced: int = 0
    """Number of launches in this run whose cost is unknown."""
    is_estimated: bool | None = None
    """Whether a part of run_usd was computed from tokens, or None in older logs."""
