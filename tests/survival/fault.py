"""What a fault can do to the model and to the host, and when.

A fault is triggered by the Nth item call, never by time. It interferes in the answers of the model,
or acts on the host while the item call is held open. `evidence` is empty until the fault has really
happened: a cell without evidence does not count.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from loopback.log import Part
from loopback.script import Step, Usage
from survival import task
from survival.player import Move, View
from survival.refusals import Refusals

CALL: Final = 7
"""The item call in which a fault strikes, or whose request is refused."""
HALF: Final = 10
"""Items after which the model stops to do what it should."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One main request."""

    number: int
    calls: int
    """Item calls before it."""
    view: View
    parts: Sequence[Part]


class Host(Protocol):
    """What a fault can do on the host."""

    project: Path

    def clis(self) -> list[int]: ...
    def wrappers(self) -> list[int]: ...
    def kill(self, pids: Sequence[int]) -> None: ...
    def reboot(self) -> None: ...
    def stop_as_operator(self) -> None: ...
    def truncate_state(self) -> list[str]: ...
    def hang(self, pid: int) -> int: ...
    def fill_disk(self) -> int: ...
    def free_disk(self) -> None: ...


class Fault:
    """A fault that never happens, and the base of all others."""

    title = "no fault"
    call = CALL
    half = HALF
    total = task.TOTAL
    """Items that the operator's check wants."""
    must_stop = False
    """Whether the work must stay unfinished, because the operator stopped it."""
    patience = 120.0
    """Seconds without a request after which a person looks at a tool that is still running."""
    has_person = True
    """Whether a person is there who acts if the tool does not continue."""

    def __init__(self, signals: Path, refusals: Refusals) -> None:
        self.signals, self.refusals = signals, refusals
        self.evidence = ""
        self.word = ""
        """The text that ends the work, for tools that wait for one."""
        self.at = 0.0
        """Monotonic time of the fault; 0 before it."""

    def happened(self, evidence: str) -> None:
        self.evidence = evidence
        self.at = self.at or time.monotonic()

    @property
    def ended_at(self) -> float:
        """Return the monotonic time from which the work could continue."""
        return self.at

    @property
    def next_item(self) -> int:
        """Return the item whose end shows that the work continues."""
        return self.call

    @property
    def strikes(self) -> list[tuple[float, str]]:
        """Return when it happened, and what."""
        return [(self.at, self.title)] if self.at else []

    def prepare(self) -> None:
        """Create its files in the project."""
        self.signals.mkdir()

    # In the model

    def refuse(self, asked: Asked) -> Step | None:
        """Return an error instead of an answer to a main request."""
        return None

    def refuse_side(self, kind: str) -> Step | None:
        """Return an error instead of an answer to a side request."""
        return None

    def steer(self, asked: Asked, move: Move) -> Move:
        """Return what the model does instead of the right move."""
        return move

    def wrap(self, number: int, line: str) -> str:
        """Return the command of an item call, with what makes it special."""
        return line

    def report_usage(self, asked: Asked, usage: Usage, output: int) -> Usage:
        """Return the usage that the answer reports."""
        return replace(usage, output=output)

    # On the host

    def is_due(self) -> bool:
        """Return whether the cell must call `apply` now."""
        return False

    def apply(self, host: Host) -> None:
        """Act on the host."""

    def help(self, host: Host) -> None:
        """Do what else a person does before starting the tool again."""

    def can_continue(self) -> bool:
        """Return whether a person who starts the tool again can expect that it works."""
        return True

    def is_idle(self, host: Host) -> bool:
        """Do what a person does once the tool does nothing more; return whether it was done."""
        return False
