"""Questions: asked with what they are about, answered once, and settled by their deadline."""

from datetime import UTC, datetime, timedelta
from itertools import permutations

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.manifest_keys import Budget
from rekindle.errors import AnswerError
from rekindle.policy.exits.restart import StopRun
from rekindle.policy.fleet import agent_registry
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.build_row import (
    RowInputs,
    build_row,
)
from rekindle.policy.operator.questions import QuestionTerms
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.settings.runtime_settings import RuntimeSettings
from rekindle.policy.supervision.run_moves import (
    decide_next_move,
    is_new_run,
)
from rekindle.thresholds.login_limits import LOGIN_RETRY_SECONDS
from rekindle.thresholds.proposal_limits import ASKED_OPEN
from rekindle.thresholds.supervision import QUESTIONS_A_LAUNCH, QUESTIONS_KEPT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
BEGUN = (
    events.DesiredSet(ts=NOON, desired="running"),
    events.RunStarted(ts=NOON),
)


class Log:
    """An agent's events, numbered as the writer numbers them."""

    def __init__(self, *new, seconds=3600.0, cap=None):
        self.events, self.seconds, self.cap = [], seconds, cap
        self.add(*BEGUN, *new)

    @property
    def known(self):
        return fold_events(Projection("trades"), self.events)

    def add(self, *new, now=NOON):
        asking = QuestionTerms(now, self.seconds, self.cap)
        for event in questions.add_questions(self.known, new, asking):
            self.events.append(msgspec.structs.replace(event, seq=len(self.events) + 1))
        return self

    def answer(self, words, now=NOON + timedelta(minutes=1), *, question=None):
        """Give an answer the way a command does, and have it judged as the writer does."""
        asked = question or questions.list_open_questions(self.known, now)[-1]
        given = answers.make_answer(self.known, asked, words, now)
        self.add(answers.judge_answer(self.known, given, now))
        return self.events[-1]

    def states(self, now=NOON):
        known = self.known
        return [questions.find_question_state(known, one, now) for one in known.questions.values()]


def safe(why="billing", words="the account has no credit"):
    return events.SafeModeEntered(ts=NOON, why=why, words=words)


def said(desired, minutes=0):
    return events.DesiredSet(ts=NOON + timedelta(minutes=1 + minutes), desired=desired)


def ended(outcome, words=""):
    return events.RunEnded(ts=NOON, why=outcome, words=words)


@pytest.mark.parametrize(
    ("event", "choices", "default"),
    [
        (safe("billing"), ("retry", "stop"), "stop"),
        (safe("crash"), ("retry", "stop"), "stop"),
        (safe("no-progress"), ("retry", "stop"), "stop"),
        (safe("settings"), ("accept", "stop"), "stop"),
        (safe("waiting"), ("TEXT", "stop"), "stop"),
        (safe("stalled"), ("TEXT", "retry", "done", "stop"), "stop"),
        (ended("waiting"), ("TEXT", "stop"), "stop"),
        (ended("stalled"), ("TEXT", "retry", "done", "stop"), "stop"),
        (safe("disputed"), ("TEXT", "retry", "accept", "stop"), "stop"),
        (safe("budget"), ("retry", "stop"), "stop"),
    ],
)
def test_what_needs_a_person_is_a_question(event, choices, default):
    [asked] = questions.list_open_questions(Log(event).known, NOON)
    assert (asked.question, asked.choices, asked.default) == ("trades-1", choices, default)
    assert asked.about == event.why
    assert asked.deadline == NOON + HOUR


def test_after_a_failed_login_it_is_tried_again_soon_without_an_answer():
    [asked] = questions.list_open_questions(Log(safe("auth")).known, NOON)
    assert (asked.choices, asked.default) == (("retry", "stop"), "retry")
    assert asked.deadline == NOON + timedelta(seconds=LOGIN_RETRY_SECONDS)


