"""Ask a person: when to ask, which answers a question accepts, and what each answer does.

A question is recorded in the same write as the event that it is about. Only one answer counts: the
writer, which holds the agent's lock, marks every later one as refused. The effect of an answer
follows from the recorded event alone, so nothing is lost or done twice if the supervisor is killed
at any point.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnswerEffect,
    QuestionAnswered,
    QuestionAsked,
)
from rekindle.documents.launches.cli_output import RefusedCall
from rekindle.documents.manifest import Budget
from rekindle.documents.tables import require_same
from rekindle.errors import AnswerError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import reason_text, stop_reasons
from rekindle.policy.exits.stop_reasons import STOP_REASONS
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.setup.permissions import find_rule
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.run_moves import RunState
from rekindle.thresholds.screens import ANSWER_CHARACTERS
from rekindle.thresholds.supervision import (
    QUESTION_CHARACTERS,
    QUESTIONS_A_LAUNCH,
)
from rekindle.thresholds.texts import ABOUT_CHARACTERS, QUOTED_CHARACTERS

QuestionState = Literal["open", "answered", "unanswered", "withdrawn"]
"""`unanswered`: its deadline has passed; `withdrawn`: another command has settled it."""

PERMISSION = "permission"
BUDGET = "budget"
WAITING = "waiting"
DEADLINE = "deadline"
"""Origin of an answer that was given by the deadline, not by a person."""
REFUSED_CALL_PREFIX = "permission for a call that was refused: "
"""Beginning of the text of a question about a refused call."""
RETRY = "retry"
TEXT_ANSWER = "TEXT"
RAISE_ANSWER = "raise AMOUNT"


class AnswerRow(msgspec.Struct, frozen=True):
    """Effect of an answer."""

    effect: AnswerEffect
    meaning: str


ACCEPT = "accept"
ANSWERS: dict[str, AnswerRow] = {
    TEXT_ANSWER: AnswerRow("restart", "starts the agent; its next cycle begins with your words"),
    RAISE_ANSWER: AnswerRow("continue", "continues the same run, with AMOUNT as its new cap"),
    RETRY: AnswerRow("restart", "starts the agent again, like `rekindle restart`"),
    ACCEPT: AnswerRow("restart", "accepts the changed settings, and starts the agent again"),
    "done": AnswerRow("finish", "ends the run as done: you confirm what the agent reports"),
    "stop": AnswerRow("stop", "stops the agent, like `rekindle stop`"),
    "allow": AnswerRow("note", "tells the next cycle, and prints the permission to add"),
    "deny": AnswerRow("note", "tells the next cycle to continue without the call"),
}
"""Effect of each answer. `STOP_REASONS` lists the choices of each question."""
DISPUTED = "disputed"
ANSWERS_ABOUT: dict[tuple[str, str], AnswerRow] = {
    (DISPUTED, ACCEPT): AnswerRow("finish", "ends the run as done, as the agent reports"),
}
"""Effects that differ for questions about a certain reason, by reason and answer."""
PERMISSION_CHOICES = ("allow", "deny")
APPROVALS = ("allow", "accept", "retry")
DENIALS = ("deny", "stop")
require_same(
    ANSWERS,
    {*PERMISSION_CHOICES, *(choice for row in STOP_REASONS.values() for choice in row.choices)},
)
_NOTES = {
    "allow": "It is allowed. If it is still refused, continue without it: the settings follow.",
    "deny": "It is denied. Do not try it again; find another way, or say what is missing.",
}


class QuestionTerms(msgspec.Struct, frozen=True):
    """Conditions for asking, in addition to the state of the agent."""

    now: datetime
    seconds: float
    """Seconds until the deadline; infinite if there is none."""
    cap: Budget | None = None
    last_number: Callable[[], int] = lambda: 0
    """Function that returns the number of the last question, even if the log has lost it; called
    only before a question is asked.
    """

    @property
    def deadline(self) -> datetime | None:
        try:
            return self.now + timedelta(seconds=self.seconds)
        except OverflowError:  # also for infinite seconds
            return None


def add_questions(
    projection: Projection, new: Sequence[events.AnyEvent], asking: QuestionTerms
) -> list[events.AnyEvent]:
    """Return the events, with a question after each one that needs a person."""
    result: list[events.AnyEvent] = []
    number, last = 0, projection.last_ended_cycle
    for event in new:
        result.append(event)
        last = event if isinstance(event, events.CycleEnded) else last
        about, words = _find_subject(event)
        if about == WAITING and last is not None:
            words = last.about or words
        if about:
            number = (number or _find_last_number(projection, asking)) + 1
            result.append(_make_question(projection, number, about, words, asking))
    return result


def ask_about_safe_mode(projection: Projection, asking: QuestionTerms) -> QuestionAsked | None:
    """Return the question for an agent in safe mode; None if one is open or it is not needed."""
    if not projection.run.is_safe or find_blocking_question(projection, asking.now) is not None:
        return None
    safe = projection.run.safe
    return _make_question(
        projection, _find_last_number(projection, asking) + 1, safe.why, safe.words, asking
    )


def ask_about_calls(
    projection: Projection, refused: Iterable[RefusedCall], launch: str, asking: QuestionTerms
) -> list[QuestionAsked]:
    """Return a question for each new refused call of the run, up to the maximum for one launch."""
    seen = [
        earlier.request
        for earlier in projection.questions.values()
        if earlier.about == PERMISSION and earlier.seq > projection.run.began
    ]
    asked: list[QuestionAsked] = []
    for call in refused:
        request = {"tool": call.tool, "arguments": _shorten_arguments(call.arguments)}
        if call.permission:
            request["permission"] = call.permission
        if request in seen or len(asked) == QUESTIONS_A_LAUNCH:
            continue
        seen.append(request)
        number = _find_last_number(projection, asking) + len(asked) + 1
        words = f"{REFUSED_CALL_PREFIX}{call.tool} {to_one_line(call.about, ABOUT_CHARACTERS)}"
        question = _make_question(projection, number, PERMISSION, words, asking)
        asked.append(msgspec.structs.replace(question, request=request, launch=launch))
    return asked


def _shorten_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments; if they are too long, only their beginning and the file's path."""
    encoded = msgspec.json.encode(arguments).decode()
    if len(encoded) <= QUESTION_CHARACTERS:
        return dict(arguments)
    path = arguments.get("file_path")
    named = {"file_path": path} if isinstance(path, str) and len(path) < QUESTION_CHARACTERS else {}
    return {**named, "cut": f"{encoded[:QUESTION_CHARACTERS]}…"}


