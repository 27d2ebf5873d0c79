"""The operator's commands, and questions to a person."""

from datetime import datetime
from typing import Any, Literal

from rekindle.documents.events.event import Event


class DesiredSet(Event, frozen=True, kw_only=True, tag="desired.set"):
    summary = "The operator decided whether the agent should run; this overrides every marker."
    desired: Literal["running", "stopped"]
    """State in which the operator wants the agent to be."""
    cycles: int | None = None
    """Maximum number of cycles of the run, 0 for no limit; None leaves the limit unchanged."""
    unbounded: bool | None = None
    """Whether the run continues without progress (`--budget none`); None for no change."""


class RestartRequested(Event, frozen=True, kw_only=True, tag="restart.requested"):
    summary = "The operator asked for another start now, whatever had prevented it."
    fresh: bool = False
    """Whether to start a fresh session instead of resuming the current one."""
    once: bool = False
    """Whether the restart is for one run only; earlier cycles still count against the agent."""


class PersonAnswered(Event, frozen=True, kw_only=True, tag="person.answered"):
    summary = "A person answered the agent; the next cycle receives the answer."
    text: str
    """Text of the answer."""
    asked: str = ""
    """Question or event that the agent was waiting for."""


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question.asked"):
    summary = "A person is asked for a decision; the first answer counts."
    question: str
    """Id of the question, made from the agent's name and `number`."""
    number: int
    """Number of the question within the agent, starting at 1; numbers are never reused."""
    about: str
    """Reason why the agent needs a person: permission, or the reason for safe mode or for the end
    of a run.
    """
    text: str = ""
    """The question, in one sentence."""
    request: dict[str, Any] = {}
    """The exact request: the refused call with its arguments, or the cap that was reached."""
    choices: tuple[str, ...]
    """Possible answers; TEXT stands for any text, AMOUNT for a number."""
    default: str
    """Choice that applies at the deadline."""
    deadline: datetime | None = None
    """Time at which the default applies; None for no deadline."""
    launch: str = ""
    """Id of the launch that the question is about; empty if it is not about a launch."""


AnswerEffect = Literal["restart", "continue", "stop", "finish", "note"]
"""Effect of an answer: start again, continue a run that is over, stop, end the run as done, or only
inform the agent.
"""


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="question.answered"):
    summary = "A question was answered, by a person or by its deadline."
    question: str
    effect: AnswerEffect
    """Effect of the answer on the agent."""
    choice: str = ""
    """Choice that was selected; empty if the answer is `text`."""
    text: str = ""
    """Message for the next cycle; empty if there is none."""
    asked: str = ""
    """The question, repeated for the next cycle."""
    budget: dict[str, float] = {}
    """Caps that the answer sets for this run, by `usd`, `tokens` or `hours`."""
    by: str = ""
    """Name of the user who answered; empty if the deadline passed."""
    host: str = ""
    origin: str = ""
    """Origin of the answer: terminal, command or deadline."""
    refused: str = ""
    """Reason why the answer does not count; empty if it counts."""


class HandoffRequested(Event, frozen=True, kw_only=True, tag="handoff.requested"):
    summary = "The operator asked for a handoff to a fresh session."
