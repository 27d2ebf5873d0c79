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
"""Effect of each answer. The table of exits lists the choices of each question."""
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
    known: Projection, new: Sequence[events.AnyEvent], asking: QuestionTerms
) -> list[events.AnyEvent]:
    """Return the events, each that needs a person followed by its question."""
    found: list[events.AnyEvent] = []
    number, last = 0, known.last_ended_cycle
    for event in new:
        found.append(event)
        last = event if isinstance(event, events.CycleEnded) else last
        about, words = _find_subject(event)
        if about == WAITING and last is not None:
            words = last.about or words
        if about:
            number = (number or _find_last_number(known, asking)) + 1
            found.append(_make_question(known, number, about, words, asking))
    return found


def ask_about_safe_mode(known: Projection, asking: QuestionTerms) -> QuestionAsked | None:
    """Return a question for an agent in safe mode; None if it is not, or if one is open."""
    if not known.run.is_safe or find_blocking_question(known, asking.now) is not None:
        return None
    safe = known.run.safe
    return _make_question(known, _find_last_number(known, asking) + 1, safe.why, safe.words, asking)


def ask_about_calls(
    known: Projection, refused: Iterable[RefusedCall], launch: str, asking: QuestionTerms
) -> list[QuestionAsked]:
    """Return a question for each new refused call of the run, up to the maximum for one launch."""
    seen = [
        one.request
        for one in known.questions.values()
        if one.about == PERMISSION and one.seq > known.run.began
    ]
    found: list[QuestionAsked] = []
    for call in refused:
        request = {"tool": call.tool, "arguments": _shorten_arguments(call.arguments)}
        if call.permission:
            request["permission"] = call.permission
        if request in seen or len(found) == QUESTIONS_A_LAUNCH:
            continue
        seen.append(request)
        number = _find_last_number(known, asking) + len(found) + 1
        words = f"{REFUSED_CALL_PREFIX}{call.tool} {to_one_line(call.about, ABOUT_CHARACTERS)}"
        question = _make_question(known, number, PERMISSION, words, asking)
        found.append(msgspec.structs.replace(question, request=request, launch=launch))
    return found


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


def _find_last_number(known: Projection, asking: QuestionTerms) -> int:
    """Return the number of the last question; numbers are never reused."""
    return max((asking.last_number(), *(one.number for one in known.questions.values())))


def _make_question(
    known: Projection, number: int, about: str, words: str, asking: QuestionTerms
) -> QuestionAsked:
    request: dict[str, Any] = {}
    choices = (
        PERMISSION_CHOICES
        if about == PERMISSION
        else STOP_REASONS[stop_reasons.parse_reason(about)].choices
    )
    if about == BUDGET:
        run, cap = known.run, budget.raise_caps(asking.cap, known.run.raised_caps())
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
        question=f"{known.agent}-{number}",
        number=number,
        about=about,
        text=reason_text.explain_reason(about, words),
        request=request,
        choices=choices,
        default=choices[-1],
        deadline=asking.deadline,
    )


def find_blocking_question(known: Projection, now: datetime) -> QuestionAsked | None:
    """Return the open question that blocks the agent, or None."""
    found = [one for one in list_open_questions(known, now) if one.about != PERMISSION]
    return found[-1] if found else None


def list_open_questions(known: Projection, now: datetime) -> list[QuestionAsked]:
    """Return the questions that a person can answer now, oldest first."""
    asked = sorted(known.questions.values(), key=lambda one: one.seq)
    return [one for one in asked if find_question_state(known, one, now) == "open"]


def find_next_deadline(known: Projection, now: datetime) -> datetime | None:
    """Return the first deadline of the open questions, or None."""
    return min(
        (one.deadline for one in list_open_questions(known, now) if one.deadline), default=None
    )


def find_question_state(known: Projection, question: QuestionAsked, now: datetime) -> QuestionState:
    """Return whether a question is open, or how it was closed."""
    answer = known.answers.get(question.question)
    if answer is not None:
        return "unanswered" if answer.origin == DEADLINE else "answered"
    if question.about != PERMISSION and not _is_still_relevant(known.run, question):
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


def apply_defaults(known: Projection, now: datetime) -> list[QuestionAnswered]:
    """Return the default answers of questions whose deadline has passed."""
    found = []
    for question in known.questions.values():
        is_late = find_question_state(known, question, now) == "unanswered"
        if is_late and question.question not in known.answers:
            answer = make_answer(known, question, question.default, now)
            # A text is passed to the agent as the words of a person, so leave it empty.
            found.append(msgspec.structs.replace(answer, origin=DEADLINE, text=""))
    return found


def make_answer(
    known: Projection, question: QuestionAsked, words: str, now: datetime
) -> QuestionAnswered:
    """Return the event that answers a question.

    Raises:
        AnswerError: The question does not accept this answer.
    """
    words = words.strip()
    head, _, rest = words.partition(" ")
    choice = next((one for one in question.choices if one.casefold() == words.casefold()), "")
    effect: AnswerEffect
    caps: dict[str, float] = {}
    text = _NOTES.get(choice, "")
    if choice and choice not in {TEXT_ANSWER, RAISE_ANSWER}:
        effect = ANSWERS_ABOUT.get((question.about, choice), ANSWERS[choice]).effect
    elif RAISE_ANSWER in question.choices and head.casefold() == "raise":
        caps = {str(question.request.get("unit")): _parse_amount(question, rest)}
        choice, effect = RAISE_ANSWER, "continue" if known.run.is_over else "restart"
    elif TEXT_ANSWER in question.choices and words:
        require_own_words(words)
        choice, text, effect = "", words, "restart"
    else:
        raise AnswerError(question.question, "is not one of its choices", question.choices)
    if len(text) > ANSWER_CHARACTERS:
        reason = f"is longer than {ANSWER_CHARACTERS:,} characters"
        raise AnswerError(question.question, reason, question.choices)
    before = [known.run.said.ts] if known.run.said else []
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


def judge_answer(known: Projection, answer: QuestionAnswered, now: datetime) -> QuestionAnswered:
    """Return the answer to record, marked as refused if it does not count."""
    question = known.questions.get(answer.question)
    reason = (
        "there is no such question" if question is None else explain_closed(known, question, now)
    )
    return msgspec.structs.replace(answer, refused=reason)


def explain_closed(known: Projection, question: QuestionAsked, now: datetime) -> str:
    """Return why a question no longer accepts an answer; empty if it does."""
    answer = known.answers.get(question.question)
    match find_question_state(known, question, now):
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
    return tuple(one for one in question.choices if one != first)


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
