"""A supervisor asks a person, and is killed before, between and after the answer."""

import itertools
from datetime import timedelta
from types import SimpleNamespace

import pytest

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.manifest_keys import Budget
from rekindle.flows.operator.ask_operator import QuestionAsker
from rekindle.flows.supervisor_ports import SafeModeReport
from rekindle.formats.validation import Duration
from rekindle.policy.operator import answers, questions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    QuestionSettings,
    RuntimeSettings,
    Settings,
)
from unit.flows.supervision.test_supervisor import (
    Killed,
    Life,
)

HOUR = 3600


class Asking(Life):
    """An agent whose questions a person answers, in the log or while it rests."""

    def given(self, words):
        known = self.store.read("a").projection
        *_, question = known.questions.values()
        return answers.make_answer(known, question, words, self.clock())

    def answers(self, words):
        """Answer as a command does: acknowledged, then folded if the writer is free."""
        self.store.submit("a", self.given(words))

    def dies_after(self, seconds, **how):
        self.after(seconds, self.is_killed)
        with pytest.raises(Killed):
            self.run(**how)

    def open_questions(self):
        known = self.store.read("a").projection
        return [one.question for one in questions.list_open_questions(known, self.clock())]

    def counted(self):
        return [one for one in self.logged(events.QuestionAnswered) if not one.refused]


@pytest.fixture
def life(clock):
    return Asking(clock)


def test_a_question_is_asked_once_however_many_supervisors_come(life):
    """It is in the log with the safe mode, and the operator is told the command."""
    life.plays = [("billing",)]
    for how in ({}, {"by_watchdog": True}, {"by_watchdog": True}):
        life.dies_after(60, **how)
    [asked] = life.logged(events.QuestionAsked)
    [entered] = life.logged(events.SafeModeEntered)
    assert (asked.seq, asked.about) == (entered.seq + 1, "billing")
    assert life.notes == ["billing\n→ rekindle answer a-1 retry  (or: stop)"]
    assert [one.command for one in life.told if isinstance(one, SafeModeReport)] == [
        "rekindle answer a-1 retry"
    ] * 3


def test_an_answer_given_while_no_supervisor_lives_has_its_effect_once(life):
    """Killed between the question and the answer, and again between the answer and its effect."""
    life.plays = [("billing",)]
    life.dies_after(60)
    life.store.report("a", life.given("retry"), life.given("stop"))  # acknowledged, not folded
    commit, life.store.commit = life.store.commit, lambda *_, **__: life.is_killed()
    with pytest.raises(Killed):
        life.run(by_watchdog=True)
    life.store.commit = commit
    assert life.counted() == []
    life.plays = [("clean",), ("clean",)]
    assert life.run(by_watchdog=True) == "cycles"
    [counted] = life.counted()
    assert (counted.choice, len(life.starts)) == ("retry", 2)
    refused = life.logged(events.QuestionAnswered)[1]
    assert (refused.choice, "it was answered" in refused.refused) == ("stop", True)
    assert life.run(by_watchdog=True) == "unwanted", "the run is over, and nothing starts it again"
    assert len(life.starts) == 2


@pytest.mark.parametrize(
    ("words", "kind", "starts"), [("retry", "cycles", 2), ("stop", "stopped", 1)]
)
def test_a_supervisor_that_waits_obeys_the_answer(life, words, kind, starts):
    life.plays = [("billing",), ("clean",)]
    life.after(60, lambda: life.answers(words))
    assert life.run() == kind
    assert len(life.starts) == starts
    assert life.run(by_watchdog=True) == "unwanted"
    assert len(life.starts) == starts


def test_at_the_deadline_the_agent_stops_and_the_question_stays_unanswered(life):
    """If the supervisor is killed while it records the default, it is recorded once."""
    life.runtime = RuntimeSettings(questions=QuestionSettings(deadline=Duration(HOUR)))
    life.plays = [("billing",)]
    life.dies_after(HOUR - 60)
    commit, tried = life.store.commit, []

    def dies_once(agent, stamped, **how):
        if stamped and isinstance(stamped[0], events.QuestionAnswered) and not tried:
            tried.append(stamped)
            life.is_killed()
        commit(agent, stamped, **how)

    life.store.commit = dies_once
    with pytest.raises(Killed):
        life.run(by_watchdog=True)
    assert (life.counted(), len(tried)) == ([], 1)
    life.resting.clear()
    assert life.run(by_watchdog=True) == "stopped"
    [default] = life.counted()
    assert (default.choice, default.origin) == ("stop", "deadline")
    known = life.store.read("a").committed
    [question] = known.questions.values()
    assert questions.find_question_state(known, question, life.clock()) == "unanswered"
    life.store.submit("a", answers.make_answer(known, question, "retry", life.clock()))
    assert life.known.desired == "stopped"
    assert life.run(by_watchdog=True) == "unwanted"
    assert len(life.starts) == 1


