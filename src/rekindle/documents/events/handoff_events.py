"""Events about a session's window and about handoffs to a fresh session."""

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
    """Number of tokens in the window."""
    window: int | None = None
    """Size of the window in tokens; None if unknown."""
    known: str = "unknown"
    """Source of the window's fill: reported, exact, estimated or unknown."""


class HandoffTriggered(Event, frozen=True, kw_only=True, tag="handoff.triggered"):
    summary = "A session was stopped between two turns; a fresh one continues from a checkpoint."
    launch: str
    cycle: int
    session: str
    by: str
    """Cause of the handoff: threshold for a full window, person for a request by the operator."""
    tokens: int | None = None
    """Number of tokens in the window."""
    window: int | None = None
    known: str = "unknown"
    """Source of the window's fill: reported, exact, estimated or unknown."""
    threshold: int | None = None
    """Fill of the window, in percent, at which a handoff is due."""
    first: int | None = None
    """Number of tokens in the window after the session's first turn."""
    work: str = ""
    """Fingerprint of the work in git and of the loops; empty if unknown."""


class HandoffResumed(Event, frozen=True, kw_only=True, tag="handoff.resumed"):
    summary = "A fresh session starts with the checkpoint of the previous one."
    launch: str
    cycle: int
    count: int
    """Number of the handoff within its cycle, starting at 1."""
    checkpoint: str
    """Archive path of the checkpoint."""


class HandoffFailed(Event, frozen=True, kw_only=True, tag="handoff.failed"):
    summary = "A handoff failed, or no model could write its checkpoint; the work continues."
    launch: str
    words: str


class HandoffHalted(Event, frozen=True, kw_only=True, tag="handoff.halted"):
    summary = "A handoff would not help: everything is saved, and a person is needed."
    cycle: int
    words: str


class SummaryMade(Event, frozen=True, kw_only=True, tag="summary.made"):
    summary = "Turns of a session were summarized, by a model or without one."
    document: str
    """Document for which the summary was made: checkpoint, relay or brief."""
    how: str
    """headless if a model wrote the summary, mechanical otherwise."""
    words: str = ""
    """Reason why no model wrote the summary."""
    turns: int = 0
    """Number of turns that were summarized."""
    usd: float = 0.0
    """Cost of the request in dollars."""
    tokens: int = 0
    """Number of tokens that the request used."""
    seconds: float = 0.0
    """Seconds that an agent waited for the summary and the collection of its input."""
    run_usd: float | None = None
    run_tokens: int | None = None
    """Number of tokens that the run has used so far; None if a person requested the summary."""
    unpriced: int = 0
    """Number of launches of the run whose cost is unknown."""