def _find_subject(event: events.AnyEvent) -> tuple[str, str]:
    match event:
        case events.SafeModeEntered():
            return event.why, event.words
        case events.RunEnded() if stop_reasons.find_outcome(event.outcome).asks:
            return event.outcome, event.words
        case _:
            return "", ""


def _find_last_number(projection: Projection, asking: QuestionTerms) -> int:
    """Return the number of the last question; numbers are never reused."""
    return max(
        (asking.last_number(), *(question.number for question in projection.questions.values()))
    )


def _make_question(
    projection: Projection, number: int, about: str, words: str, asking: QuestionTerms
) -> QuestionAsked:
    request: dict[str, Any] = {}
    choices = (
        PERMISSION_CHOICES
        if about == PERMISSION
        else STOP_REASONS[stop_reasons.parse_reason(about)].choices
    )
    if about == BUDGET:
        run, cap = projection.run, budget.raise_caps(asking.cap, projection.run.raised_caps())
        spent = run.run_spending()
        reached = budget.find_reached_cap(spent, cap, began=run.began_at, now=asking.now)
        if reached is not None:
            request = {"unit": reached.unit, "cap": reached.cap, "spent": reached.spent}
        elif cap is not None and cap.usd is not None:
            # The CLI counted its own spending and stopped before our count reached the cap.
            request = {"unit": "usd", "cap": cap.usd, "spent": spent.usd}
        else:
            choices = STOP_REASONS["crash"].choices
    return QuestionAsked(
        ts=asking.now,
        question=f"{projection.agent}-{number}",
        number=number,
        about=about,
        text=reason_text.explain_reason(about, words),
        request=request,
        choices=choices,
        default=choices[-1],
        deadline=asking.deadline,
    )


def find_blocking_question(projection: Projection, now: datetime) -> QuestionAsked | None:
    """Return the open question that blocks the agent, or None."""
    blocking = [
        question
        for question in list_open_questions(projection, now)
        if question.about != PERMISSION
    ]
    return blocking[-1] if blocking else None


def list_open_questions(projection: Projection, now: datetime) -> list[QuestionAsked]:
    """Return the questions that a person can answer now, oldest first."""
    asked = sorted(projection.questions.values(), key=lambda question: question.seq)
    return [
        question for question in asked if find_question_state(projection, question, now) == "open"
    ]


def find_next_deadline(projection: Projection, now: datetime) -> datetime | None:
    """Return the first deadline of the open questions, or None."""
    return min(
        (
            question.deadline
            for question in list_open_questions(projection, now)
            if question.deadline
        ),
        default=None,
    )


def find_question_state(
    projection: Projection, question: QuestionAsked, now: datetime
) -> QuestionState:
    """Return whether a question is open, or how it was closed."""
    answer = projection.answers.get(question.question)
    if answer is not None:
        return "unanswered" if answer.origin == DEADLINE else "answered"
    if question.about != PERMISSION and not _is_still_relevant(projection.run, question):
        return "withdrawn"
    is_late = question.deadline is not None and now >= question.deadline
    return "unanswered" if is_late else "open"


