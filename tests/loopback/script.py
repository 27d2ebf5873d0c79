"""What the model is to answer: steps, written by the test, and in the words of no API.

A step answers one request. A request that the program under test repeats is one more request: a
failure that lasts is `Forever(Fail(...))`.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that an answer says it took."""

    input: int = 100
    """Those that no cache had; an API that counts all together is told the sum."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 10


@dataclass(frozen=True, slots=True)
class Text:
    """Words, and the end of the model's turn."""

    text: str
    usage: Usage = Usage()


DONE: Final = Text("done.")
"""What answers when a script is exhausted."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    input: Mapping[str, Any]
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Parallel:
    """Several calls in one answer; the usage is this step's, not the calls'."""

    calls: tuple[ToolCall, ...]
    usage: Usage = Usage()


Answer = Text | ToolCall | Parallel


@dataclass(frozen=True, slots=True)
class Fail:
    """An error instead of an answer."""

    status: int
    type: str
    message: str
    headers: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)
    """What else the API says about the error, in its own words."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection drops when half of the answer is sent."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Slow:
    """The answer arrives, with a pause before every piece of it."""

    answer: Answer
    seconds: float


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing arrives, not even a header, until the test sets `release`."""

    answer: Answer | Fail = DONE
    release: threading.Event = field(default_factory=threading.Event)


Step = Answer | Fail | Cut | Slow | Hang


@dataclass(frozen=True, slots=True)
class Forever:
    """The last entry of a script: every further request is answered by this step."""

    step: Step


class Script:
    """Hands out steps in order, and remembers how far it is."""

    def __init__(self, *steps: Step | Forever) -> None:
        if any(isinstance(step, Forever) for step in steps[:-1]):
            raise ValueError("a step after Forever would never be reached")
        self.steps = steps
        self._taken = 0

    @property
    def remaining(self) -> int:
        """Steps that nothing has asked for yet."""
        return max(0, len(self.steps) - self._taken)

    def take(self) -> tuple[int, Step] | None:
        """The next step and its place in the script; None when the script is exhausted."""
        place = self._taken
        self._taken += 1
        if place >= len(self.steps):
            last = self.steps[-1] if self.steps else None
            return (len(self.steps) - 1, last.step) if isinstance(last, Forever) else None
        step = self.steps[place]
        return place, step.step if isinstance(step, Forever) else step
