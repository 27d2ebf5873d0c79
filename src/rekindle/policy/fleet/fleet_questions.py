"""Open questions of many agents of a fleet."""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from rekindle.documents.events import QuestionAsked
from rekindle.errors import RekindleError


class FleetQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """An open question of an agent."""

    agent: str
    """Name of the agent that asks."""
    question: str
    """Id of the question."""
    text: str
    """The question, in one sentence."""
    about: str
    """Why the agent needs a person."""
    choices: tuple[str, ...]
    """Possible answers. TEXT stands for any text, AMOUNT for a number."""
    default: str
    """Answer that counts if the deadline passes."""
    asked: datetime
    deadline: datetime | None = None
    """Time at which the default counts; None for no deadline."""


class FleetQuestions(msgspec.Struct, frozen=True):
    """The open questions of a fleet, as far as its agents could be read."""

    opened: tuple[FleetQuestion, ...] = ()
    """Open questions, oldest first."""
    failed: Mapping[str, RekindleError] = {}
    """Why an agent that asks could not be read."""


def make_questions(agent: str, asked: Iterable[QuestionAsked]) -> list[FleetQuestion]:
    return [
        FleetQuestion(
            agent=agent,
            question=one.question,
            text=one.text,
            about=one.about,
            choices=one.choices,
            default=one.default,
            asked=one.ts,
            deadline=one.deadline,
        )
        for one in asked
    ]
