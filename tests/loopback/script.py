"""The answers of the model: steps, written by the test, independent of the API.

A step answers one request. A request that the program under test repeats is one more request: a
lasting failure is `Forever(Fail(...))`.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that an answer reports."""

    input: int = 100
    """The uncached tokens; an API that counts all together gets the sum."""
    cache_read: int = 0
    cache_write: int = 0
    output: int = 10


@dataclass(frozen=True, slots=True)
class Text:
    """Text, and the end of the model's turn."""

    text: str
    usage: Usage = Usage()


DONE: Final = Text("done.")
"""The answer when a script is exhausted."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool."""

    name: str
    input: Mapping[str, Any]
    usage: Usage = Usage()
    said: str = ""
    """Text before the call. Only Gemini's dialect sends it."""


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
    """Further fields of the API about the error."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection drops after half of the answer."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Slow:
    """The answer arrives with a pause before every piece."""

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
    """The last entry of a script: this step answers every further request."""

    step: Step


class Script:
    """Hands out steps in order, and remembers its position."""

    def __init__(self, *steps: Step | Forever) -> None:
        if any(isinstance(step, Forever) for step in steps[:-1]):
            raise ValueError("a step after Forever would never be reached")
        self.steps = steps
        self._taken = 0

    @property
    def remaining(self) -> int:
        """Return the steps that no request has used yet."""
        return max(0, len(self.steps) - self._taken)

    def take(self) -> tuple[int, Step] | None:
        """Return the next step and its place in the script; None if the script is exhausted."""
        place = self._taken
        self._taken += 1
        if place >= len(self.steps):
            last = self.steps[-1] if self.steps else None
            return (len(self.steps) - 1, last.step) if isinstance(last, Forever) else None
        step = self.steps[place]
        return place, step.step if isinstance(step, Forever) else step