def test_an_answer_to_a_login_that_was_tried_again_is_sent_to_the_newest_question():
    log, later = Log(safe("auth")), NOON + HOUR
    log.add(*answers.apply_defaults(log.known, later), now=later)
    log.add(msgspec.structs.replace(safe("auth"), ts=later), now=later)
    first, second = log.known.questions.values()
    assert answers.explain_closed(log.known, first, later) == (
        "its deadline has passed, so its default applies: retry; trades-2 asks the same"
    )
    assert answers.explain_closed(log.known, second, later) == ""


@pytest.mark.parametrize("outcome", ["done", "cycles", "limit", "stopped"])
def test_an_end_that_needs_no_person_asks_nothing(outcome):
    assert Log(ended(outcome)).known.questions == {}


def test_a_relay_that_waits_is_asked_about_in_its_own_words():
    waits = events.CycleEnded(ts=NOON, cycle=1, verdict="waiting", about="which grammar?")
    [asked] = questions.list_open_questions(Log(waits, safe("waiting", "it waits")).known, NOON)
    assert asked.text == "which grammar?"


@pytest.mark.parametrize(
    ("event", "words", "desired", "is_safe"),
    [
        (safe(), "retry", "running", False),
        (safe(), "STOP", "stopped", True),
        (safe("settings"), "accept", "running", False),
        (safe("waiting"), "Use the second one", "running", False),
        (safe("stalled"), "retry", "running", False),
    ],
)
def test_an_answer_has_its_effect_by_being_recorded(event, words, desired, is_safe):
    log = Log(event)
    log.answer(words)
    assert (log.known.run.desired, log.known.run.is_safe) == (desired, is_safe)
    assert log.states() == ["answered"]


@pytest.mark.parametrize("event", [safe("stalled"), ended("stalled")])
def test_an_end_in_other_words_than_done_can_be_confirmed(event):
    log = Log(event)
    answer = log.answer("done")
    row = build_row(log.known, RowInputs(now=NOON))
    assert (answer.effect, row.state, row.outcome) == ("finish", "done", "done-unverified")
    assert "accepted" in row.reason
    assert "until:" not in row.reason


@pytest.mark.parametrize("event", [safe("disputed"), ended("disputed")])
def test_accepting_a_disputed_end_ends_the_run_as_done_but_unverified(event):
    log = Log(event)
    answer = log.answer("accept")
    run = log.known.run
    assert (answer.effect, run.is_safe, run.is_over, run.ended.why) == (
        "finish",
        False,
        True,
        "claimed",
    )
    row = build_row(log.known, RowInputs(now=NOON))
    assert (row.state, row.outcome) == ("done", "done-unverified")
    assert "`until:` or the review failed" in row.reason
    assert is_new_run(fold_events(log.known, [said("running")]).run, ()), (
        "the next run is another one"
    )


@pytest.mark.parametrize(
    ("event", "takes"),
    [
        (safe("auth"), True),
        (safe("stalled"), True),
        (safe("disputed"), False),
        (safe("no-permission"), False),
        (safe("settings"), False),
        (safe("waiting"), False),
    ],
)
def test_enter_is_an_answer_unless_something_must_be_edited_or_said_first(event, takes):
    [asked] = questions.list_open_questions(Log(event).known, NOON)
    assert answers.accepts_enter(asked) is takes


@pytest.mark.parametrize("event", [safe(), ended("stalled"), safe("disputed")])
def test_a_stop_settles_an_open_question_for_good(event):
    log = Log(event)
    asked = log.known.questions["trades-1"]
    waiting = fold_events(log.known, [said("stopped")])
    assert questions.list_open_questions(waiting, NOON) == [], (
        "also before the writer has folded it"
    )
    log.add(said("stopped"))
    assert log.states() == ["withdrawn"]
    assert answers.apply_defaults(log.known, NOON + 2 * HOUR) == []
    log.add(said("running", minutes=1))
    assert log.states() == ["withdrawn"]
    assert log.answer("stop", question=asked).refused == "another command made it unnecessary"
    assert log.known.run.desired == "running"


