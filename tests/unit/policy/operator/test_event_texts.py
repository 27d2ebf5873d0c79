"""One text for each question, answer, command and end of a run."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.policy.operator import event_texts

AT = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (events.DesiredSet(ts=AT, desired="stopped"), "you stopped it"),
        (events.DesiredSet(ts=AT, desired="running", cycles=3), "you started it"),
        (events.DesiredSet(ts=AT, desired="running"), ""),
        (events.DesiredSet(ts=AT, desired="stopped", by="ann@box"), "ann@box stopped it"),
        (events.RestartRequested(ts=AT, by="ann@box"), "ann@box restarted it"),
        (
            events.BudgetRaised(ts=AT, usd=20.0, by="ann"),
            "you raised its budget: the run ends after $20",
        ),
        (
            events.DesiredSet(ts=AT, desired="running", cycles=3, due=AT),
            "its schedule started it, for 2026-04-09 01:00 UTC",
        ),
        (events.PersonAnswered(ts=AT, text="ten\nan hour"), "you answered: ten an hour"),
        (events.RestartRequested(ts=AT), "you restarted it"),
        (events.RestartRequested(ts=AT, fresh=True), "you restarted it in a fresh session"),
        (events.RestartRequested(ts=AT, once=True), ""),
        (
            events.BudgetRaised(ts=AT, usd=20.0, tokens=2_000_000),
            "you raised its budget: the run ends after $20 or 2,000,000 tokens",
        ),
        (
            events.WorkRewound(
                ts=AT, snapshot="a/3", commit="c", occasion="cycle 3, start", saved="a/4"
            ),
            "you rewound the work tree to a/3 (cycle 3, start)",
        ),
    ],
)
def test_the_operators_actions(event, text):
    assert event_texts.describe_action(event) == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"choice": "retry", "by": "ann"}, "a-1 was answered by ann: retry"),
        ({"text": "ten"}, "a-1 was answered by the deadline: ten"),
        (
            {"choice": "stop", "by": "ann", "refused": "too late"},
            "a-1 was answered by ann: stop, which was refused: too late",
        ),
    ],
)
def test_an_answer_names_its_author(fields, text):
    answer = events.QuestionAnswered(ts=AT, question="a-1", effect="restart", **fields)
    assert event_texts.describe_answer(answer) == text


def test_a_question_is_one_line():
    asked = events.QuestionAsked(
        ts=AT,
        question="a-1",
        number=1,
        about="waiting",
        text="Ten\nor a hundred?",
        choices=("TEXT", "stop"),
        default="stop",
    )
    assert event_texts.describe_question(asked) == "a-1 asks: Ten or a hundred?"


def test_the_end_of_a_run_has_an_outcome_and_a_reason():
    ended = events.RunEnded(ts=AT, why="claimed")
    assert event_texts.describe_stop(ended) == "done but unverified: no `until:` verifies it"
    paused = events.SafeModeEntered(ts=AT, why="auth", words="not logged in")
    assert event_texts.describe_stop(paused) == "needs you: not logged in"
