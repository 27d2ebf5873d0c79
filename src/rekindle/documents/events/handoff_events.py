"""Events of a session's window, and of handoffs to a fresh session."""

from rekindle.documents.events.event import Event


class WindowSizeReported(Event, frozen=True, kw_only=True, tag="window.reported"):
    summary = "A CLI reported the size of its model's window."
    harness: str
    model: str
    window: int


class WindowMeasured(Event, frozen=True, kw_only=True, tag="window.measured"):
    summary = "The fill of a running session's window was measured."
    launch: str
    tokens: int
    """Tokens in the window."""
    window: int | None = None
    """Size of the window in tokens; None if unknown."""
    known: str = "unknown"
    """Source of the fill of the window: reported, exact, estimated or unknown."""


class HandoffTriggered(Event, frozen=True, kw_only=True, tag="handoff.triggered"):
    summary = "A session was stopped between two turns; a fresh one continues from a checkpoint."
    launch: str
    cycle: int
    session: str
    by: str
    """Cause: threshold for a full window, person for the operator's request."""
    tokens: int | None = None
    """Tokens in the window."""
    window: int | None = None
    known: str = "unknown"
    """Source of the fill of the window: reported, exact, estimated or unknown."""
    threshold: int | None = None
    """Percentage of the window at which a handoff is due."""
    first: int | None = None
    """Tokens in the window after the session's first turn."""
    work: str = ""
    """Fingerprint of the work in git and in the loops; empty if unknown."""


class HandoffResumed(Event, frozen=True, kw_only=True, tag="handoff.resumed"):
    summary = "A fresh session starts with the checkpoint of the previous one."
    launch: str
    cycle: int
    count: int
    """Number of the handoff within its cycle, from 1."""
    checkpoint: str
    """Archive path of the checkpoint."""


class HandoffFailed(Event, frozen=True, kw_only=True, tag="handoff.failed"):
    summary = "A handoff failed, or no model could be asked for it; the work continues."
    launch: str
    words: str


class HandoffHalted(Event, frozen=True, kw_only=True, tag="handoff.halted"):
    summary = "A handoff would not help: everything is saved, and a person is needed."
    cycle: int
    words: str


class SummaryMade(Event, frozen=True, kw_only=True, tag="summary.made"):
    summary = "Turns of a session were summarized, by a model or without one."
    document: str
    """Document that needed the summary: checkpoint, relay or brief."""
    how: str
    """headless if a model made it, mechanical otherwise."""
    words: str = ""
    """Reason why no model made it."""
    turns: int = 0
    """Number of summarized turns."""
    usd: float = 0.0
    """Cost of the request in dollars."""
    tokens: int = 0
    """Tokens that the request used."""
    seconds: float = 0.0
    """Seconds that an agent waited for the summary, including the time to collect its input."""
    run_usd: float | None = None
    run_tokens: int | None = None
    """Tokens that the run has used, including this summary; None if a person requested it."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""
