"""`rekindle answer`, `approve` and `deny`: answer agents' questions."""

import sys
from collections.abc import Container, Sequence

import click

from rekindle import config
from rekindle.api.agent_store import AgentStore, read_known
from rekindle.api.answer_questions import (
    SelectedQuestion,
    record_answer,
    select_question,
    send_message,
)
from rekindle.cli.options import (
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
)
from rekindle.cli.trust_prompt import (
    make_operator,
    trust_option,
)
from rekindle.documents.events import (
    AnswerEffect,
    QuestionAnswered,
)
from rekindle.documents.manifest import Persona
from rekindle.errors import (
    AnswerError,
    UnknownQuestionError,
    UsageError,
)
from rekindle.formats.identifiers import (
    strip_invisible,
    to_one_line,
)
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.asked_calls import is_about_waiting_call
from rekindle.policy.settings.runtime_settings import (
    AgentDefaults,
)
from rekindle.policy.setup.permissions import (
    explain_permit,
    permit_tools,
    render_tools,
)
from rekindle.system import clock
from rekindle.thresholds.screens import QUESTIONS_NAMED


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
    selected, answer_words = _find_question(words)
    text = (
        strip_invisible(" ".join(answer_words)).strip()
        if answer_words
        else _prompt_answer(selected)
    )
    _submit_answer(selected, text, trust=trust, as_json=as_json)


def _prompt_answer(selected: SelectedQuestion) -> str:
    """Prompt for the answer in the terminal."""
    choices = ", ".join(selected.question.choices) if selected.question else "any text"
    if _find_origin() != "terminal":
        if selected.question is None:
            hint = f'`rekindle answer {selected.agent} "TEXT"` sends a message to its next cycle'
            raise UsageError(f"{selected.agent} asks nothing", hint=hint)
        command = answers.render_answer_command(selected.question)
        raise UsageError("no answer was given", hint=f"`{command}`; choices: {choices}")
    if selected.question:
        echo(to_one_line(selected.question.text))
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
    selected, rest = _find_question((name,) if name else ())
    if rest or selected.question is None:
        raise UnknownQuestionError(" ".join(rest))
    choice = next((word for word in words if word in selected.question.choices), "")
    if not choice:
        reason = "cannot be answered with yes or no: use `rekindle answer`"
        raise AnswerError(selected.question.question, reason, selected.question.choices)
    _submit_answer(selected, choice, trust=trust, as_json=as_json)


def _find_question(words: Sequence[str]) -> tuple[SelectedQuestion, Sequence[str]]:
    """Return the question that the first word selects, and the words of the answer."""
    require_operator(config.load_project(find_current_folder()))
    project, store, asking = open_agents([], with_workers=True)
    agents = project.manifest.agents
    now, first = clock.read_clock(), words[0] if words else ""
    numbered = QUESTION_ID.fullmatch(first)
    if first in agents and not _is_open_question(store, agents, first):
        return select_question(project, store, first), words[1:]
    if numbered and numbered[1] in agents:
        projection = read_known(store, numbered[1])
        if first not in projection.questions:
            raise UnknownQuestionError(first)
        return SelectedQuestion(
            project, store, numbered[1], projection, projection.questions[first]
        ), words[1:]
    if numbered and len(words) > 1:
        raise UnknownQuestionError(first)  # A mistyped id must not become part of the answer.
    candidates = [
        SelectedQuestion(project, store, name, state, question)
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


def _submit_answer(selected: SelectedQuestion, words: str, *, trust: bool, as_json: bool) -> None:
    """Record an answer and print its effect."""
    if selected.question is None:
        _send_message(selected, words, as_json=as_json)
        return
    operator = make_operator(trust=trust, origin=_find_origin())
    recorded = record_answer(selected, selected.question, words, operator)
    if as_json:
        row = {"agent": selected.agent, "question": recorded.question}
        print_json(row | make_answer_row(recorded) | {"is_recorded": bool(recorded.seq)})
        return
    if not recorded.seq:
        echo(f"{selected.agent}: the answer is saved, but the supervisor has not recorded it yet.")
        echo(f"Next: `rekindle questions {selected.agent} --all` shows whether it was accepted.")
        return
    if is_about_waiting_call(selected.question):
        echo(f"✓ {selected.agent}: {_describe_decision(recorded)}")
        return
    echo(f"✓ {selected.agent}: {_describe_outcome(recorded)}")
    if recorded.choice == "allow":
        _print_permission(selected)
    _print_next(selected, recorded.effect)


def _send_message(selected: SelectedQuestion, words: str, *, as_json: bool) -> None:
    send_message(selected, words)
    if as_json:
        print_json({"agent": selected.agent, "question": None, "text": words})
        return
    echo(f"✓ {selected.agent}: its next cycle will get the message")
    _print_next(selected, "restart")


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


def _describe_decision(answer: QuestionAnswered) -> str:
    if answer.choice == "allow":
        return (
            "the call may run once; if the agent has stopped waiting, the approval counts for the "
            "same call until its next cycle ends"
        )
    return "the call is refused"


def _print_permission(selected: SelectedQuestion) -> None:
    """Print the manifest lines that permit the call. An answer alone does not."""
    manifest = selected.project.manifest
    name = manifest.agents[selected.agent].persona or AgentDefaults().persona
    persona = manifest.personas.get(name) or Persona()
    tools = (persona.permissions and persona.permissions.allowed_tools) or ()
    rule = answers.find_permission_rule(selected.question, tools) if selected.question else ""
    harness = manifest.agents[selected.agent].harness
    permitted = permit_tools(persona, [rule], harness)
    if permitted == tools:
        echo(f"Note: {explain_permit(name, persona, [rule], harness)}.")
        return
    is_supervised = selected.store.is_supervised(selected.agent)
    then = f", then `rekindle restart {selected.agent}`" if is_supervised else ""
    echo(f"To permit it, add to rekindle.yaml{then}:")
    echo(f"  personas:\n    {name}:\n      permissions:")
    echo(f"        allowed_tools: {render_tools(permitted)}")


def _print_next(selected: SelectedQuestion, effect: AnswerEffect) -> None:
    """Print the command that starts the agent, if the agent must be started."""
    if effect not in {"stop", "finish"} and not selected.store.is_supervised(selected.agent):
        name = selected.agent
        echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to run it in the background.")


def _find_origin() -> str:
    return "terminal" if sys.stdin is not None and sys.stdin.isatty() else "command"
