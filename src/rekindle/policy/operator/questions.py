"""Decide when to ask a person a question, and which questions are open.

A question is recorded together with the event that it is about. The module `answers` defines
which answers are accepted and what each of them does.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Any, Literal

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    QuestionAsked,
)
from rekindle.documents.events.operator_events import DEADLINE
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.manifest_keys import Budget
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.exits.backoff import compute_login_pause
from rekindle.policy.exits.stop_reasons import RETRY, STOP_REASONS
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision import budget
from rekindle.policy.supervision.run_moves import RunState
from rekindle.thresholds.proposal_limits import ASKED_OPEN, OPTION_CHARACTERS, OPTIONS
from rekindle.thresholds.supervision import (
    QUESTION_CHARACTERS,
    QUESTIONS_A_LAUNCH,
)
from rekindle.thresholds.texts import ABOUT_CHARACTERS

QuestionState = Literal["open", "answered", "unanswered", "withdrawn"]
"""State of a question:

`unanswered` if its deadline has passed, `withdrawn` if another command made it unnecessary.
"""

PERMISSION = "permission"
ASKED = "asked"
"""Reason of a question that the agent asked in its own words."""
NEVER_BLOCKING = frozenset({PERMISSION, ASKED})
"""Reasons of questions that stay open while the agent works."""
BUDGET = "budget"
WAITING = "waiting"
REFUSED_CALL_PREFIX = "permission for a call that was refused: "
"""Prefix of questions about a refused call."""
WAITING_CALL_PREFIX = "permission for a call that waits: "
"""Prefix of questions about a call that waits for the answer."""


PERMISSION_CHOICES = ("allow", "deny")
ASKED_CHOICES = ("TEXT", "skip")
"""Choices of an agent's own question, after the answers that it suggests."""
_RESERVED = frozenset(
    choice.casefold()
    for choices in (PERMISSION_CHOICES, ASKED_CHOICES, *(r.choices for r in STOP_REASONS.values()))
    for choice in choices
)
"""Answers with a meaning for Rekindle, which an agent cannot suggest."""


class QuestionTerms(msgspec.Struct, frozen=True):
    """The input for a question, in addition to the agent's state."""

    now: datetime
    seconds: float
    """Seconds until the deadline; infinity if there is no deadline."""
    cap: Budget | None = None
    last_number: Callable[[], int] = lambda: 0
    """Returns the number of the last question, even if that question is missing from the log. It is
    called only if a question is about to be asked.
    """

    @property
    def deadline(self) -> datetime | None:
        try:
            return self.now + timedelta(seconds=self.seconds)
        except OverflowError:  # infinity raises this too
            return None


def add_questions(
    projection: Projection, new: Sequence[events.AnyEvent], asking: QuestionTerms
) -> list[events.AnyEvent]:
    """Return the events, with a question after each event that requires a person's decision."""
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
    """Return a question for an agent in safe mode, or None if none is needed or one is open."""
    if not projection.run.is_safe or find_blocking_question(projection, asking.now) is not None:
        return None
    safe = projection.run.safe
    return _make_question(
        projection, _find_last_number(projection, asking) + 1, safe.why, safe.words, asking
    )


def ask_about_calls(
    projection: Projection, refused: Iterable[RefusedCall], launch: str, asking: QuestionTerms
) -> list[QuestionAsked]:
    """Return a question for each newly refused call, up to the limit for one launch."""
    requests = [
        earlier.request
        for earlier in projection.questions.values()
        if earlier.about == PERMISSION and earlier.seq > projection.run.began
    ]
    new_questions: list[QuestionAsked] = []
    for call in refused:
        request = describe_call(call.tool, call.arguments)
        if call.permission:
            request["permission"] = call.permission
        if request in requests or len(new_questions) == QUESTIONS_A_LAUNCH:
            continue
        requests.append(request)
        number = _find_last_number(projection, asking) + len(new_questions) + 1
        words = f"{REFUSED_CALL_PREFIX}{call.tool} {to_one_line(call.about, ABOUT_CHARACTERS)}"
        question = _make_question(projection, number, PERMISSION, words, asking)
        new_questions.append(msgspec.structs.replace(question, request=request, launch=launch))
    return new_questions


def make_permission_question(
    projection: Projection, call: str, launch: str, asking: QuestionTerms
) -> QuestionAsked:
    """Return a question about one call that waits for a person's permission."""
    number = _find_last_number(projection, asking) + 1
    words = f"{WAITING_CALL_PREFIX}{call}"
    question = _make_question(projection, number, PERMISSION, words, asking)
    return msgspec.structs.replace(question, launch=launch)


