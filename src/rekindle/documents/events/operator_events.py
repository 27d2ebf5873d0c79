"""Operator commands, and questions for a person."""

from datetime import datetime
from typing import Any, Literal

from rekindle.documents.events.event import Event

DEADLINE = "deadline"
"""Origin of a default answer that is recorded because the deadline has passed."""


class DesiredSet(Event, frozen=True, kw_only=True, tag="desired.set"):
    summary = "The operator decided whether the agent should run, regardless of any marker file."
    desired: Literal["running", "stopped"]
    """Desired state of the agent."""
    cycles: int | None = None
    """Maximum number of cycles in the run; 0 for no limit, None to leave the limit unchanged."""
    unbounded: bool | None = None
    """Whether the run continues without progress (`--budget none`), or None for no change."""
    due: datetime | None = None
    """Due time of the schedule that starts the run, or None if the operator starts it."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class RestartRequested(Event, frozen=True, kw_only=True, tag="restart.requested"):
    summary = "The operator asked to start the agent now, even if it was paused or waiting."
    fresh: bool = False
    """Whether to start a fresh session instead of resuming the current one."""
    once: bool = False
    """Whether the restart is for a single run. Earlier cycles still count against the agent."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class PersonAnswered(Event, frozen=True, kw_only=True, tag="person.answered"):
    summary = "A person answered the agent. The next cycle receives the answer."
    text: str
    """Answer text."""
    asked: str = ""
    """Question or event that the agent was waiting for."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class QuestionAsked(Event, frozen=True, kw_only=True, tag="question.asked"):
    summary = "The agent asked a person for a decision. The first answer counts."
    question: str
    """Question id, built from the agent's name and `number`."""
    number: int
    """The question's number for this agent, starting at 1. Numbers are never reused."""
    about: str
    """Why the agent needs a person: a permission, or the reason for safe mode or for the end of its
    run.
    """
    text: str = ""
    """The question, in one sentence."""
    request: dict[str, Any] = {}
    """Exact request: the refused call with its arguments, or the cap that was reached."""
    choices: tuple[str, ...]
    """Possible answers. TEXT stands for any text, AMOUNT for a number."""
    default: str
    """Choice to apply if the deadline passes without an answer."""
    deadline: datetime | None = None
    """Time at which the default applies, or None for no deadline."""
    launch: str = ""
    """Id of the launch that the question is about, or empty if it is not about a launch."""


AnswerEffect = Literal["restart", "continue", "stop", "finish", "note"]
"""What an answer does: start the agent again, continue a run that is over, stop, mark the run as
done, or only inform the agent.
"""


class QuestionAnswered(Event, frozen=True, kw_only=True, tag="question.answered"):
    summary = "A person answered a question, or its deadline passed."
    question: str
    effect: AnswerEffect
    """The answer's effect on the agent."""
    choice: str = ""
    """The selected choice, or empty if the answer is `text`."""
    text: str = ""
    """Message for the next cycle, or empty if there is none."""
    asked: str = ""
    """Question text, repeated for the next cycle."""
    budget: dict[str, float] = {}
    """Limits that the answer sets for this run, by `usd`, `tokens` or `hours`."""
    by: str = ""
    """User who answered, or `SERVICE:ID` from a phone; empty if the deadline passed."""
    host: str = ""
    origin: str = ""
    """Where the answer came from: terminal, command, program, phone or deadline."""
    refused: str = ""
    """Why the answer does not count, or empty if it does."""


class MessageSent(Event, frozen=True, kw_only=True, tag="message.sent"):
    summary = "A person sent the agent a message, which does not interrupt it."
    message: str
    """Message id."""
    text: str
    """Message text."""
    by: str = ""
    """User who sent it."""
    origin: str = ""
    """Where the message came from: terminal, command or program."""


class MessageDelivered(Event, frozen=True, kw_only=True, tag="message.delivered"):
    summary = "The agent has received a person's message. It is not sent again."
    message: str
    """Message id."""
    session: str
    launch: str = ""
    """Launch of the session, or empty if a person started it."""
    how: str
    """How the session received it: `hook` for the result of a tool call, `prompt` for the first
    prompt of a launch, or `primer` for the start of a person's own session.
    """


class CallPermitted(Event, frozen=True, kw_only=True, tag="call.permitted"):
    summary = "The supervisor let a waiting call run, once, because a person had approved it."
    question: str
    """Question whose approval was used."""
    launch: str
    """Launch in which the call waited."""


class WorkRewound(Event, frozen=True, kw_only=True, tag="work.rewound"):
    summary = "The operator rewound the work tree to a snapshot. The next session starts fresh."
    snapshot: str
    """Name of the snapshot that was restored."""
    commit: str
    """Commit that holds the snapshot."""
    occasion: str
    """Description of when the snapshot was taken, such as `cycle 3, start`."""
    saved: str
    """Name of the snapshot that was taken before the rewind."""


class HandoffRequested(Event, frozen=True, kw_only=True, tag="handoff.requested"):
    summary = "The operator asked for a handoff to a fresh session."
    to: str = ""
    """CLI, or CLI and account such as `claude-code/work`, on which the work is to continue."""
    by: str = ""
    """User who gave the command, as USER@HOST; empty unless it was given on a fleet."""


class BudgetRaised(Event, frozen=True, kw_only=True, tag="budget.raised"):
    summary = "The operator raised the caps of the current run."
    usd: float | None = None
    """New cap in dollars, or None for no change."""
    tokens: int | None = None
    """New cap in tokens, or None for no change."""
    hours: float | None = None
    """New cap in hours, or None for no change."""
    by: str = ""
    """User who raised them."""
    host: str = ""
    origin: str = ""
    """Where the command came from: command or program."""