def test_a_stop_leaves_a_question_about_a_refused_call_open():
    """Its answer is for the next cycle, whenever that comes."""
    log = Log()
    refused = [RefusedCall("Bash", "ls", {"command": "ls"})]
    log.add(*questions.ask_about_calls(log.known, refused, "l1", QuestionTerms(NOON, 3600.0)))
    log.add(said("stopped"))
    assert log.states() == ["open"]


def test_a_text_is_told_to_the_next_cycle_and_not_to_the_one_behind_it():
    log = Log(events.CycleEnded(ts=NOON, cycle=1, verdict="waiting", about="which?"))
    log.add(safe("waiting"))
    log.answer("the second one")
    [told] = log.known.new_answers
    assert (told.asked, told.text) == ("which?", "the second one")
    assert log.known.run.intervened == told.seq
    log.add(events.CycleEnded(ts=NOON, cycle=2))
    assert log.known.new_answers == []


def test_the_first_answer_counts_and_the_second_is_recorded_as_refused():
    log = Log(safe())
    asked = log.known.questions["trades-1"]
    first = log.answer("stop", question=asked)
    second = log.answer("retry", question=asked)
    assert (first.refused, "it was answered" in second.refused) == ("", True)
    assert log.known.answers["trades-1"].choice == "stop"
    assert log.known.run.desired == "stopped"
    for order in permutations(log.events[-3:]):
        again = fold_events(
            fold_events(Projection("trades"), [*log.events[:-3], *order]), log.events
        )
        assert again == log.known, "neither the order nor a repetition changes what counts"


def test_of_answers_that_wait_in_the_inbox_readers_see_the_first():
    log = Log(safe())
    asked = log.known.questions["trades-1"]
    given = [answers.make_answer(log.known, asked, one, NOON) for one in ("retry", "stop")]
    seen = fold_events(log.known, given)
    assert (seen.answers["trades-1"].choice, seen.run.desired) == ("retry", "running")


def test_an_answer_to_an_unknown_question_is_refused():
    log = Log(safe())
    given = answers.make_answer(log.known, log.known.questions["trades-1"], "retry", NOON)
    other = msgspec.structs.replace(given, question="trades-9")
    assert answers.judge_answer(log.known, other, NOON).refused == "no such question exists"


@pytest.mark.parametrize("words", ["", "maybe", "retry now"])
def test_words_that_are_not_a_choice_are_refused(words):
    log = Log(safe())
    with pytest.raises(AnswerError, match="not one of the choices") as refused:
        log.answer(words)
    assert refused.value.choices == ("retry", "stop")


def test_at_the_deadline_the_default_applies_once_and_the_question_stays_unanswered():
    log = Log(safe())
    late = NOON + HOUR
    assert answers.apply_defaults(log.known, late - timedelta(seconds=1)) == []
    asked = log.known.questions["trades-1"]
    assert questions.find_question_state(log.known, asked, late) == "unanswered"
    late_answer = log.answer("retry", late, question=asked)
    assert "deadline" in late_answer.refused
    [default] = answers.apply_defaults(log.known, late)
    assert (default.choice, default.origin, default.by) == ("stop", "deadline", "")
    log.add(default)
    assert log.known.run.desired == "stopped"
    assert log.states(late) == ["unanswered"]
    assert answers.apply_defaults(log.known, late + HOUR) == []
    assert "deadline" in log.answer("retry", late, question=asked).refused


def test_an_answer_in_time_leaves_nothing_to_the_deadline():
    log = Log(safe())
    log.answer("retry")
    assert answers.apply_defaults(log.known, NOON + HOUR) == []


def test_a_question_without_a_deadline_stays_open():
    log = Log(safe(), seconds=float("inf"))
    [asked] = questions.list_open_questions(log.known, NOON + timedelta(days=900))
    assert asked.deadline is None


def test_another_command_withdraws_the_question():
    log = Log(safe())
    log.add(events.RestartRequested(ts=NOON))
    assert log.states() == ["withdrawn"]
    assert log.answer("stop", question=log.known.questions["trades-1"]).refused
    assert log.known.run.desired == "running"


