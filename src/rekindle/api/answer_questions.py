"""Answer agents' questions, and send messages to their next cycles."""

import time
from typing import NamedTuple

import msgspec

from rekindle.api.agent_store import AgentStore, WritableStore, read_known
from rekindle.api.operator import Operator
from rekindle.config import Project
from rekindle.documents.events import PersonAnswered, QuestionAnswered, QuestionAsked
from rekindle.errors import ClosedQuestionError, UsageError
from rekindle.formats.identifiers import strip_invisible
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock, host
from rekindle.thresholds.screens import ANSWER_CHARACTERS, STOP_POLL_SECONDS
from rekindle.wiring.access import trust_checks


class SelectedQuestion(NamedTuple):
    """An agent, and its question that is to be answered."""

    project: Project
    store: AgentStore
    agent: str
    known: Projection
    question: QuestionAsked | None
    """Question to answer; None if the agent has no open question."""


def select_question(project: Project, store: AgentStore, agent: str) -> SelectedQuestion:
    """Return the question that the agent is waiting for, or else its newest open question."""
    now, known = clock.read_clock(), read_known(store, agent)
    opened = questions.list_open_questions(known, now)
    question = questions.find_blocking_question(known, now) or (opened[-1] if opened else None)
    return SelectedQuestion(project, store, agent, known, question)


def record_answer(
    selected: SelectedQuestion, question: QuestionAsked, words: str, operator: Operator
) -> QuestionAnswered:
    """Record an answer. The result's `seq` is 0 if the supervisor has not recorded it yet.

    Raises:
        AnswerError: The question does not offer this answer.
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    now, words = clock.read_clock(), strip_invisible(words).strip()
    if reason := answers.explain_closed(selected.known, question, now):
        raise ClosedQuestionError(question.question, reason, find_next_command(selected))
    answer = answers.make_answer(selected.known, question, words, now)
    answer = msgspec.structs.replace(
        answer,
        by=operator.by or host.identify_user(),
        host=host.identify_host(),
        origin=operator.origin,
    )
    if answer.choice == answers.ACCEPT and answer.effect == "restart":
        operator.ensure_trust(selected.project)
        recorded = _accept_settings(selected, answer, operator)
    else:
        selected.store.submit(selected.agent, answer)
        recorded = _wait_until_recorded(selected, answer)
    if recorded.seq and answer.effect in {"restart", "continue"}:
        selected.store.prepare_start(selected.agent)
    return recorded


def send_message(selected: SelectedQuestion, words: str) -> None:
    """Record a message for the next cycle of an agent without an open question.

    Raises:
        UsageError: The message is empty or too long, or looks like an answer.
    """
    words = strip_invisible(words).strip()
    answers.require_own_words(words)
    if words.casefold() in answers.ANSWERS:
        command = find_next_command(selected)
        raise UsageError(
            f"{selected.agent} has no open question that takes {words!r}",
            hint=f"`{command}` continues"
            if command
            else "`rekindle status` shows what the agent is doing",
        )
    answers.require_length(words, ANSWER_CHARACTERS, "an answer")
    selected.store.create(selected.agent)
    now = clock.read_clock()
    desired = runs.make_desired_event(selected.known.run, "running", now)
    selected.store.submit(selected.agent, PersonAnswered(ts=now, text=words), desired)
    selected.store.prepare_start(selected.agent)


def find_next_command(selected: SelectedQuestion) -> str:
    """Return the command to continue the agent without an answer, or "" if none is needed."""
    is_supervised = selected.store.is_supervised(selected.agent)
    row = build_row(selected.known, RowInputs(clock.read_clock(), is_supervised=is_supervised))
    return "" if row.state == "broken" else row.command


def _accept_settings(
    selected: SelectedQuestion, answer: QuestionAnswered, operator: Operator
) -> QuestionAnswered:
    """Accept the agent's settings and record the answer in one step.

    A supervisor starts the agent as soon as it sees the answer, so the settings must be accepted by
    then. A refused answer changes nothing.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    project, store, agent = selected.project, selected.store, selected.agent
    if not isinstance(store, WritableStore):
        store.prepare_start(agent)  # The next start on the fleet uses the new settings.
        store.submit(agent, answer)
        recorded = _wait_until_recorded(selected, answer)
        changes = trust_checks.accept_settings(project, agent)
    else:
        with store.writer(agent) as writer:
            writer.fold()
            judged = answers.judge_answer(writer.projection, answer, clock.read_clock())
            changes = [] if judged.refused else trust_checks.accept_settings(project, agent)
            writer.append(judged)
            recorded = writer.projection.answers.get(answer.question, judged)
        if judged.refused:
            raise ClosedQuestionError(answer.question, judged.refused)
    operator.tell_changes(agent, changes)
    return recorded


def _wait_until_recorded(selected: SelectedQuestion, answer: QuestionAnswered) -> QuestionAnswered:
    """Return the answer as recorded in the log. Its `seq` is 0 after a timeout.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        projection = selected.store.read(selected.agent).projection
        counts = projection.answers.get(answer.question)
        # Do not compare the text, because secrets are removed before it is recorded, or the author,
        # to whom a fleet adds the host.
        is_ours = counts is not None and (counts.choice, counts.ts) == (answer.choice, answer.ts)
        if counts is not None and is_ours and counts.seq:
            return counts
        question = None if is_ours else projection.questions.get(answer.question)
        if question and (
            reason := answers.explain_closed(projection, question, clock.read_clock())
        ):
            raise ClosedQuestionError(answer.question, reason)
        if time.monotonic() > deadline:
            return answer
        time.sleep(STOP_POLL_SECONDS)
