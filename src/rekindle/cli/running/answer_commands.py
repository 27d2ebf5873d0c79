"""`rekindle answer`, `approve` and `deny`: answer agents' questions."""

import sys
import time
from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import click
import msgspec

from rekindle import config
from rekindle.cli.options import (
    AgentStore,
    find_current_folder,
    json_option,
    open_agents,
    require_operator,
)
from rekindle.cli.output import (
    echo,
    print_json,
)
from rekindle.cli.running.questions_command import (
    QUESTION_ID,
    make_answer_row,
    read_known,
)
from rekindle.cli.trust_prompt import (
    ensure_trust,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.documents.events import (
    AnswerEffect,
    PersonAnswered,
    QuestionAnswered,
    QuestionAsked,
)
from rekindle.documents.manifest import Persona
from rekindle.errors import (
    AnswerError,
    ClosedQuestionError,
    UnknownQuestionError,
    UsageError,
)
from rekindle.formats.identifiers import (
    strip_invisible,
    to_one_line,
)
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    LOCK_WAIT_SECONDS,
    AgentDefaults,
)
from rekindle.policy.setup.permissions import (
    explain_permit,
    permit_tools,
    render_tools,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.system import clock, host
from rekindle.thresholds.screens import ANSWER_CHARACTERS, QUESTIONS_NAMED, STOP_POLL_SECONDS
from rekindle.wiring.access.trust_checks import accept_settings

if TYPE_CHECKING:
    from rekindle.stores.files.writer import Writer


@runtime_checkable
class WritableStore(Protocol):
    """A store that this host can write to. On a fleet, the engine writes instead."""

    def writer(self, agent: str) -> AbstractContextManager["Writer"]: ...


class MeantQuestion(NamedTuple):
    """The agent that the command line selects, and the question to answer."""

    project: Project
    store: AgentStore
    agent: str
    known: Projection
    question: QuestionAsked | None
    """Question to answer; None if the agent has no open question."""


@click.command()
@click.argument("words", nargs=-1, metavar="[ID|AGENT] CHOICE|TEXT")
@trust_option
@json_option
def answer(words: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Answer a question with one of its choices, or with TEXT for the agent's next cycle.

    ID selects a question, and AGENT selects the question that this agent is waiting for. Without
    either, Rekindle answers the only open question. In that case, TEXT must be several words in
    quotes: `rekindle answer "Take the second"`. Without an answer, Rekindle prompts for one in the
    terminal. A question can be answered only once. If AGENT has no open question, Rekindle sends
    TEXT to its next cycle as a message.
    """
    meant, answer_words = _find_question(words)
    text = (
        strip_invisible(" ".join(answer_words)).strip() if answer_words else _prompt_answer(meant)
    )
    _submit_answer(meant, text, trust=trust, as_json=as_json)


def _prompt_answer(meant: MeantQuestion) -> str:
    """Prompt for the answer in the terminal."""
    choices = ", ".join(meant.question.choices) if meant.question else "any text"
    if _find_origin() != "terminal":
        if meant.question is None:
            hint = f'`rekindle answer {meant.agent} "TEXT"` sends a message to its next cycle'
            raise UsageError(f"{meant.agent} asks nothing", hint=hint)
        command = answers.render_answer_command(meant.question)
        raise UsageError("no answer was given", hint=f"`{command}`; choices: {choices}")
    if meant.question:
        echo(to_one_line(meant.question.text))
    words: str = click.prompt(f"Answer ({choices})", prompt_suffix=": ")
    return strip_invisible(words).strip()


@click.command()
@click.argument("question", required=False, metavar="[ID|AGENT]")
@trust_option
@json_option
def approve(question: str | None, trust: bool, as_json: bool) -> None:
    """Answer yes to a question: allow, accept or retry, whichever it offers."""
    _answer_by_choice(question, answers.APPROVALS, trust=trust, as_json=as_json)


@click.command()
@click.argument("question", required=False, metavar="[ID|AGENT]")
@json_option
def deny(question: str | None, as_json: bool) -> None:
    """Answer no to a question: deny or stop, whichever it offers."""
    _answer_by_choice(question, answers.DENIALS, trust=False, as_json=as_json)


def _answer_by_choice(
    name: str | None, words: Sequence[str], *, trust: bool, as_json: bool
) -> None:
    meant, rest = _find_question((name,) if name else ())
    if rest or meant.question is None:
        raise UnknownQuestionError(" ".join(rest))
    choice = next((word for word in words if word in meant.question.choices), "")
    if not choice:
        reason = "cannot be answered with yes or no: use `rekindle answer`"
        raise AnswerError(meant.question.question, reason, meant.question.choices)
    _submit_answer(meant, choice, trust=trust, as_json=as_json)


def _find_question(words: Sequence[str]) -> tuple[MeantQuestion, Sequence[str]]:
    """Return the question that the first word selects, and the words of the answer."""
    require_operator(config.load_project(find_current_folder()))
    project, store, asking = open_agents([], with_workers=True)
    agents = project.manifest.agents
    now, first = clock.read_clock(), words[0] if words else ""
    numbered = QUESTION_ID.fullmatch(first)
    if first in agents and not _is_open_question(store, agents, first):
        projection = read_known(store, first)
        open_questions = questions.list_open_questions(projection, now)
        question = questions.find_blocking_question(projection, now) or (
            open_questions[-1] if open_questions else None
        )
        return MeantQuestion(project, store, first, projection, question), words[1:]
    if numbered and numbered[1] in agents:
        projection = read_known(store, numbered[1])
        if first not in projection.questions:
            raise UnknownQuestionError(first)
        return MeantQuestion(
            project, store, numbered[1], projection, projection.questions[first]
        ), words[1:]
    if numbered and len(words) > 1:
        raise UnknownQuestionError(first)  # A mistyped id must not become part of the answer.
    candidates = [
        MeantQuestion(project, store, name, state, question)
        for name in asking
        for state in (read_known(store, name),)
        for question in questions.list_open_questions(state, now)
    ]
    if not candidates:
        raise UnknownQuestionError
    if len(candidates) > 1:
        which = ", ".join(
            candidate.question.question
            for candidate in candidates[:QUESTIONS_NAMED]
            if candidate.question
        )
        raise UsageError("which question? several are open", hint=f"choose one by its id: {which}")
    offered = candidates[0].question.choices if candidates[0].question else ()
    if first and not _is_answer(words, offered):
        raise UnknownQuestionError(first)  # a mistyped agent must not become part of the answer
    return candidates[0], words


def _is_open_question(store: AgentStore, agents: Container[str], text: str) -> bool:
    """Return whether a text that may also name an agent is the id of an open question."""
    numbered = QUESTION_ID.fullmatch(text)
    if not numbered or numbered[1] not in agents:
        return False
    known = read_known(store, numbered[1])
    open_questions = questions.list_open_questions(known, clock.read_clock())
    return any(question.question == text for question in open_questions)


def _is_answer(words: Sequence[str], offered: Sequence[str]) -> bool:
    """Return whether the words are an answer and not a mistyped agent name."""
    text = " ".join(words).strip().casefold()
    is_cap = answers.RAISE_ANSWER in offered and words[0].casefold() == "raise"
    return text in offered or is_cap or (len(words) == 1 and len(text.split()) > 1)


def _find_command(meant: MeantQuestion) -> str:
    """Return the command to continue the agent without an answer, or "" if none is needed."""
    is_supervised = meant.store.is_supervised(meant.agent)
    row = build_row(meant.known, RowInputs(clock.read_clock(), is_supervised=is_supervised))
    return "" if row.state == "broken" else row.command


def _submit_answer(meant: MeantQuestion, words: str, *, trust: bool, as_json: bool) -> None:
    """Record an answer and print its effect."""
    if meant.question is None:
        _tell_agent(meant, words, as_json=as_json)
        return
    now = clock.read_clock()
    if reason := answers.explain_closed(meant.known, meant.question, now):
        raise ClosedQuestionError(meant.question.question, reason, _find_command(meant))
    new_answer = answers.make_answer(meant.known, meant.question, words, now)
    new_answer = msgspec.structs.replace(
        new_answer, by=host.identify_user(), host=host.identify_host(), origin=_find_origin()
    )
    if new_answer.choice == answers.ACCEPT and new_answer.effect == "restart":
        ensure_trust(meant.project, trust=trust)
        recorded = _accept_settings(meant, new_answer)
    else:
        meant.store.submit(meant.agent, new_answer)
        recorded = _wait_until_recorded(meant, new_answer)
    if recorded.seq and new_answer.effect in {"restart", "continue"}:
        meant.store.prepare_start(meant.agent)
    if as_json:
        row = {"agent": meant.agent, "question": new_answer.question}
        print_json(row | make_answer_row(recorded) | {"is_recorded": bool(recorded.seq)})
        return
    if not recorded.seq:
        echo(f"{meant.agent}: the answer is saved, but the supervisor has not recorded it yet.")
        echo(f"Next: `rekindle questions {meant.agent} --all` shows whether it was accepted.")
        return
    echo(f"✓ {meant.agent}: {_describe_outcome(new_answer)}")
    if new_answer.choice == "allow":
        _print_permission(meant)
    _print_next(meant, new_answer.effect)


def _accept_settings(meant: MeantQuestion, new_answer: QuestionAnswered) -> QuestionAnswered:
    """Accept the agent's settings and record the answer in one step.

    A supervisor starts the agent as soon as it sees the answer, so the settings must be accepted by
    then. A refused answer changes nothing.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    if not isinstance(meant.store, WritableStore):
        meant.store.prepare_start(meant.agent)  # The next start on the fleet uses the new settings.
        meant.store.submit(meant.agent, new_answer)
        recorded = _wait_until_recorded(meant, new_answer)
        changes = accept_settings(meant.project, meant.agent)
    else:
        with meant.store.writer(meant.agent) as writer:
            writer.fold()
            judged = answers.judge_answer(writer.projection, new_answer, clock.read_clock())
            changes = [] if judged.refused else accept_settings(meant.project, meant.agent)
            writer.append(judged)
            recorded = writer.projection.answers.get(new_answer.question, judged)
        if judged.refused:
            raise ClosedQuestionError(new_answer.question, judged.refused)
    print_changes(meant.agent, changes)
    return recorded


def _wait_until_recorded(meant: MeantQuestion, new_answer: QuestionAnswered) -> QuestionAnswered:
    """Return the answer as recorded in the log. Its `seq` is 0 after a timeout.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        projection = meant.store.read(meant.agent).projection
        counts = projection.answers.get(new_answer.question)
        # Do not compare the text, because secrets are removed before it is recorded.
        is_ours = counts is not None and (counts.by, counts.choice, counts.ts) == (
            new_answer.by,
            new_answer.choice,
            new_answer.ts,
        )
        if counts is not None and is_ours and counts.seq:
            return counts
        question = None if is_ours else projection.questions.get(new_answer.question)
        if question and (
            reason := answers.explain_closed(projection, question, clock.read_clock())
        ):
            raise ClosedQuestionError(new_answer.question, reason)
        if time.monotonic() > deadline:
            return new_answer
        time.sleep(STOP_POLL_SECONDS)


def _tell_agent(meant: MeantQuestion, words: str, *, as_json: bool) -> None:
    """Record a message for the next cycle of an agent without an open question."""
    answers.require_own_words(words)
    if words.casefold() in answers.ANSWERS:
        command = _find_command(meant)
        raise UsageError(
            f"{meant.agent} has no open question that takes {words!r}",
            hint=f"`{command}` continues"
            if command
            else "`rekindle status` shows what the agent is doing",
        )
    if not words or len(words) > ANSWER_CHARACTERS:
        raise UsageError(
            f"an answer has 1 to {ANSWER_CHARACTERS:,} characters; this one has {len(words):,}",
            hint="shorten it, and put the rest in a file that the agent can read",
        )
    meant.store.create(meant.agent)
    now = clock.read_clock()
    desired = runs.make_desired_event(meant.known.run, "running", now)
    meant.store.submit(meant.agent, PersonAnswered(ts=now, text=words), desired)
    meant.store.prepare_start(meant.agent)
    if as_json:
        print_json({"agent": meant.agent, "question": None, "text": words})
        return
    echo(f"✓ {meant.agent}: its next cycle will get the message")
    _print_next(meant, "restart")


def _describe_outcome(answer: QuestionAnswered) -> str:
    match answer.effect:
        case "stop":
            return "stops"
        case "finish":
            return "done, according to the agent"
        case "note":
            return f"{answer.choice}: recorded; its next cycle will get the answer"
        case _ if answer.text:
            return "its next cycle will get the answer"
        case _:
            return "will be started again"


def _print_permission(meant: MeantQuestion) -> None:
    """Print the manifest lines that permit the call. An answer alone does not."""
    manifest = meant.project.manifest
    name = manifest.agents[meant.agent].persona or AgentDefaults().persona
    persona = manifest.personas.get(name) or Persona()
    tools = (persona.permissions and persona.permissions.allowed_tools) or ()
    rule = answers.find_permission_rule(meant.question, tools) if meant.question else ""
    harness = manifest.agents[meant.agent].harness
    permitted = permit_tools(persona, [rule], harness)
    if permitted == tools:
        echo(f"Note: {explain_permit(name, persona, [rule], harness)}.")
        return
    is_supervised = meant.store.is_supervised(meant.agent)
    then = f", then `rekindle restart {meant.agent}`" if is_supervised else ""
    echo(f"To permit it, add to rekindle.yaml{then}:")
    echo(f"  personas:\n    {name}:\n      permissions:")
    echo(f"        allowed_tools: {render_tools(permitted)}")


def _print_next(meant: MeantQuestion, effect: AnswerEffect) -> None:
    """Print the command that starts the agent, if the agent must be started."""
    if effect not in {"stop", "finish"} and not meant.store.is_supervised(meant.agent):
        name = meant.agent
        echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to run it in the background.")


def _find_origin() -> str:
    return "terminal" if sys.stdin is not None and sys.stdin.isatty() else "command"