def describe_call(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request of a question about a call."""
    return {"tool": tool, "arguments": _shorten_arguments(arguments)}


def ask_proposed(projection: Projection, asking: QuestionTerms) -> list[QuestionAsked]:
    """Return the questions that the agent proposed in this run, up to the limit of open ones."""
    room = max(0, ASKED_OPEN - count_asked(projection, asking.now))
    proposed = [each for each in list_proposed(projection) if each.seq][:room]
    first = _find_last_number(projection, asking) + 1 if proposed else 0
    return [
        QuestionAsked(
            ts=asking.now,
            question=f"{projection.agent}-{number}",
            number=number,
            about=ASKED,
            text=proposal.text,
            choices=(*_select_options(proposal.choices), *ASKED_CHOICES),
            default=ASKED_CHOICES[-1],
            deadline=asking.deadline,
        )
        for number, proposal in enumerate(proposed, first)
    ]


def list_proposed(projection: Projection) -> list[events.ProposalMade]:
    """Return the questions that the agent proposed in this run and that are not asked yet."""
    proposed = [
        proposal
        for proposal in projection.proposals.values()
        if proposal.about == "question"
        and not 0 < proposal.seq < projection.run.began
        and find_asked(projection, proposal.text) is None
    ]
    return sorted(proposed, key=lambda proposal: (proposal.seq, proposal.ts))


def find_asked(projection: Projection, text: str) -> QuestionAsked | None:
    """Return the question that the agent asked with this text in this run, or None."""
    asked = [
        question
        for question in projection.questions.values()
        if question.about == ASKED and question.text == text and question.seq > projection.run.began
    ]
    return max(asked, key=lambda question: question.seq, default=None)


def count_asked(projection: Projection, now: datetime) -> int:
    """Return how many of the agent's own questions are open."""
    return sum(question.about == ASKED for question in list_open_questions(projection, now))


def _select_options(options: Iterable[str]) -> list[str]:
    """Return the suggested answers, without those that have a meaning for Rekindle."""
    usable = (
        option
        for option in dict.fromkeys(to_one_line(option, OPTION_CHARACTERS) for option in options)
        if option and option.casefold() not in _RESERVED and not _is_command(option)
    )
    return list(islice(usable, OPTIONS))


def _is_command(option: str) -> bool:
    return option.casefold().split()[0] == "raise"


def _shorten_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments. If they are too long, keep their beginning and the file path."""
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
        case events.RunEnded() if stop_reasons.find_outcome(event.why).asks:
            return event.why, event.words
        case _:
            return "", ""


def _find_last_number(projection: Projection, asking: QuestionTerms) -> int:
    """Return the number of the last question. Numbers are never reused."""
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
            # The CLI tracks its own spending and stopped before Rekindle's count reached the cap.
            request = {"unit": "usd", "cap": cap.usd, "spent": spent.usd}
        else:
            choices = STOP_REASONS["crash"].choices
    default, deadline = choices[-1], asking.deadline
    if STOP_REASONS[stop_reasons.parse_reason(about)].is_retried:
        retry = asking.now + timedelta(
            seconds=compute_login_pause(_count_last(projection, about) - 1)
        )
        default, deadline = RETRY, min(retry, deadline or retry)
    return QuestionAsked(
        ts=asking.now,
        question=f"{projection.agent}-{number}",
        number=number,
        about=about,
        text=explain_reasons.explain_reason(about, words),
        request=request,
        choices=choices,
        default=default,
        deadline=deadline,
    )


def is_asked_again(projection: Projection, about: str) -> bool:
    """Return whether the newest question repeats one that only its default has answered.

    The operator was notified of the first one, and has done nothing since.
    """
    asked = [question for question in projection.questions.values() if question.about == about]
    earlier = sorted(asked, key=lambda question: question.seq)[:-1]
    answer = projection.answers.get(earlier[-1].question) if earlier else None
    return (
        STOP_REASONS[stop_reasons.parse_reason(about)].is_retried
        and _count_last(projection, about) > 1
        and answer is not None
        and answer.origin == DEADLINE
    )


def _count_last(projection: Projection, exit_kind: str) -> int:
    """Return how many of the agent's last launches in a row ended with this kind of exit."""
    launches = sorted(projection.attempts.values(), key=lambda launch: launch.seq, reverse=True)
    return sum(1 for _ in takewhile(lambda launch: launch.exit == exit_kind, launches))


def find_blocking_question(projection: Projection, now: datetime) -> QuestionAsked | None:
    """Return the open question that blocks the agent, or None if there is none."""
    blocking = [
        question
        for question in list_open_questions(projection, now)
        if question.about not in NEVER_BLOCKING
    ]
    return blocking[-1] if blocking else None


def list_open_questions(projection: Projection, now: datetime) -> list[QuestionAsked]:
    """Return the questions that a person can answer now, oldest first."""
    questions = sorted(projection.questions.values(), key=lambda question: question.seq)
    return [
        question
        for question in questions
        if find_question_state(projection, question, now) == "open"
    ]


def find_next_deadline(projection: Projection, now: datetime) -> datetime | None:
    """Return the earliest deadline of the open questions, or None if none has a deadline."""
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
    if question.about not in NEVER_BLOCKING and not is_still_relevant(projection.run, question):
        return "withdrawn"
    is_late = question.deadline is not None and now >= question.deadline
    return "unanswered" if is_late else "open"


def is_still_relevant(run: RunState, question: QuestionAsked) -> bool:
    """Return whether the agent is still in the state that the question is about."""
    if run.desired == "stopped" or run.stopped > question.seq:
        return False  # a stop that is still in the inbox has no log position yet
    return (run.is_safe and question.seq > run.safe.seq) or (
        run.is_over and question.seq > run.ended.seq
    )
