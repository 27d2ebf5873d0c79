"""Define which answers a question accepts from a person, and the effect of each answer.

Only the first answer counts. The writer, which holds the agent's lock, marks all later ones as
refused. The effect of an answer depends only on the recorded event, so nothing is lost or done
twice if the supervisor is killed at any point.
"""

import math
from collections.abc import Sequence
from datetime import datetime

import msgspec

from rekindle.documents.events import (
    AnswerEffect,
    QuestionAnswered,
    QuestionAsked,
)
from rekindle.documents.events.operator_events import DEADLINE
from rekindle.documents.tables import require_same
from rekindle.errors import AnswerError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.stop_reasons import RETRY, STOP_REASONS
from rekindle.policy.operator.questions import (
    ASKED,
    ASKED_CHOICES,
    PERMISSION,
    PERMISSION_CHOICES,
    find_blocking_question,
    find_question_state,
)
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.setup.permissions import find_rule
from rekindle.thresholds.screens import ANSWER_CHARACTERS
from rekindle.thresholds.texts import QUOTED_CHARACTERS

TEXT_ANSWER = "TEXT"
RAISE_ANSWER = "raise AMOUNT"


class AnswerRow(msgspec.Struct, frozen=True):
    """The effect of an answer, and its description for the operator."""

    effect: AnswerEffect
    meaning: str


ACCEPT = "accept"
ANSWERS: dict[str, AnswerRow] = {
    TEXT_ANSWER: AnswerRow("restart", "starts the agent and passes your answer to the next cycle"),
    RAISE_ANSWER: AnswerRow("continue", "continues the same run with AMOUNT as the new limit"),
    RETRY: AnswerRow("restart", "restarts the agent, like `rekindle restart`"),
    ACCEPT: AnswerRow("restart", "accepts the changed settings and restarts the agent"),
    "done": AnswerRow("finish", "ends the run as done, which confirms the agent's report"),
    "stop": AnswerRow("stop", "stops the agent, like `rekindle stop`"),
    "allow": AnswerRow(
        "note",
        "lets a waiting call run once; otherwise tells the next cycle to retry the call, and "
        "prints the permission to add",
    ),
    "deny": AnswerRow(
        "note", "refuses a waiting call; tells the next cycle to continue without it"
    ),
    "skip": AnswerRow("note", "tells the agent to decide without you"),
}
"""Effect of each possible answer. `STOP_REASONS` lists the choices for each question."""
DISPUTED = "disputed"
ANSWERS_ABOUT: dict[tuple[str, str], AnswerRow] = {
    (DISPUTED, ACCEPT): AnswerRow("finish", "ends the run as done, as the agent reported"),
}
"""Exceptions to `ANSWERS`, by the question's reason and the answer."""
APPROVALS = ("allow", "accept", "retry")
DENIALS = ("deny", "stop")
require_same(
    ANSWERS,
    {
        *PERMISSION_CHOICES,
        *ASKED_CHOICES,
        *(choice for row in STOP_REASONS.values() for choice in row.choices),
    },
)
_NOTES = {
    "allow": "It is allowed. If it is still refused, continue without it for now.",
    "deny": "It is denied. Do not try it again; find another way, or say what is missing.",
    "skip": "It is left to you: decide yourself, and record the decision.",
}


def apply_defaults(projection: Projection, now: datetime) -> list[QuestionAnswered]:
    """Return the default answers to questions whose deadline has passed."""
    answers = []
    for question in projection.questions.values():
        is_late = find_question_state(projection, question, now) == "unanswered"
        if is_late and question.question not in projection.answers:
            answer = make_answer(projection, question, question.default, now)
            # Leave the text empty, because the agent would take it for a person's words.
            answers.append(msgspec.structs.replace(answer, origin=DEADLINE, text=""))
    return answers


def make_answer(
    projection: Projection, question: QuestionAsked, words: str, now: datetime
) -> QuestionAnswered:
    """Return the event that answers a question.

    Raises:
        AnswerError: The question does not accept this answer.
    """
    words = words.strip()
    head, _, rest = words.partition(" ")
    choice = next(
        (option for option in question.choices if option.casefold() == words.casefold()), ""
    )
    effect: AnswerEffect
    caps: dict[str, float] = {}
    text = _NOTES.get(choice, "")
    if question.about == ASKED and choice not in ANSWERS:
        # The answer is one that the agent suggested, or the person's own words.
        text, effect = choice or words, "note"
        require_own_words(text)
    elif choice and choice not in {TEXT_ANSWER, RAISE_ANSWER}:
        effect = ANSWERS_ABOUT.get((question.about, choice), ANSWERS[choice]).effect
    elif RAISE_ANSWER in question.choices and head.casefold() == "raise":
        caps = {str(question.request.get("unit")): _parse_amount(question, rest)}
        choice, effect = RAISE_ANSWER, "continue" if projection.run.is_over else "restart"
    elif TEXT_ANSWER in question.choices and words:
        require_own_words(words)
        choice, text, effect = "", words, "restart"
    else:
        raise AnswerError(question.question, "is not one of the choices", question.choices)
    if len(text) > ANSWER_CHARACTERS:
        reason = f"is longer than {ANSWER_CHARACTERS:,} characters"
        raise AnswerError(question.question, reason, question.choices)
    before = [projection.run.command.ts] if projection.run.command else []
    return QuestionAnswered(
        ts=open_loops.stamp_after(now, *before),
        question=question.question,
        effect=effect,
        choice=choice,
        text=text,
        asked=question.text,
        budget=caps,
    )


