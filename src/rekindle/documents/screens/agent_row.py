"""One row per agent, for `status`, `--json`, the morning page and notifications."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from rekindle.documents.tables import require_rows

AgentState = Literal["running", "waiting", "needs you", "stopped", "done", "broken"]
FigureSource = Literal["reported", "estimated", "unknown"]
"""Where a number comes from. Unknown numbers have no value and are never shown as 0."""


class StateRow(NamedTuple):
    """Appearance of a state on every screen."""

    light: str
    """Colour on a light page."""
    dark: str
    """Colour on a dark page."""
    colour: str | None = None
    """Colour in a terminal; None for the terminal's default."""
    needs_person: bool = False
    """Whether the agent needs a person."""
    plural: str = ""
    """Label for several agents, if it is not the same as for one."""


STATES: dict[AgentState, StateRow] = {
    "needs you": StateRow("#a5231b", "#ff8f85", "red", needs_person=True, plural="need you"),
    "broken": StateRow("#a5231b", "#ff8f85", "red", needs_person=True),
    "waiting": StateRow("#7a5600", "#e5bd5c", "yellow"),
    "running": StateRow("#1a6b3c", "#6fd49a"),
    "stopped": StateRow("#55554f", "#b4b4aa"),
    "done": StateRow("#1a6b3c", "#6fd49a"),
}
"""Appearance of each state, in the order of the summary. The import fails if a state is missing."""
require_rows(STATES, AgentState)


class Figure(msgspec.Struct, frozen=True):
    """A number and its source."""

    value: float | None = None
    """The number, or null if it is unknown."""
    source: FigureSource = "unknown"
    """Source of the number: `reported`, `estimated` or `unknown`."""


class WindowFigures(msgspec.Struct, frozen=True):
    """Context-window usage in the last session."""

    tokens: Figure = Figure()
    """Number of tokens in the last session's window."""
    size: int | None = None
    """Context-window size in tokens, or null if it is unknown."""
    percent: Figure = Figure()
    """Context-window usage in percent."""


class SpendFigures(msgspec.Struct, frozen=True):
    """The run's spending and its limits."""

    usd: Figure = Figure()
    """Amount that the run has spent, in dollars."""
    tokens: Figure = Figure()
    """Number of tokens that the run has used."""
    unpriced: int = 0
    """Number of launches whose cost is unknown."""
    usd_cap: float | None = None
    """Maximum amount that the run may spend, in dollars, or null for no limit."""
    tokens_cap: int | None = None
    """Maximum number of tokens that the run may use, or null for no limit."""


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent, as every screen shows it. The JSON reference quotes the field docs."""

    agent: str
    """Agent name."""
    harness: str = ""
    """Name of the agent's harness, or empty."""
    at: int = 0
    """Log position of the last event that this entry includes."""
    state: AgentState
    """`running`, `waiting`, `needs you`, `stopped`, `done` or `broken`."""
    outcome: str | None = None
    """Outcome of the run if it is over, paused or waiting; otherwise null."""
    reason: str = ""
    """Reason for the state, as text."""
    command: str = ""
    """Next command for the operator, with `"TEXT"` as a placeholder; empty if none is needed."""
    others: tuple[str, ...] = ()
    """Other possible answers to the agent's question, besides the one in `command`."""
    next_action: str = ""
    """Next action from the agent's relay, on one line."""
    cycle: int = 0
    """Number of the last cycle."""
    cycles_done: int = 0
    """Number of the run's cycles that have ended."""
    cycles_of: int | None = None
    """Maximum number of cycles in the run, or null for no limit."""
    window: WindowFigures = WindowFigures()
    """Context-window usage in the last session."""
    spend: SpendFigures = SpendFigures()
    """The run's spending and its limits."""
    open_loops: int = 0
    """Number of open loops."""
    stale_loops: int = 0
    """Number of stale open loops."""
    refused: int = 0
    """Number of tool calls that the CLI refused during this run."""
    open_questions: int = 0
    """Number of questions that a person can answer now, including those that do not block the
    agent.
    """
    last_active: datetime | None = None
    """When the agent last showed a sign of life, or null if it never did."""
    waits_until: datetime | None = None
    """When a waiting agent continues, or null if it is not waiting for a known time."""
    label: str = ""
    """State as shown to people: the run's outcome, or `state` if it has none."""

    def __post_init__(self) -> None:
        if not self.label:
            msgspec.structs.force_setattr(self, "label", self.state)

    @property
    def next_step(self) -> str:
        """Return the next command, followed by the other possible answers."""
        return render_command(self.command, self.others)


def render_spend(spends: Iterable[SpendFigures]) -> str:
    """Return the runs' total spending in dollars and tokens, or "" if all of it is unknown."""
    spends = list(spends)
    usd = render_usd(spend.usd for spend in spends)
    return ", ".join(filter(None, (usd, render_tokens(spend.tokens for spend in spends))))


def render_usd(figures: Iterable[Figure]) -> str:
    """Return the sum of the known dollar amounts, or "" if none is known."""
    costs = [figure for figure in figures if figure.value is not None]
    return f"{mark_estimate(*costs)}${_sum_figures(costs):.2f}" if costs else ""


def render_tokens(figures: Iterable[Figure], cap: int | None = None) -> str:
    """Return the sum of the known token counts and its cap, or "" if there is neither."""
    counts = [figure for figure in figures if figure.value]
    limit = f" of {cap:,}" if cap else ""
    return (
        f"{mark_estimate(*counts)}{_sum_figures(counts):,.0f}{limit} tokens"
        if counts or cap
        else ""
    )


def mark_estimate(*figures: Figure) -> str:
    """Return the prefix "~" if one of the figures is an estimate, otherwise ""."""
    return "~" if any(figure.source == "estimated" for figure in figures) else ""


def _sum_figures(figures: Iterable[Figure]) -> float:
    return sum(figure.value or 0 for figure in figures)


def render_command(command: str, others: Sequence[str]) -> str:
    """Return a command, followed by the other possible answers."""
    return f"{command}  (or: {', '.join(others)})" if others else command
