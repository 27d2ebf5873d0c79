"""One row per agent: all that `status`, `--json`, the morning page and notifications say of it."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from rekindle.documents.tables import require_rows

AgentState = Literal["running", "waiting", "needs you", "stopped", "done", "broken"]
FigureSource = Literal["reported", "estimated", "unknown"]
"""Where a number comes from. An unknown one has no value: it is never shown as 0."""


class StateRow(NamedTuple):
    """How every screen shows the agents in a state."""

    light: str
    """Colour on a light page."""
    dark: str
    """Colour on a dark page."""
    colour: str | None = None
    """Colour in a terminal; None: the terminal's own."""
    needs_person: bool = False
    """The agent waits for something that only a person can do."""
    plural: str = ""
    """Words for several agents, if they differ."""


STATES: dict[AgentState, StateRow] = {
    "needs you": StateRow("#a5231b", "#ff8f85", "red", needs_person=True, plural="need you"),
    "broken": StateRow("#a5231b", "#ff8f85", "red", needs_person=True),
    "waiting": StateRow("#7a5600", "#e5bd5c", "yellow"),
    "running": StateRow("#1a6b3c", "#6fd49a"),
    "stopped": StateRow("#55554f", "#b4b4aa"),
    "done": StateRow("#1a6b3c", "#6fd49a"),
}
"""In the order in which a summary counts them. A state without a row fails the import."""
require_rows(STATES, AgentState)


class Figure(msgspec.Struct, frozen=True):
    """A number, and where it comes from."""

    value: float | None = None
    """The number; null if it is unknown."""
    source: FigureSource = "unknown"
    """Where it comes from: `reported`, `estimated` or `unknown`."""


class WindowFigures(msgspec.Struct, frozen=True):
    """How full the window of the last session is."""

    tokens: Figure = Figure()
    """Tokens in the window of the last session."""
    size: int | None = None
    """Size of the window in tokens, or null if it is unknown."""
    percent: Figure = Figure()
    """Fill of the window in percent."""


class SpendFigures(msgspec.Struct, frozen=True):
    """What the run has spent, and what it may spend."""

    usd: Figure = Figure()
    """Dollars that the run has spent."""
    tokens: Figure = Figure()
    """Tokens that the run has used."""
    unpriced: int = 0
    """Launches whose cost is unknown."""
    usd_cap: float | None = None
    """Dollars that the run may spend, or null."""
    tokens_cap: int | None = None
    """Tokens that the run may use, or null."""


class AgentRow(msgspec.Struct, frozen=True, kw_only=True):
    """What every screen shows of an agent; the page on JSON shows the texts below the fields."""

    agent: str
    """Name of the agent."""
    harness: str = ""
    """Its CLI, or empty."""
    at: int = 0
    """Number of the last event that the row was made from."""
    state: AgentState
    """`running`, `waiting`, `needs you`, `stopped`, `done` or `broken`."""
    outcome: str | None = None
    """Outcome of a run that is over, paused or waiting, or null."""
    reason: str = ""
    """Why it is in this state."""
    command: str = ""
    """What the operator types next, with `"TEXT"` in the place of a text; empty: nothing."""
    others: tuple[str, ...] = ()
    """Other answers to the agent's question than the one in `command`."""
    next_action: str = ""
    """Next action of its relay, in a line."""
    cycle: int = 0
    """Number of its last cycle."""
    cycles_done: int = 0
    """Cycles of the run that have ended."""
    cycles_of: int | None = None
    """Cycles that the run may have; null: any number."""
    window: WindowFigures = WindowFigures()
    """The window of its last session."""
    spend: SpendFigures = SpendFigures()
    """What the run has spent, and its caps."""
    open_loops: int = 0
    """Open loops."""
    stale_loops: int = 0
    """Those of them that are stale."""
    refused: int = 0
    """Tool calls of the run that the CLI refused."""
    open_questions: int = 0
    """Questions that a person can answer now, also those that hold nothing up."""
    last_active: datetime | None = None
    """Time of the last sign of the agent, or null."""
    label: str = ""
    """Words that people are shown as its state: those of its outcome, if it has one."""

    def __post_init__(self) -> None:
        if not self.label:
            msgspec.structs.force_setattr(self, "label", self.state)

    @property
    def next_step(self) -> str:
        """The command, with the other answers beside it."""
        return render_command(self.command, self.others)


def render_spend(spends: Iterable[SpendFigures]) -> str:
    """Return what runs have spent together, in dollars and tokens; empty: nothing is known."""
    spends = list(spends)
    tokens = sum(one.tokens.value or 0 for one in spends)
    told = f"{int(tokens):,} tokens" if tokens else ""
    return ", ".join(filter(None, (render_usd(one.usd for one in spends), told)))


def render_usd(figures: Iterable[Figure]) -> str:
    """Return the sum of the amounts that are known; empty: none is."""
    costs = [one for one in figures if one.value is not None]
    about = "~" if any(cost.source == "estimated" for cost in costs) else ""
    return f"{about}${sum(cost.value or 0 for cost in costs):.2f}" if costs else ""


def render_command(command: str, others: Sequence[str]) -> str:
    """Return a command with the other answers beside it."""
    return f"{command}  (or: {', '.join(others)})" if others else command
