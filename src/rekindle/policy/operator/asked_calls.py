"""Decide about tool calls that wait for a person's approval.

An approval permits one call, once. It is bound to the hash of the tool, its arguments and the
folder. An approval that comes too late for the waiting call stays valid until the next cycle ends.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents.events import QuestionAsked
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.operator import questions
from rekindle.policy.operator.questions import PERMISSION, QuestionTerms
from rekindle.policy.projection.projection import Projection
from rekindle.thresholds.supervision import QUESTION_CHARACTERS
from rekindle.thresholds.texts import ABOUT_CHARACTERS

ALLOW = "allow"
_CALL = "call"
"""Key in a question's request for the hash of the call that waits."""
_WAITS_UNTIL = "waits_until"


class AskedCall(msgspec.Struct, frozen=True):
    """A tool call that waits for approval."""

    digest: str
    """Hash of the tool, its arguments and the folder."""
    tool: str
    arguments: Mapping[str, Any]
    """Arguments without secrets."""
    about: str
    """Arguments on one line."""
    folder: str = ""
    """Folder in which the call would run."""


def ask_about_waiting_call(
    projection: Projection, call: AskedCall, launch: str, until: datetime, terms: QuestionTerms
) -> QuestionAsked:
    """Return the question about a call that waits until the given time."""
    words = to_one_line(f"{call.tool} {call.about}", ABOUT_CHARACTERS)
    question = questions.make_permission_question(projection, words, launch, terms)
    request = {
        **questions.describe_call(call.tool, call.arguments),
        "folder": call.folder[:QUESTION_CHARACTERS],
        _CALL: call.digest,
        _WAITS_UNTIL: until.isoformat(timespec="seconds"),
    }
    return msgspec.structs.replace(question, request=request)


def is_about_waiting_call(question: QuestionAsked) -> bool:
    """Return whether a question was asked while a call waited for its answer."""
    return question.about == PERMISSION and bool(question.request.get(_CALL))


def find_open_question(projection: Projection, digest: str, now: datetime) -> QuestionAsked | None:
    """Return the newest open question about the same call, or None."""
    opened = questions.list_open_questions(projection, now)
    return next((each for each in reversed(opened) if each.request.get(_CALL) == digest), None)


def list_approvals(projection: Projection, digest: str) -> list[str]:
    """Return the questions whose unused approvals permit the call."""
    return [
        question.question
        for question in _list_approved(projection)
        if question.request.get(_CALL) == digest
    ]


def _list_approved(projection: Projection) -> Iterator[QuestionAsked]:
    """Yield the questions with an approval that was not used and is still valid."""
    for question in projection.questions.values():
        answer = projection.answers.get(question.question)
        if (
            is_about_waiting_call(question)
            and answer is not None
            and answer.choice == ALLOW
            and question.question not in projection.permitted
            and answer.seq
            and sum(cycle.seq > answer.seq for cycle in projection.ended.values()) <= 1
        ):
            yield question