def test_an_agent_whose_login_was_repaired_continues_by_itself(life):
    """It tries again after pauses that double, and the operator is told once."""
    life.plays = [("auth",), ("auth",), ("auth",), ("clean",)]
    assert life.run() == "cycles"
    ends = [end.ts for end in life.logged(events.LaunchEnded)]
    pauses = [(after - before).total_seconds() for before, after in itertools.pairwise(ends)]
    assert pauses == pytest.approx([30, 60, 120], abs=3)
    assert {(answer.choice, answer.origin) for answer in life.counted()} == {("retry", "deadline")}
    assert [note for note in life.notes if "auth" in note] == [
        "auth\n→ rekindle answer a-1 retry  (or: stop)"
    ]
    assert life.resumed == [False, True, True, True]


def test_a_failed_login_after_a_person_tried_again_is_told_again(life):
    life.plays = [("auth",), ("auth",), ("clean",)]
    life.after(10, life.restarts)
    assert life.run() == "cycles"
    assert sum("auth" in note for note in life.notes) == 2


def test_no_pause_after_a_failed_login_is_longer_than_the_deadline(life):
    life.runtime = RuntimeSettings(questions=QuestionSettings(deadline=Duration(10)))
    life.plays = [("auth",), ("clean",)]
    assert life.run() == "cycles"
    [asked] = life.logged(events.QuestionAsked)
    assert (asked.deadline - asked.ts).total_seconds() == pytest.approx(10)


def test_run_after_a_deadline_asks_again(life):
    life.runtime = RuntimeSettings(questions=QuestionSettings(deadline=Duration(HOUR)))
    life.plays = [("billing",)]
    assert life.run() == "stopped"
    life.plays = [("clean",)]
    life.after(60, lambda: life.answers("retry"))
    assert life.run() == "cycles"
    assert [one.question for one in life.logged(events.QuestionAsked)] == ["a-1", "a-2"]


def test_an_id_that_was_notified_is_not_given_again_though_it_was_never_recorded(life):
    """The supervisor is killed between the notification and the record."""
    known, call = Projection("a"), RefusedCall("Bash", "echo 1")
    settings = Settings(runtime=life.runtime)
    world = SimpleNamespace(
        store=life.store, settings=settings, clock=life.clock, notify=life.notify
    )
    person = QuestionAsker(SimpleNamespace(name="a", budget=None), world)
    [asked] = person.ask_about_refused_calls(known, [call], "launch")
    assert "rekindle approve a-1" in life.notes[-1]
    [later] = person.ask_about_refused_calls(known, [call], "launch")
    assert (asked.question, later.question) == ("a-1", "a-2")


def test_a_raised_budget_continues_the_run_with_what_it_spent(life):
    life.facts = {"budget": Budget(usd=1.0)}
    life.spends = 1.5
    life.plays = [("crash",)]
    assert life.run() == "budget"
    [asked] = life.logged(events.QuestionAsked)
    assert asked.choices == ("raise AMOUNT", "stop")
    assert life.run(by_watchdog=True) == "unwanted"
    life.answers("raise 4")
    life.spends, life.plays = 0.5, [("clean",)]
    assert life.run(by_watchdog=True) == "cycles"
    assert life.starts[-1].usd_left == pytest.approx(2.5)
    assert life.known.run_spending().usd == pytest.approx(2.0)
    assert len(life.logged(events.RunStarted)) == 1


def test_a_log_of_an_older_version_in_safe_mode_is_asked_about(life):
    life.store.create("a")
    with life.store.writer("a") as writer:
        now = life.clock()
        writer.append(
            events.DesiredSet(ts=now, desired="running"),
            events.RunStarted(ts=now),
            events.SafeModeEntered(ts=now, why="billing", words="log in"),
        )
    life.plays = [("clean",)]
    life.after(60, lambda: life.answers("retry"))
    assert life.run(by_watchdog=True) == "cycles"
    assert [one.text for one in life.logged(events.QuestionAsked)] == ["log in"]