def _is_still_relevant(run: RunState, question: QuestionAsked) -> bool:
    """Return whether the agent is not stopped and still in the state of the question."""
    if run.desired == "stopped" or run.stopped > question.seq:
        return False  # also by a stop in the inbox, which has no log position yet
    return (run.is_safe and question.seq > run.safe.seq) or (
        run.is_over and question.seq > run.ended.seq
    )


def apply_defaults(projection: Projection, now: datetime) -> list[QuestionAnswered]:
    """Return the default answers of questions whose deadline has passed."""
    answers = []
    for question in projection.questions.values():
        is_late = find_question_state(projection, question, now) == "unanswered"
        if is_late and question.question not in projection.answers:
            answer = make_answer(projection, question, question.default, now)
            # A text is passed to the agent as the words of a person, so leave it empty.
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
    if choice and choice not in {TEXT_ANSWER, RAISE_ANSWER}:
        effect = ANSWERS_ABOUT.get((question.about, choice), ANSWERS[choice]).effect
    elif RAISE_ANSWER in question.choices and head.casefold() == "raise":
        caps = {str(question.request.get("unit")): _parse_amount(question, rest)}
        choice, effect = RAISE_ANSWER, "continue" if projection.run.is_over else "restart"
    elif TEXT_ANSWER in question.choices and words:
        require_own_words(words)
        choice, text, effect = "", words, "restart"
    else:
        raise AnswerError(question.question, "is not one of its choices", question.choices)
    if len(text) > ANSWER_CHARACTERS:
        reason = f"is longer than {ANSWER_CHARACTERS:,} characters"
        raise AnswerError(question.question, reason, question.choices)
    before = [projection.run.said.ts] if projection.run.said else []
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
    """Raise UsageError for the placeholder of a command that was pasted as it is."""
    if text == TEXT_ANSWER:
        raise UsageError("TEXT is a placeholder", hint="write your own words in its place")


def _parse_amount(question: QuestionAsked, words: str) -> float:
    least = _find_least_cap(question)
    try:
        amount = float(words.strip().removeprefix("$").replace(",", "").replace("_", ""))
    except ValueError:
        reason = "needs the new cap as a number, as in `raise 20`"
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
        "there is no such question"
        if question is None
        else explain_closed(projection, question, now)
    )
    return msgspec.structs.replace(answer, refused=reason)


def explain_closed(projection: Projection, question: QuestionAsked, now: datetime) -> str:
    """Return why a question no longer accepts an answer; empty if it does."""
    answer = projection.answers.get(question.question)
    match find_question_state(projection, question, now):
        case "answered" if answer is not None:
            by = f" by {answer.by}" if answer.by else ""
            what = answer.choice or to_one_line(answer.text, QUOTED_CHARACTERS)
            return f"it was answered{by} at {answer.ts:%Y-%m-%d %H:%M} UTC: {what}"
        case "unanswered":
            return f"its deadline has passed, and its default applies: {question.default}"
        case "withdrawn":
            return "another command has settled it"
        case _:
            return ""


def accepts_enter(question: QuestionAsked) -> bool:
    """Return whether Enter at the supervisor's terminal answers the question with `retry`."""
    needs_edit = STOP_REASONS[stop_reasons.parse_reason(question.about)].needs_edit
    return RETRY in question.choices and not needs_edit


def render_answer_command(question: QuestionAsked) -> str:
    """Return the command that answers a question, with a choice or with the place of a text."""
    if question.about == PERMISSION:
        return f"rekindle approve {question.question}"
    return reason_text.render_answer(question.question, _find_first_answer(question))


def list_other_answers(question: QuestionAsked) -> tuple[str, ...]:
    """Return the other answers, to show next to the command of `render_answer_command`."""
    if question.about == PERMISSION:
        return (f"rekindle deny {question.question}",)
    first = _find_first_answer(question) or TEXT_ANSWER
    return tuple(choice for choice in question.choices if choice != first)


def _find_first_answer(question: QuestionAsked) -> str:
    """Return the first complete choice that is not the default; empty if there is none."""
    for choice in question.choices[:-1]:
        if choice == RAISE_ANSWER:
            return f"raise {max(1, math.ceil(2 * _find_least_cap(question)))}"
        if choice != TEXT_ANSWER:
            return choice
    return ""


def find_permission_rule(question: QuestionAsked, allowed: Sequence[str]) -> str:
    """Return the rule for `allowed_tools` that permits a refused call."""
    request = question.request
    tool = str(request.get("permission") or request.get("tool", ""))
    return find_rule(tool, request.get("arguments", {}), allowed)
