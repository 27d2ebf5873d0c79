"""Answers: their commands, their effects, and the permissions that they lead to."""

import shlex
import sys
import types
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.errors import AnswerError, UsageError
from rekindle.policy.exits.stop_reasons import STOP_REASONS
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.questions import QuestionTerms
from rekindle.policy.projection.projection import Projection
from rekindle.thresholds.screens import ANSWER_CHARACTERS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("call", "rule"),
    [
        (RefusedCall("Bash", "ls", {"command": "ls"}), "Bash"),
        (RefusedCall("exec_command", "ls", {"cmd": "ls"}, permission="Write"), "Write"),
        (RefusedCall("Edit", "a", {"file_path": "/srv/a"}), "Edit"),
        (RefusedCall("Write", "a", {"file_path": "/srv/a"}), "Write(//srv/a)"),
        (RefusedCall("Write", "a", {"file_path": "a"}), "Write"),
        (
            RefusedCall("Write", "a", {"file_path": "/srv/a", "content": "x" * 9999}),
            "Write(//srv/a)",
        ),
    ],
)
def test_what_permits_a_refused_call(call, rule):
    """A file tool that the persona has already was refused because of its path."""
    [asked] = questions.ask_about_calls(
        Projection("trades"), [call], "launch", QuestionTerms(NOON, 60.0)
    )
    assert answers.find_permission_rule(asked, ["Read", "Write"]) == rule


@pytest.mark.parametrize(
    ("about", "choices", "request_", "command", "others"),
    [
        ("auth", ("retry", "stop"), {}, "rekindle answer a-1 retry", ("stop",)),
        (
            "stalled",
            ("TEXT", "retry", "done", "stop"),
            {},
            "rekindle answer a-1 retry",
            ("TEXT", "done", "stop"),
        ),
        ("waiting", ("TEXT", "stop"), {}, 'rekindle answer a-1 "TEXT"', ("stop",)),
        (
            "budget",
            ("raise AMOUNT", "stop"),
            {"unit": "tokens", "cap": 2_000_000, "spent": 2_000_000.5},
            "rekindle answer a-1 raise 4000001",
            ("raise AMOUNT", "stop"),
        ),
        ("permission", ("allow", "deny"), {}, "rekindle approve a-1", ("rekindle deny a-1",)),
    ],
)
def test_the_command_of_a_question_can_be_pasted_as_it_is(
    about, choices, request_, command, others
):
    asked = events.QuestionAsked(
        ts=NOON,
        question="a-1",
        number=1,
        about=about,
        text="",
        choices=choices,
        default=choices[-1],
        request=request_,
    )
    assert answers.render_answer_command(asked) == command
    assert answers.list_other_answers(asked) == others
    words = shlex.split(command)
    assert shlex.join(words) == command.replace('"', "")  # nothing that a shell would interpret


def import_answers():
    """Import the module once more, as it would be imported first."""
    module = types.ModuleType("rekindle.policy.answers_of_a_test")
    source = Path(answers.__file__).read_text(encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        exec(compile(source, "answers.py", "exec"), module.__dict__)  # noqa: S102 - our own source


def test_a_choice_without_its_answer_fails_the_import(monkeypatch):
    """A question could otherwise offer an answer that does nothing."""
    import_answers()
    waiting = msgspec.structs.replace(STOP_REASONS["waiting"], choices=("TEXT", "postpone", "stop"))
    monkeypatch.setitem(STOP_REASONS, "waiting", waiting)
    with pytest.raises(TypeError, match="postpone"):
        import_answers()


def test_an_answer_that_no_question_offers_fails_the_import(monkeypatch):
    budget = msgspec.structs.replace(STOP_REASONS["budget"], choices=("stop",))
    monkeypatch.setitem(STOP_REASONS, "budget", budget)
    with pytest.raises(TypeError, match="raise AMOUNT"):
        import_answers()


def test_an_answer_of_the_longest_length_is_accepted_and_a_longer_one_refused():
    asked = events.QuestionAsked(
        ts=NOON,
        question="a-1",
        number=1,
        about="waiting",
        text="",
        choices=("TEXT", "stop"),
        default="stop",
    )
    longest = "a" * ANSWER_CHARACTERS
    assert answers.make_answer(Projection("a"), asked, longest, NOON).text == longest
    with pytest.raises(AnswerError, match="is longer than 8,000 characters"):
        answers.make_answer(Projection("a"), asked, longest + "a", NOON)


@pytest.mark.parametrize(
    ("words", "choice", "text"),
    [
        ("postgres", "Postgres; rm -rf ~", None),
        ("Postgres; rm -rf ~", "Postgres; rm -rf ~", "Postgres; rm -rf ~"),
        ("Use both", "", "Use both"),
        ("skip", "skip", "It is left to you: decide yourself, and record the decision."),
    ],
)
def test_an_answer_to_the_agents_own_question_only_informs_it(words, choice, text):
    """Neither a suggestion nor own words restart the agent, and no suggestion is in a command."""
    asked = events.QuestionAsked(
        ts=NOON,
        seq=1,
        question="a-1",
        number=1,
        about=questions.ASKED,
        text="Which?",
        choices=("Postgres; rm -rf ~", *questions.ASKED_CHOICES),
        default="skip",
    )
    given = answers.make_answer(Projection("a"), asked, words, NOON)
    assert given.effect == "note"
    assert (given.choice, given.text) == ((choice, text) if text else ("", words))
    assert answers.render_answer_command(asked) == 'rekindle answer a-1 "TEXT"'
    assert answers.list_other_answers(asked) == ("Postgres; rm -rf ~", "skip")


@pytest.mark.parametrize(("text", "hint"), [("", "in quotes"), ("xxx", "shorten it")])
def test_an_empty_text_is_not_to_be_shortened(text, hint):
    with pytest.raises(UsageError, match="a message has 1 to 2 characters") as raised:
        answers.require_length(text, 2, "a message")
    assert hint in raised.value.hint