def test_a_default_that_stops_is_recorded_after_every_earlier_command(life):
    """A clock that was set back must not make the stop older than the command before it."""
    life.runtime = RuntimeSettings(questions=QuestionSettings(deadline=Duration(HOUR)))
    life.plays = [("billing",)]

    def word_from_the_future():
        later = life.clock() + timedelta(days=30)
        life.store.submit("a", events.DesiredSet(ts=later, desired="running"))

    life.after(60, word_from_the_future)
    assert life.run() == "stopped"
    assert life.known.desired == "stopped"


def presses_enter(life):
    pressed = iter([False, True])
    life.is_resumed = lambda: next(pressed, False)


def test_enter_at_the_terminal_answers_a_question_that_takes_it(life):
    life.plays = [("billing",), ("clean",)]
    presses_enter(life)
    assert life.run() == "cycles"
    [found] = life.counted()
    assert (found.choice, found.origin, bool(found.by), bool(found.host)) == (
        "retry",
        "terminal",
        True,
        True,
    )
    assert [one.takes_enter for one in life.told if isinstance(one, SafeModeReport)] == [True]


@pytest.mark.parametrize("exit_kind", ["budget", "no-permission"])
def test_enter_does_nothing_if_something_must_be_edited_or_said_first(life, exit_kind):
    """Otherwise the agent would run straight into the same stop."""
    life.facts = {"budget": Budget(usd=9.0)}
    life.plays = [(exit_kind,)]
    presses_enter(life)
    life.after(600, life.stops)
    assert life.run() == "stopped"
    assert (len(life.starts), life.counted(), life.logged(events.RestartRequested)) == (1, [], [])
    assert [one.takes_enter for one in life.told if isinstance(one, SafeModeReport)] == [False]


def test_an_accepted_end_ends_the_supervisor_as_done(life):
    life.store.create("a")
    with life.store.writer("a") as writer:
        now = life.clock()
        writer.append(
            events.DesiredSet(ts=now, desired="running"),
            events.RunStarted(ts=now),
            events.SafeModeEntered(ts=now, why="disputed"),
        )
    life.after(60, lambda: life.answers("accept"))
    assert life.run(by_watchdog=True) == "claimed"
    assert (life.outcome.outcome, life.starts) == ("done-unverified", [])
    assert "`until:` or the review failed" in life.outcome.words
    assert life.run(by_watchdog=True) == "unwanted"


def test_a_stop_settles_the_question_and_the_next_run_asks_again(life):
    life.plays = [("billing",)]
    life.after(60, life.stops)
    assert life.run() == "stopped"
    known = life.store.read("a").committed
    assert questions.list_open_questions(known, life.clock()) == []
    life.plays = [("clean",)]
    life.after(60, lambda: life.answers("retry"))
    assert life.run() == "cycles"
    assert [one.question for one in life.logged(events.QuestionAsked)] == ["a-1", "a-2"]


def test_a_run_that_does_not_wait_records_its_question_too(life):
    """`run --once`: the person answers later, and the next run obeys."""
    life.plays = [("billing",)]
    assert life.run(once=True) == "billing"
    [asked] = life.logged(events.QuestionAsked)
    [entered] = life.logged(events.SafeModeEntered)
    assert (asked.about, asked.seq) == ("billing", entered.seq + 1)
    assert life.notes == ["billing\n→ rekindle answer a-1 retry  (or: stop)"]
    life.answers("retry")
    life.plays = [("clean",)]
    assert life.run(by_watchdog=True) == "cycles"
    assert len(life.logged(events.QuestionAsked)) == 1


def test_a_question_about_a_call_survives_the_death_of_the_cli(life):
    """The CLI is killed after the refusal, and refused again; one question stays open."""
    call = RefusedCall("Bash", "touch made", {"command": "touch made"})
    open_then = []
    life.signs = lambda head, since: events.WorkSigns(commits=1)
    life.plays = [
        ("crash", call),
        ("crash", lambda: open_then.append(life.open_questions()), call),
        ("clean", call),
    ]
    assert life.run() == "cycles"
    [asked] = life.logged(events.QuestionAsked)
    [first, *_] = ended = life.logged(events.LaunchEnded)
    assert [(one.exit, one.refused) for one in ended] == [("crash", 1), ("crash", 1), ("clean", 1)]
    assert (asked.about, asked.launch) == ("permission", first.launch)
    assert asked.seq > first.seq
    assert [*open_then, life.open_questions()] == [["a-1"], ["a-1"]]
    assert life.notified.count("permission") == 1
    life.answers("allow")
    assert (life.open_questions(), [one.choice for one in life.counted()]) == ([], ["allow"])
