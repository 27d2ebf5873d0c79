"""`rekindle questions`: show the agents' questions."""

import re
from datetime import datetime
from typing import Any

import click
import msgspec

from rekindle import config
from rekindle.api.agent_store import read_known
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_agents,
    render_age_of,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
    render_moment,
    style_text,
)
from rekindle.documents.events import (
    QuestionAnswered,
    QuestionAsked,
)
from rekindle.documents.screens.agent_row import render_command
from rekindle.errors import (
    UnknownQuestionError,
)
from rekindle.formats.identifiers import (
    to_one_line,
)
from rekindle.policy.operator import answers
from rekindle.policy.operator import questions as policy
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock

QUESTION_ID = re.compile(r"(.+)-[0-9]+")


@click.command()
@click.argument("agent", required=False, metavar="[AGENT|ID]")
@click.option("--all", "every", is_flag=True, help="Also show answered and withdrawn questions.")
@json_option
def questions(agent: str | None, every: bool, as_json: bool) -> None:
    """Show the agents' questions, each with the command that answers it.

    With AGENT, or in an agent's own folder (`dir:`), show only that agent's questions. With ID,
    show only that question, even if it is closed. If a question's deadline has passed, it is listed
    as unanswered until you start the agent again.
    """
    numbered, agents = (
        QUESTION_ID.fullmatch(agent or ""),
        config.load_project(find_current_folder()).manifest.agents,
    )
    question = agent if numbered and numbered[1] in agents and agent not in agents else None
    named = numbered[1] if numbered and question else agent
    _project, store, names = open_agents(
        [named] if named else [], by_folder=True, with_workers=True
    )
    now = clock.read_clock()
    described = [row for name in names for row in describe_questions(read_known(store, name), now)]
    rows = [row for row in described if every or row["is_shown"] or row["id"] == question]
    if question:
        rows = [row for row in rows if row["id"] == question]
        if not rows:
            raise UnknownQuestionError(question)
    for row in rows:
        del row["is_shown"]
    if as_json:
        print_json({"questions": rows})
        return
    if not rows:
        echo("No open questions.")
    for row in rows:
        _print_question(row, now)


def describe_questions(projection: Projection, now: datetime) -> list[dict[str, Any]]:
    """Return the questions in an agent's projection as JSON objects, oldest first."""
    in_order = sorted(projection.questions.values(), key=lambda question: question.seq)
    return [_make_row(projection, question, now) for question in in_order]


def _make_row(projection: Projection, question: QuestionAsked, now: datetime) -> dict[str, Any]:
    state = policy.find_question_state(projection, question, now)
    answer = projection.answers.get(question.question)
    is_news = question.seq > max(projection.run.wanted, projection.run.restarted)
    return {
        "id": question.question,
        "agent": projection.agent,
        "about": question.about,
        "text": question.text,
        "request": question.request,
        "choices": question.choices,
        "default": question.default,
        "asked": question.ts,
        "deadline": question.deadline,
        "state": state,
        "command": answers.render_answer_command(question) if state == "open" else None,
        "others": answers.list_other_answers(question) if state == "open" else (),
        "answer": make_answer_row(answer) if answer else None,
        "is_shown": state == "open" or (state == "unanswered" and is_news),
    }


def make_answer_row(answer: QuestionAnswered) -> dict[str, Any]:
    names = ("choice", "text", "effect", "by", "host", "origin", "ts")
    return {name: getattr(answer, name) for name in names}


def _print_question(row: dict[str, Any], now: datetime) -> None:
    echo(
        style_text(row["id"], bold=True),
        f"  {row['about']}, asked {render_age_of(row['asked'], now)}",
    )
    echo(f"  {to_one_line(row['text'])}")
    if row["request"]:
        echo(f"  {to_one_line(msgspec.json.encode(row['request']).decode())}")
    if row["state"] == "open":
        until = render_moment(row["deadline"], "%Y-%m-%d %H:%M") if row["deadline"] else ""
        after = f"; {row['default']} after {until}" if until else ""
        echo(f"  → {render_command(row['command'], row['others'])}{after}")
    elif row["state"] == "unanswered":
        print_styled(f"  unanswered, so the default applies: {row['default']}", fg="yellow")
    elif answer := row["answer"]:
        words = to_one_line(answer["choice"] or answer["text"])
        echo(f"  answered by {answer['by']}, {render_age_of(answer['ts'], now)}: {words}")
    else:
        echo("  withdrawn: another command made it unnecessary")
