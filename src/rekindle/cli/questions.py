"""`rekindle questions`, `answer`, `approve`, `deny`: what agents ask a person, and the answers."""

import re
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import click
import msgspec

from rekindle import config
from rekindle.cli.options import Store, ago, as_json, here, open_agents, require_operator
from rekindle.cli.output import echo, print_json, render_moment, secho, styled
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.documents.event import Answered, QuestionAnswered, QuestionAsked
from rekindle.documents.identity import one_line, visible
from rekindle.documents.manifest import Persona
from rekindle.documents.row import with_others
from rekindle.errors import (
    AnswerError,
    ClosedQuestionError,
    NotOnFleetError,
    UnknownQuestionError,
    UsageError,
)
from rekindle.policy import questions as policy
from rekindle.policy import run as runs
from rekindle.policy.fold import Projection
from rekindle.policy.permissions import explain_permit, permit, render_tools
from rekindle.policy.settings import LOCK_WAIT_SECONDS, AgentDefaults
from rekindle.system import clock, host
from rekindle.thresholds.screens import ANSWER_CHARACTERS, QUESTIONS_NAMED, STOP_POLL_SECONDS
from rekindle.wiring.trust import accept_settings

if TYPE_CHECKING:
    from rekindle.stores.files.writer import Writer

SCHEMA = 1
_ID = re.compile(r"(.+)-[0-9]+")


@runtime_checkable
class WritableStore(Protocol):
    """A store whose writer works on this host; a fleet's is the engine."""

    def writer(self, agent: str) -> AbstractContextManager["Writer"]: ...


class Meant(NamedTuple):
    """The agent that a command names, and its question."""

    project: Project
    store: Store
    agent: str
    known: Projection
    question: QuestionAsked | None
    """None: the agent has no open question."""


@click.command()
@click.argument("agent", required=False, metavar="[AGENT|ID]")
@click.option("--all", "every", is_flag=True, help="Answered and withdrawn questions too.")
@as_json
def questions(agent: str | None, every: bool, as_json: bool) -> None:
    """What the agents ask a person, with the command that answers it.

    With AGENT, or in the folder of one agent (`dir:`): only that one. With ID: only that question,
    whatever its state.
    Questions whose deadline has passed stay in the list as unanswered until you start the agent.
    """
    numbered, known = _ID.fullmatch(agent or ""), config.load(here()).manifest.agents
    question = agent if numbered and numbered[1] in known and agent not in known else None
    named = numbered[1] if numbered and question else agent
    _project, store, names = open_agents([named] if named else [], by_folder=True)
    now = clock.now()
    found = [row for name in names for row in describe(_read(store, name), now)]
    rows = [row for row in found if every or row["is_shown"] or row["id"] == question]
    if question:
        rows = [row for row in rows if row["id"] == question]
        if not rows:
            raise UnknownQuestionError(question)
    for row in rows:
        del row["is_shown"]
    if as_json:
        print_json({"v": SCHEMA, "questions": rows})
        return
    if not rows:
        echo("No open questions.")
    for row in rows:
        _print(row, now)


def describe(known: Projection, now: datetime) -> list[dict[str, Any]]:
    """Return the questions of an agent that are remembered, oldest first."""
    asked = sorted(known.questions.values(), key=lambda one: one.seq)
    return [_row(known, one, now) for one in asked]


def _row(known: Projection, question: QuestionAsked, now: datetime) -> dict[str, Any]:
    state = policy.state_of(known, question, now)
    answer = known.answers.get(question.question)
    is_news = question.seq > max(known.run.wanted, known.run.restarted)
    return {
        "id": question.question,
        "agent": known.agent,
        "about": question.about,
        "text": question.text,
        "request": question.request,
        "choices": question.choices,
        "default": question.default,
        "asked": question.ts,
        "deadline": question.deadline,
        "state": state,
        "command": policy.command_line(question) if state == "open" else None,
        "others": policy.other_answers(question) if state == "open" else (),
        "answer": _answer_row(answer) if answer else None,
        "is_shown": state == "open" or (state == "unanswered" and is_news),
    }


def _answer_row(answer: QuestionAnswered) -> dict[str, Any]:
    names = ("choice", "text", "effect", "by", "host", "origin", "ts")
    return {name: getattr(answer, name) for name in names}


