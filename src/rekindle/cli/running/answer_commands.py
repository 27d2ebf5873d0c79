"""`rekindle answer`, `approve` and `deny`: answer the questions of agents."""

import sys
import time
from collections.abc import Sequence
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
    """A store that this host can write to; on a fleet, the engine writes."""

    def writer(self, agent: str) -> AbstractContextManager["Writer"]: ...


class MeantQuestion(NamedTuple):
    """The agent that the command line selects, and the question to answer."""

    project: Project
    store: AgentStore
    agent: str
    known: Projection
    question: QuestionAsked | None
    """The question to answer, or None if the agent has no open question."""


@click.command()
@click.argument("words", nargs=-1, metavar="[ID|AGENT] CHOICE|TEXT")
@trust_option
@json_option
def answer(words: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Answer a question with one of its choices, or with TEXT for the agent's next cycle.

    AGENT selects the question that this agent waits for. Without ID and AGENT, the only open
    question is answered; TEXT must then be a single argument with several words: `rekindle answer
    "Take the second"`. Without an answer, you are asked for it at the terminal. A question can be
    answered only once. If AGENT has no open question, TEXT is a message to its next cycle.
    """
    meant, answer_words = _find_question(words)
    text = (
        strip_invisible(" ".join(answer_words)).strip() if answer_words else _prompt_answer(meant)
    )
    _submit_answer(meant, text, trust=trust, as_json=as_json)


def _prompt_answer(meant: MeantQuestion) -> str:
    """Ask for the answer at the terminal."""
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
    """Answer a question with yes: allow, accept or retry, whichever it offers."""
    _answer_by_choice(question, answers.APPROVALS, trust=trust, as_json=as_json)


@click.command()
@click.argument("question", required=False, metavar="[ID|AGENT]")
@json_option
def deny(question: str | None, as_json: bool) -> None:
    """Answer a question with no: deny or stop, whichever it offers."""
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
    """Return the question that the first word selects, and the words that form the answer."""
    require_operator(config.load_project(find_current_folder()))
    project, store, agents = open_agents([])
    now, first = clock.read_clock(), words[0] if words else ""
    numbered = QUESTION_ID.fullmatch(first)
    if first in agents:
        known = read_known(store, first)
        asked = questions.list_open_questions(known, now)
        question = questions.find_blocking_question(known, now) or (asked[-1] if asked else None)
        return MeantQuestion(project, store, first, known, question), words[1:]
    if numbered and numbered[1] in agents:
        known = read_known(store, numbered[1])
        if first not in known.questions:
            raise UnknownQuestionError(first)
        return MeantQuestion(project, store, numbered[1], known, known.questions[first]), words[1:]
    if numbered and len(words) > 1:
        raise UnknownQuestionError(first)  # a mistyped id must not become part of the answer
    candidates = [
        MeantQuestion(project, store, name, known, one)
        for name in agents
        for known in (read_known(store, name),)
        for one in questions.list_open_questions(known, now)
    ]
    if not candidates:
        raise UnknownQuestionError
    if len(candidates) > 1:
        which = ", ".join(
            one.question.question for one in candidates[:QUESTIONS_NAMED] if one.question
        )
        raise UsageError("which question? several are open", hint=f"choose one by its id: {which}")
    offered = candidates[0].question.choices if candidates[0].question else ()
    if first and not _is_answer(words, offered):
        raise UnknownQuestionError(first)  # a mistyped agent must not become part of the answer
    return candidates[0], words


def _is_answer(words: Sequence[str], offered: Sequence[str]) -> bool:
    """Return whether the words are an answer and cannot be a mistyped agent name."""
    text = " ".join(words).strip().casefold()
    is_cap = answers.RAISE_ANSWER in offered and words[0].casefold() == "raise"
    return text in offered or is_cap or (len(words) == 1 and len(text.split()) > 1)


def _find_command(meant: MeantQuestion) -> str:
    """Return the command that continues the agent without an answer, or "" if none is needed."""
    is_supervised = meant.store.is_supervised(meant.agent)
    row = build_row(meant.known, RowInputs(clock.read_clock(), is_supervised=is_supervised))
    return "" if row.state == "broken" else row.command


def _submit_answer(meant: MeantQuestion, words: str, *, trust: bool, as_json: bool) -> None:
    """Record an answer, and print what it changes."""
    if meant.question is None:
        _tell_agent(meant, words, as_json=as_json)
        return
    now = clock.read_clock()
    if reason := answers.explain_closed(meant.known, meant.question, now):
        raise ClosedQuestionError(meant.question.question, reason, _find_command(meant))
    given = answers.make_answer(meant.known, meant.question, words, now)
    given = msgspec.structs.replace(
        given, by=host.identify_user(), host=host.identify_host(), origin=_find_origin()
    )
    if given.choice == answers.ACCEPT and given.effect == "restart":
        ensure_trust(meant.project, trust=trust)
        recorded = _accept_settings(meant, given)
    else:
        meant.store.submit(meant.agent, given)
        recorded = _wait_until_recorded(meant, given)
    if recorded.seq and given.effect in {"restart", "continue"}:
        meant.store.prepare_start(meant.agent)
    if as_json:
        row = {"agent": meant.agent, "question": given.question}
        print_json(row | make_answer_row(recorded) | {"is_recorded": bool(recorded.seq)})
        return
    if not recorded.seq:
        echo(f"{meant.agent}: the answer is saved, but the supervisor has not recorded it yet.")
        echo(f"Next: `rekindle questions {meant.agent} --all` shows whether it was accepted.")
        return
    echo(f"✓ {meant.agent}: {_describe_outcome(given)}")
    if given.choice == "allow":
        _print_permission(meant)
    _print_next(meant, given.effect)


def _accept_settings(meant: MeantQuestion, given: QuestionAnswered) -> QuestionAnswered:
    """Accept the agent's settings and record the answer, as one step.

    A supervisor starts the agent as soon as it sees the answer, so the settings must have been
    accepted by then. An answer that is refused changes nothing.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    if not isinstance(meant.store, WritableStore):
        meant.store.prepare_start(meant.agent)  # the next start on the fleet uses the new settings
        meant.store.submit(meant.agent, given)
        recorded = _wait_until_recorded(meant, given)
        changes = accept_settings(meant.project, meant.agent)
    else:
        with meant.store.writer(meant.agent) as writer:
            writer.fold()
            judged = answers.judge_answer(writer.projection, given, clock.read_clock())
            changes = [] if judged.refused else accept_settings(meant.project, meant.agent)
            writer.append(judged)
            recorded = writer.projection.answers.get(given.question, judged)
        if judged.refused:
            raise ClosedQuestionError(given.question, judged.refused)
    print_changes(meant.agent, changes)
    return recorded


def _wait_until_recorded(meant: MeantQuestion, given: QuestionAnswered) -> QuestionAnswered:
    """Return the answer as recorded in the log; its `seq` is 0 if recording it took too long.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline closed it first.
    """
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        known = meant.store.read(meant.agent).projection
        counts = known.answers.get(given.question)
        # The text is not compared, because secrets are removed from it before it is recorded.
        is_ours = counts is not None and (counts.by, counts.choice, counts.ts) == (
            given.by,
            given.choice,
            given.ts,
        )
        if counts is not None and is_ours and counts.seq:
            return counts
        asked = None if is_ours else known.questions.get(given.question)
        if asked and (reason := answers.explain_closed(known, asked, clock.read_clock())):
            raise ClosedQuestionError(given.question, reason)
        if time.monotonic() > deadline:
            return given
        time.sleep(STOP_POLL_SECONDS)


def _tell_agent(meant: MeantQuestion, words: str, *, as_json: bool) -> None:
    """Record a message for the next cycle of an agent that has no open question."""
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
    wanted = runs.make_desired_event(meant.known.run, "running", now)
    meant.store.submit(meant.agent, PersonAnswered(ts=now, text=words), wanted)
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
    """Print the manifest lines that permit the call; an answer alone does not permit it."""
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
    """Print the command that starts the agent, unless it is supervised or the run is over."""
    if effect not in {"stop", "finish"} and not meant.store.is_supervised(meant.agent):
        name = meant.agent
        echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to run it in the background.")


def _find_origin() -> str:
    return "terminal" if sys.stdin is not None and sys.stdin.isatty() else "command"