def require_own_words(text: str) -> None:
    """Raise UsageError if the user pasted a command without replacing its placeholder."""
    if text == TEXT_ANSWER:
        raise UsageError("TEXT is a placeholder", hint="replace it with your own words")


def require_length(text: str, most: int, noun: str) -> None:
    """Raise UsageError if a person's text is empty or too long."""
    if not text or len(text) > most:
        hint = "shorten it, and put the rest in a file that the agent can read"
        raise UsageError(
            f"{noun} has 1 to {most:,} characters; this one has {len(text):,}",
            hint=hint if text else "write it in quotes after the name of the agent",
        )


def _parse_amount(question: QuestionAsked, words: str) -> float:
    least = _find_least_cap(question)
    try:
        amount = float(words.strip().removeprefix("$").replace(",", "").replace("_", ""))
    except ValueError:
        reason = "needs the new cap as a number, such as `raise 20`"
        raise AnswerError(question.question, reason, question.choices) from None
    if not least < amount < float("inf"):
        reason = f"needs a cap above {least:,g}"
        raise AnswerError(question.question, reason, question.choices)
    return amount


def _find_least_cap(question: QuestionAsked) -> float:
    """Return the amount that a new cap must exceed."""
    return max(float(question.request.get(name, 0.0)) for name in ("cap", "spent"))


def judge_answer(
    projection: Projection, answer: QuestionAnswered, now: datetime
) -> QuestionAnswered:
    """Return the answer to record, marked as refused if it does not count."""
    question = projection.questions.get(answer.question)
    reason = (
        "no such question exists" if question is None else explain_closed(projection, question, now)
    )
    return msgspec.structs.replace(answer, refused=reason)


def explain_closed(projection: Projection, question: QuestionAsked, now: datetime) -> str:
    """Explain why a question no longer accepts an answer, or return "" if it still does."""
    answer = projection.answers.get(question.question)
    match find_question_state(projection, question, now):
        case "answered" if answer is not None:
            by = f" by {answer.by}" if answer.by else ""
            what = answer.choice or to_one_line(answer.text, QUOTED_CHARACTERS)
            return f"it was answered{by} at {answer.ts:%Y-%m-%d %H:%M} UTC: {what}"
        case "unanswered":
            newest = find_blocking_question(projection, now)
            is_asked_again = newest is not None and newest.about == question.about
            again = f"; {newest.question} asks the same" if newest and is_asked_again else ""
            return f"its deadline has passed, so its default applies: {question.default}{again}"
        case "withdrawn":
            return "another command made it unnecessary"
        case _:
            return ""


def accepts_enter(question: QuestionAsked) -> bool:
    """Return whether Enter at the supervisor's terminal answers the question with `retry`."""
    needs_edit = STOP_REASONS[stop_reasons.parse_reason(question.about)].needs_edit
    return RETRY in question.choices and not needs_edit


def render_answer_command(question: QuestionAsked) -> str:
    """Return the command that answers a question, with a choice or a placeholder for text."""
    if question.about == PERMISSION:
        return f"rekindle approve {question.question}"
    if question.about == ASKED:
        # The agent wrote the choices, so none of them may become part of a command.
        return explain_reasons.render_answer(question.question)
    return explain_reasons.render_answer(question.question, _find_first_answer(question))


def list_other_answers(question: QuestionAsked) -> tuple[str, ...]:
    """Return the possible answers that `render_answer_command` leaves out."""
    if question.about == PERMISSION:
        return (f"rekindle deny {question.question}",)
    if question.about == ASKED:
        return tuple(choice for choice in question.choices if choice != TEXT_ANSWER)
    first = _find_first_answer(question) or TEXT_ANSWER
    return tuple(choice for choice in question.choices if choice != first)


def _find_first_answer(question: QuestionAsked) -> str:
    """Return the first choice that is neither the default nor free text, or "" if there is none."""
    for choice in question.choices[:-1]:
        if choice == RAISE_ANSWER:
            return f"raise {max(1, math.ceil(2 * _find_least_cap(question)))}"
        if choice != TEXT_ANSWER:
            return choice
    return ""


def find_permission_rule(question: QuestionAsked, allowed: Sequence[str]) -> str:
    """Return the rule that permits a refused call when it is added to `allowed_tools`."""
    request = question.request
    tool = str(request.get("permission") or request.get("tool", ""))
    return find_rule(tool, request.get("arguments", {}), allowed)