def _print(row: dict[str, Any], now: datetime) -> None:
    echo(styled(row["id"], bold=True), f"  {row['about']}, asked {ago(row['asked'], now)}")
    echo(f"  {one_line(row['text'])}")
    if row["request"]:
        echo(f"  {one_line(msgspec.json.encode(row['request']).decode())}")
    if row["state"] == "open":
        until = render_moment(row["deadline"], "%Y-%m-%d %H:%M") if row["deadline"] else ""
        after = f"; {row['default']} after {until}" if until else ""
        echo(f"  → {with_others(row['command'], row['others'])}{after}")
    elif row["state"] == "unanswered":
        secho(f"  unanswered: the default applies: {row['default']}", fg="yellow")
    elif answer := row["answer"]:
        words = one_line(answer["choice"] or answer["text"])
        echo(f"  answered by {answer['by']}, {ago(answer['ts'], now)}: {words}")
    else:
        echo("  withdrawn: another command has settled it")


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="[ID|AGENT] CHOICE|TEXT")
@trust_option
@as_json
def answer(words: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Answer a question with one of its choices, or with TEXT, which the next cycle is told.

    With AGENT the question that this agent waits for is meant; without both the only open one, and
    TEXT is then one argument of several words: `rekindle answer "Take the second"`.
    Without an answer, a terminal is asked for it. Each question is answered once. An agent without
    a question is told TEXT in its next cycle.
    """
    meant, said = _find(words)
    text = visible(" ".join(said)).strip() if said else _prompt(meant)
    _give(meant, text, trust=trust, as_json=as_json)


def _prompt(meant: Meant) -> str:
    """Ask the person at the terminal for the answer."""
    choices = ", ".join(meant.question.choices) if meant.question else "any text"
    if _origin() != "terminal":
        raise UsageError("answer with what?", hint=f"choices: {choices}")
    if meant.question:
        echo(one_line(meant.question.text))
    words: str = click.prompt(f"Answer ({choices})", prompt_suffix=": ")
    return visible(words).strip()


@click.command()
@click.argument("question", required=False, metavar="[ID|AGENT]")
@trust_option
@as_json
def approve(question: str | None, trust: bool, as_json: bool) -> None:
    """Answer a question with yes: allow, accept or retry, whichever it offers."""
    _decide(question, policy.APPROVALS, trust=trust, as_json=as_json)


@click.command()
@click.argument("question", required=False, metavar="[ID|AGENT]")
@as_json
def deny(question: str | None, as_json: bool) -> None:
    """Answer a question with no: deny or stop, whichever it offers."""
    _decide(question, policy.DENIALS, trust=False, as_json=as_json)


def _decide(name: str | None, words: Sequence[str], *, trust: bool, as_json: bool) -> None:
    meant, rest = _find((name,) if name else ())
    if rest or meant.question is None:
        raise UnknownQuestionError(" ".join(rest))
    choice = next((word for word in words if word in meant.question.choices), "")
    if not choice:
        reason = "is not a yes or no: use `rekindle answer`"
        raise AnswerError(meant.question.question, reason, meant.question.choices)
    _give(meant, choice, trust=trust, as_json=as_json)


def _find(words: Sequence[str]) -> tuple[Meant, Sequence[str]]:
    """Return which question is meant, and the words behind its name."""
    require_operator(config.load(here()))
    project, store, agents = open_agents([])
    now, first = clock.now(), words[0] if words else ""
    numbered = _ID.fullmatch(first)
    if first in agents:
        known = _read(store, first)
        asked = policy.open_questions(known, now)
        question = policy.blocking(known, now) or (asked[-1] if asked else None)
        return Meant(project, store, first, known, question), words[1:]
    if numbered and numbered[1] in agents:
        known = _read(store, numbered[1])
        if first not in known.questions:
            raise UnknownQuestionError(first)
        return Meant(project, store, numbered[1], known, known.questions[first]), words[1:]
    if numbered and len(words) > 1:
        raise UnknownQuestionError(first)  # a mistyped id must not become part of an answer
    found = [
        Meant(project, store, name, known, one)
        for name in agents
        for known in (_read(store, name),)
        for one in policy.open_questions(known, now)
    ]
    if not found:
        raise UnknownQuestionError
    if len(found) > 1:
        which = ", ".join(one.question.question for one in found[:QUESTIONS_NAMED] if one.question)
        raise UsageError("which question?", hint=f"name it by its id: {which}")
    offered = found[0].question.choices if found[0].question else ()
    if first and not _is_answer(words, offered):
        raise UnknownQuestionError(first)  # nor a mistyped agent
    return found[0], words


def _is_answer(words: Sequence[str], offered: Sequence[str]) -> bool:
    """Return whether words are an answer, and none of them can be meant as the name of an agent."""
    text = " ".join(words).strip().casefold()
    is_cap = policy.RAISE in offered and words[0].casefold() == "raise"
    return text in offered or is_cap or (len(words) == 1 and len(text.split()) > 1)


def _read(store: Store, agent: str) -> Projection:
    """Return what is known of an agent, also if nothing has happened to it yet."""
    try:
        return store.read(agent).projection if store.exists(agent) else Projection(agent)
    except NotOnFleetError:
        return Projection(agent)


def _give(meant: Meant, words: str, *, trust: bool, as_json: bool) -> None:
    """Record an answer, and report what comes of it."""
    if meant.question is None:
        _tell(meant, words, as_json=as_json)
        return
    now = clock.now()
    if reason := policy.closed(meant.known, meant.question, now):
        raise ClosedQuestionError(meant.question.question, reason)
    found = policy.answer_with(meant.known, meant.question, words, now)
    found = msgspec.structs.replace(
        found, by=host.identify_user(), host=host.identify(), origin=_origin()
    )
    if found.choice == policy.ACCEPT and found.effect == "restart":
        ensure_trust(meant.project, trust=trust)
        recorded = _accept(meant, found)
    else:
        meant.store.submit(meant.agent, found)
        recorded = _wait_until_recorded(meant, found)
    if recorded.seq and found.effect in {"restart", "continue"}:
        meant.store.clear_the_way(meant.agent)
    if as_json:
        row = {"v": SCHEMA, "agent": meant.agent, "question": found.question}
        print_json(row | _answer_row(recorded) | {"is_recorded": bool(recorded.seq)})
        return
    if not recorded.seq:
        echo(f"{meant.agent}: the answer is kept, but its supervisor has not recorded it yet.")
        echo(f"Next: `rekindle questions {meant.agent} --all` shows whether it counts.")
        return
    echo(f"✓ {meant.agent}: {_outcome(found)}")
    if found.choice == "allow":
        _print_permission(meant)
    if found.effect in {"restart", "continue"}:
        _print_next(meant)


def _accept(meant: Meant, given: QuestionAnswered) -> QuestionAnswered:
    """Accept the agent's settings and record the answer, as one step.

    A supervisor that sees the answer starts at once: the settings must count by then. An answer
    that is refused changes nothing.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline came before it.
    """
    if not isinstance(meant.store, WritableStore):
        meant.store.clear_the_way(meant.agent)  # the fleet's next start has the new settings
        meant.store.submit(meant.agent, given)
        recorded = _wait_until_recorded(meant, given)
        changes = accept_settings(meant.project, meant.agent)
    else:
        with meant.store.writer(meant.agent) as writer:
            writer.fold()
            judged = policy.judge(writer.projection, given, clock.now())
            changes = [] if judged.refused else accept_settings(meant.project, meant.agent)
            writer.append(judged)
            recorded = writer.projection.answers.get(given.question, judged)
        if judged.refused:
            raise ClosedQuestionError(given.question, judged.refused)
    print_changes(meant.agent, changes)
    return recorded


def _wait_until_recorded(meant: Meant, given: QuestionAnswered) -> QuestionAnswered:
    """Return the answer as it was recorded; without a number: it was not recorded in time.

    Raises:
        ClosedQuestionError: Another answer, another command or the deadline came before it.
    """
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        known = meant.store.read(meant.agent).projection
        counts = known.answers.get(given.question)
        # The text is not compared: what is recorded of it holds no secrets.
        is_ours = counts is not None and (counts.by, counts.choice, counts.ts) == (
            given.by,
            given.choice,
            given.ts,
        )
        if counts is not None and is_ours and counts.seq:
            return counts
        asked = None if is_ours else known.questions.get(given.question)
        if asked and (reason := policy.closed(known, asked, clock.now())):
            raise ClosedQuestionError(given.question, reason)
        if time.monotonic() > deadline:
            return given
        time.sleep(STOP_POLL_SECONDS)


def _tell(meant: Meant, words: str, *, as_json: bool) -> None:
    """Tell an agent that has asked nothing: its next cycle begins with these words."""
    if not words or len(words) > ANSWER_CHARACTERS:
        raise UsageError(
            f"an answer has 1 to {ANSWER_CHARACTERS:,} characters, and this one {len(words):,}",
            hint="say it shorter, and put the rest into a file that the agent can read",
        )
    meant.store.create(meant.agent)
    now = clock.now()
    wanted = runs.say(meant.known.run, "running", now)
    meant.store.submit(meant.agent, Answered(ts=now, text=words), wanted)
    meant.store.clear_the_way(meant.agent)
    if as_json:
        print_json({"v": SCHEMA, "agent": meant.agent, "question": None, "text": words})
        return
    echo(f"✓ {meant.agent}: its next cycle is told")
    _print_next(meant)


def _outcome(answer: QuestionAnswered) -> str:
    match answer.effect:
        case "stop":
            return "stops"
        case "finish":
            return "done, as the agent reports"
        case "note":
            return f"{answer.choice}: recorded, and its next cycle is told"
        case _ if answer.text:
            return "its next cycle is told"
        case _:
            return "will be started again"


def _print_permission(meant: Meant) -> None:
    """Show what permits the call: permissions are settings, which only the manifest changes."""
    manifest = meant.project.manifest
    name = manifest.agents[meant.agent].persona or AgentDefaults().persona
    persona = manifest.personas.get(name) or Persona()
    tools = (persona.permissions and persona.permissions.allowed_tools) or ()
    rule = policy.permission_rule(meant.question, tools) if meant.question else ""
    harness = manifest.agents[meant.agent].harness
    permitted = permit(persona, [rule], harness)
    if permitted == tools:
        echo(f"Note: {explain_permit(name, persona, [rule], harness)}.")
        return
    echo(f"Permit it in rekindle.yaml, then `rekindle restart {meant.agent}`:")
    echo(f"  personas:\n    {name}:\n      permissions:")
    echo(f"        allowed_tools: {render_tools(permitted)}")


def _print_next(meant: Meant) -> None:
    if not meant.store.is_supervised(meant.agent):
        name = meant.agent
        echo(f"Next: `rekindle run {name}`, or `rekindle up` to have it kept in the background.")


def _origin() -> str:
    return "terminal" if sys.stdin is not None and sys.stdin.isatty() else "command"
