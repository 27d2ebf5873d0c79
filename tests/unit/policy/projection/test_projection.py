"""Properties that a projection derives from its fields."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents import events
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import LostEvents, Projection, prune_projection
from rekindle.policy.stall.stall_response import LastAnswer
from rekindle.policy.supervision.run_moves import OperatorCommand, RunState
from rekindle.thresholds.supervision import QUESTIONS_KEPT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_a_projection_does_not_change():
    with pytest.raises(AttributeError, match="immutable"):
        Projection("a").seq = 1


@pytest.mark.parametrize(
    ("cycle", "ended", "is_open", "current"), [(0, 0, False, 1), (3, 2, True, 3), (3, 3, False, 4)]
)
def test_the_current_cycle_is_the_open_or_the_next_one(cycle, ended, is_open, current):
    known = Projection("a", cycle=cycle, cycle_ended=ended)
    assert (known.is_cycle_open, known.current_cycle) == (is_open, current)


def test_a_run_has_another_name_after_a_move_and_in_a_new_folder():
    def name(*happened):
        return fold_events(Projection("a"), happened).run_name

    run = events.RunStarted(ts=NOON, seq=1)
    moved = events.OwnerChanged(ts=NOON, seq=2, host="b", previous="a")
    later = events.RunStarted(ts=NOON + timedelta(days=1), seq=1)
    assert name() == ""
    assert len({name(run), name(run, moved), name(later)}) == 3


@pytest.mark.parametrize(
    ("desired", "lost", "wanted", "expected"),
    [
        ("running", None, 5, False),
        ("running", LostEvents(after=5), 5, True),
        ("running", LostEvents(after=4), 5, False),
        ("stopped", LostEvents(after=5), 5, False),
    ],
)
def test_a_stop_may_be_lost_only_after_the_command_to_run(desired, lost, wanted, expected):
    run = RunState(command=OperatorCommand(NOON, desired), wanted=wanted)
    assert Projection("a", run=run, loss=lost).may_miss_stop is expected


def test_answers_are_new_until_a_cycle_ends_after_them():
    answers = {
        "a-1": events.QuestionAnswered(ts=NOON, question="a-1", effect="restart", text="x", seq=4)
    }
    known = Projection("a", answers=answers, answer=LastAnswer(2, "y"))
    assert [answer.text for answer in known.new_answers] == ["y", "x"]
    ended = {1: events.CycleEnded(ts=NOON, cycle=1, seq=3)}
    later = Projection("a", answers=answers, answer=LastAnswer(2, "y"), ended=ended)
    assert [answer.text for answer in later.new_answers] == ["x"]
    assert later.last_ended_cycle == ended[1]


def test_a_snapshot_has_the_newest_questions_and_their_answers():
    count = QUESTIONS_KEPT + 1
    questions = {
        f"a-{number}": events.QuestionAsked(
            ts=NOON,
            question=f"a-{number}",
            number=number,
            about="crash",
            choices=("retry", "stop"),
            default="stop",
            seq=number,
        )
        for number in range(1, count + 1)
    }
    answers = {
        name: events.QuestionAnswered(ts=NOON, question=name, effect="note") for name in questions
    }
    small = prune_projection(Projection("a", questions=questions, answers=answers))
    assert "a-1" not in small.questions
    assert len(small.questions) == QUESTIONS_KEPT
    assert small.answers.keys() == small.questions.keys()


def test_a_login_that_fails_all_night_displaces_no_other_question():
    count = QUESTIONS_KEPT + 10
    questions = {
        f"a-{number}": events.QuestionAsked(
            ts=NOON,
            question=f"a-{number}",
            number=number,
            about="asked" if number == 1 else "auth",
            choices=("skip",) if number == 1 else ("retry", "stop"),
            default="skip" if number == 1 else "retry",
            seq=number,
        )
        for number in range(1, count + 1)
    }
    answers = {
        f"a-{number}": events.QuestionAnswered(
            ts=NOON, question=f"a-{number}", effect="restart", origin="deadline"
        )
        for number in range(2, count)
    }
    small = prune_projection(Projection("a", questions=questions, answers=answers))
    assert list(small.questions) == ["a-1", f"a-{count - 1}", f"a-{count}"]
    assert list(small.answers) == [f"a-{count - 1}"]


def test_an_answer_during_a_cycle_is_for_the_next_one():
    """A cycle knows only the answers that were there before its last fresh session."""
    happened = [
        events.CycleStarted(ts=NOON, seq=1, cycle=1),
        events.LaunchStarted(
            ts=NOON, seq=3, launch="l", cycle=1, session="s", harness="h", boot=""
        ),
        events.LaunchStarted(
            ts=NOON, seq=5, launch="m", cycle=1, session="s", harness="h", boot="", resumes=True
        ),
        events.CycleEnded(ts=NOON, seq=7, cycle=1),
    ]
    for seq, is_new in ((2, False), (4, True), (6, True), (8, True)):
        answered = events.QuestionAnswered(
            ts=NOON, seq=seq, question="a-1", effect="note", text="yes"
        )
        known = fold_events(Projection("a"), [*happened, answered])
        assert [each.text for each in known.new_answers] == (["yes"] if is_new else []), seq