def test_a_safe_mode_without_a_question_is_asked_about_and_only_once():
    """It occurs in a log of an older Rekindle, or after a deadline and another `run`."""
    log = Log()
    log.events.append(msgspec.structs.replace(safe(), seq=3))
    asked = questions.ask_about_safe_mode(log.known, QuestionTerms(NOON, 60.0))
    assert asked is not None
    log.add(asked)
    assert questions.ask_about_safe_mode(log.known, QuestionTerms(NOON, 60.0)) is None
    assert questions.ask_about_safe_mode(log.known, QuestionTerms(NOON + HOUR, 60.0)) is not None


def test_a_cli_that_ends_by_its_own_count_of_a_budget_can_be_given_more():
    log = Log(spent(4.9), cap=CAP)
    log.add(safe("budget"))
    with pytest.raises(AnswerError, match="above 5"):
        log.answer("raise 4.95")
    log.answer("raise 6")
    assert not log.known.run.is_safe
    assert log.known.run.raised_caps() == {"usd": 6.0}


CAP = Budget(usd=5.0)


def spent(usd):
    return events.SpendRecorded(ts=NOON, launch="l", tokens=10, usd=usd)


def test_a_raised_budget_continues_the_run_and_a_second_raise_counts_from_it():
    log = Log(spent(5.5), cap=CAP)
    log.add(ended("budget", "its budget of $5 is spent"))
    [asked] = questions.list_open_questions(log.known, NOON)
    assert asked.request == {"unit": "usd", "cap": 5.0, "spent": 5.5}
    for words in ("raise", "raise lots", "raise 5", "raise inf", "raise nan"):
        with pytest.raises(AnswerError):
            log.answer(words)
    assert isinstance(
        decide_next_move(log.known.run, [], now=NOON, runtime=RuntimeSettings(), cap=CAP), StopRun
    )
    log.answer("raise $20")
    run = log.known.run
    assert (run.is_over, run.desired, run.run_spending().usd) == (False, "running", 5.5)
    assert not is_new_run(run, []), "it is the same run, and what it spent stays counted"
    assert not isinstance(
        decide_next_move(run, [], now=NOON, runtime=RuntimeSettings(), cap=CAP), StopRun
    )
    log.add(spent(20.0))
    log.add(ended("budget"))
    [again] = questions.list_open_questions(log.known, NOON)
    assert again.request["cap"] == 20.0
    log.add(events.RestartRequested(ts=NOON), events.RunStarted(ts=NOON))
    assert log.known.run.raised_caps() == {}, "a new run has the budget of the manifest"


def call(number=1):
    return RefusedCall("Bash", f"echo {number}", {"command": f"echo {number}"})


def test_refused_calls_are_asked_about_once_each_up_to_a_few():
    log = Log()
    asked = questions.ask_about_calls(
        log.known, [call(1), call(1), call(2)], "launch", QuestionTerms(NOON, 60.0)
    )
    assert [one.request["arguments"]["command"] for one in asked] == ["echo 1", "echo 2"]
    log.add(*asked)
    assert (
        questions.ask_about_calls(log.known, [call(2)], "launch", QuestionTerms(NOON, 60.0)) == []
    )
    many = [call(number) for number in range(10, 30)]
    found = questions.ask_about_calls(log.known, many, "launch", QuestionTerms(NOON, 60.0))
    assert len(found) == QUESTIONS_A_LAUNCH
    assert found[0].number == 3
    long = RefusedCall("Write", "a", {"content": "x" * 100_000})
    [cut] = questions.ask_about_calls(log.known, [long], "launch", QuestionTerms(NOON, 60.0))
    assert len(cut.request["arguments"]["cut"]) < 2_100


@pytest.mark.parametrize("words", ["allow", "deny"])
def test_the_answer_to_a_refused_call_is_told_and_interrupts_nothing(words):
    log = Log()
    log.add(*questions.ask_about_calls(log.known, [call()], "launch", QuestionTerms(NOON, 60.0)))
    before = log.known.run
    log.answer(words, NOON)
    assert log.known.run == before
    [told] = log.known.new_answers
    assert "Bash echo 1" in told.asked
    assert words in told.text.replace("denied", "deny").replace("allowed", "allow")


