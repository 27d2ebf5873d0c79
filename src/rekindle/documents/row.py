"""One row per agent: all that `status`, `--json`, the morning page and notifications say of it."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

State = Literal["running", "waiting", "needs you", "stopped", "done", "broken"]
Source = Literal["reported", "estimated", "unknown"]
"""Where a number comes from. An unknown one has no value: it is never shown as 0."""
_WITHOUT_ANSWER = re.compile(r"rekindle answer \S+$")


class Figure(msgspec.Struct, frozen=True):
    """A number, and where it comes from."""

    value: float | None = None
    source: Source = "unknown"


class Window(msgspec.Struct, frozen=True):
    """How full the window of the last session is."""

    tokens: Figure = Figure()
    size: int | None = None
    percent: Figure = Figure()


class Spend(msgspec.Struct, frozen=True):
    """What the run has spent, and what it may spend."""

    usd: Figure = Figure()
    tokens: Figure = Figure()
    unpriced: int = 0
    """Launches whose cost is unknown."""
    usd_cap: float | None = None
    tokens_cap: int | None = None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    agent: str
    harness: str = ""
    at: int = 0
    """Number of the last event that it was made from."""
    state: State
    outcome: str | None = None
    """The outcome of a run that is over, paused or waiting."""
    reason: str = ""
    command: str = ""
    """What the operator types next, as a shell takes it; empty: nothing is needed."""
    others: tuple[str, ...] = ()
    """Other answers to the agent's question than the one in `command`."""
    next_action: str = ""
    cycle: int = 0
    cycles_done: int = 0
    cycles_of: int | None = None
    """How many cycles the run may have; None: any number."""
    window: Window = Window()
    spend: Spend = Spend()
    open_loops: int = 0
    stale_loops: int = 0
    refused: int = 0
    """Tool calls of the run that the CLI refused."""
    open_questions: int = 0
    """Questions that a person can answer now, also those that hold nothing up."""
    last_active: datetime | None = None
    label: str = ""
    """What people are shown as its state: the words of its outcome, if it has one."""

    def __post_init__(self) -> None:
        if not self.label:
            msgspec.structs.force_setattr(self, "label", self.state)

    @property
    def next_step(self) -> str:
        """The command, with the other answers beside it."""
        return with_others(self.command, self.others)


def with_others(command: str, others: Sequence[str]) -> str:
    """Return a command as people are shown it, with the other answers beside it.

    A command that would ask for its answer is shown with the place of the text.
    """
    if "TEXT" in others and _WITHOUT_ANSWER.search(command):
        command, others = f'{command} "TEXT"', [one for one in others if one != "TEXT"]
    return f"{command}  (or: {', '.join(others)})" if others else command