def test_only_the_newest_questions_are_kept_and_their_numbers_never_repeat():
    log = Log()
    for _ in range(QUESTIONS_KEPT + 5):
        log.add(safe(), events.RestartRequested(ts=NOON))
    kept = prune_projection(log.known)
    assert len(kept.questions) == QUESTIONS_KEPT
    [*_, last] = questions.add_questions(kept, [safe()], QuestionTerms(NOON, 60.0))
    assert last.question == f"trades-{QUESTIONS_KEPT + 6}"


@pytest.mark.parametrize(("kept", "number"), [(0, 2), (1, 2), (7, 8)])
def test_an_id_that_only_the_user_folder_remembers_is_not_given_again(kept, number):
    """A log that was rewritten, and accepted, may have lost the question of an old notification."""
    known, asking = Log(safe()).known, QuestionTerms(NOON, 60.0, last_number=lambda: kept)
    [_, asked] = questions.add_questions(known, [safe()], asking)
    [call] = questions.ask_about_calls(known, [RefusedCall("Bash", "echo 1")], "launch", asking)
    again = questions.ask_about_safe_mode(fold_events(known, [safe_again(known)]), asking)
    assert {asked.number, call.number, again.number} == {number}
    assert asked.question == f"trades-{number}"


def safe_again(known):
    return msgspec.structs.replace(safe(), seq=known.seq + 1)


def test_a_fleet_judges_an_answer_as_the_writer_of_a_folder_does():
    log = Log(safe())
    definition = agent_registry.AgentDefinition(manifest="", pool="p", heartbeat_seconds=1.0)
    kept = agent_registry.RegisteredAgent(
        agent="trades", definition=definition, projection=log.known
    )
    lines = [
        events.render(answers.make_answer(log.known, one, words, NOON)).decode()
        for one in log.known.questions.values()
        for words in ("stop", "retry")
    ]
    assert agent_registry.explain_refused_command(lines) == ""
    after = agent_registry.record_commands(kept, lines)
    assert after.projection.answers["trades-1"].choice == "stop"
    assert after.projection.run.desired == "stopped"


def propose_question(seq, text="Which one?", *options):
    return events.ProposalMade(
        ts=NOON, seq=seq, about="question", text=text, choices=options, by="a"
    )


def test_a_proposed_question_is_asked_once_with_safe_choices():
    """An agent cannot offer an answer that has a meaning for Rekindle, and none blocks it."""
    options = ("Postgres", "ALLOW", "stop", "raise 500", "Text", "", "Postgres", "b" * 99)
    known = fold_events(Projection("a"), [propose_question(1, "Which one?", *options)])
    terms = questions.QuestionTerms(NOON, float("inf"), last_number=lambda: 6)
    [asked] = questions.ask_proposed(known, terms)
    assert asked.question == "a-7"
    assert asked.choices[:1] == ("Postgres",)
    assert asked.choices[2:] == ("TEXT", "skip")
    assert len(asked.choices[1]) <= 60
    assert (asked.about, asked.default) == ("asked", "skip")
    known = fold_events(known, [msgspec.structs.replace(asked, seq=2)])
    assert questions.ask_proposed(known, terms) == []
    assert questions.find_blocking_question(known, NOON) is None
    assert questions.count_asked(known, NOON) == 1


def test_no_more_questions_of_an_agent_are_open_than_the_limit():
    """The rest is asked when there is room."""
    known = fold_events(
        Projection("a"), [propose_question(n, f"{n}?") for n in range(1, ASKED_OPEN + 4)]
    )
    terms = questions.QuestionTerms(NOON, float("inf"))
    asked = questions.ask_proposed(known, terms)
    assert [one.number for one in asked] == list(range(1, ASKED_OPEN + 1))
    known = fold_events(known, [msgspec.structs.replace(one, seq=20 + one.number) for one in asked])
    assert questions.ask_proposed(known, terms) == []
