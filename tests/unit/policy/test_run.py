"""A run, folded from the log: what is wanted, what is over, what was spent."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec

from rekindle.documents import event as events
from rekindle.documents.manifest import Budget
from rekindle.policy.cycle import Fresh, Resume
from rekindle.policy.fold import Projection, fold
from rekindle.policy.restart import Safe, Stop, Wait
from rekindle.policy.run import End, Run, next_move, say
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import Limits, Runtime

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def folded(*kinds):
    """The run after these, one after the other."""
    happened = [
        msgspec.structs.replace(one, seq=place, ts=NOW + timedelta(seconds=place))
        for place, one in enumerate(kinds, 1)
    ]
    found = {fold(Projection(agent="a"), order).run for order in itertools.permutations(happened)}
    assert len(found) == 1  # whatever the order in which they arrive
    return found.pop()


def said(desired):
    return events.DesiredSaid(ts=NOW, desired=desired)


STARTED = events.RunStarted(ts=NOW)
RESTART = events.RestartAsked(ts=NOW)
SAFE = events.SafeModeEntered(ts=NOW, why="auth", words="log in")


def over(outcome):
    return events.RunEnded(ts=NOW, outcome=outcome)


def noted(tokens):
    return events.SpendNoted(ts=NOW, launch="l", tokens=tokens, usd=tokens / 1000)


def move(run, *tried, **how):
    return next_move(run, tried, **{"now": NOW, "runtime": Runtime()} | how)


def attempt(kind, seq=100):
    how = {"cycle": 1, "session": "one", "resumes": False, "opened": True}
    return Attempt(seq=seq, exit=kind, ended=NOW, **how)


def test_launches_before_a_stop_make_no_later_one_wait():
    """`run` after `stop`: the operator has ended the launches before, and wants one now."""
    crashed = [attempt("interrupted", seq=place) for place in (3, 4, 5)]
    went_on = folded(STARTED, said("running"))
    assert isinstance(move(went_on, *crashed), Wait)
    stopped = msgspec.structs.replace(went_on, stopped=6)
    assert isinstance(move(stopped, *crashed), Resume)
    assert isinstance(move(stopped, *crashed, attempt("crash", seq=7)), Resume)
    again = [attempt("crash", seq=place) for place in (7, 8)]
    assert isinstance(move(stopped, *crashed, *again), Wait)
    assert folded(said("stopped"), said("running"), said("stopped"), said("running")).stopped == 3
    answered = events.QuestionAnswered(ts=NOW, question="a-1", effect="stop")
    assert folded(said("running"), answered).stopped == 2


def test_a_usage_limit_is_waited_for_after_a_stop():
    limited = msgspec.structs.replace(attempt("limit", seq=3), resets_at=NOW.timestamp() + 60)
    run = msgspec.structs.replace(folded(STARTED, said("running")), stopped=6)
    assert isinstance(move(run, limited), Wait)


def test_the_last_word_counts():
    assert Run().desired == ""
    assert folded(said("running"), said("stopped")).desired == "stopped"
    assert folded(said("stopped"), said("running")).desired == "running"


def test_a_word_comes_after_the_one_before_whatever_the_clock_says():
    run = folded(said("running"))
    word = say(run, "stopped", NOW - timedelta(days=9))
    assert word.ts > run.said.ts


def test_safe_mode_is_left_by_a_restart_alone():
    """Neither by another `run` nor by a stop."""
    assert folded(STARTED, SAFE).is_safe
    assert folded(STARTED, SAFE, said("stopped"), said("running")).is_safe
    assert not folded(STARTED, SAFE, RESTART).is_safe
    assert folded(STARTED, RESTART, SAFE).is_safe
    assert move(folded(STARTED, said("running"), SAFE)) == Safe("auth", "log in")


def test_the_operator_s_word_comes_first_then_safe_mode():
    run = folded(STARTED, SAFE, said("stopped"))
    assert move(run, attempt("clean")).why == "stopped"
    assert move(folded(STARTED, said("running"), SAFE), attempt("clean")) == Safe("auth", "log in")


def test_what_is_over_goes_on_when_the_operator_says_so():
    """By `run`, in the same run; a watchdog then keeps it like any other."""
    ended = (STARTED, said("running"), over("budget"))
    assert folded(*ended).is_over
    assert folded(*ended, said("stopped")).is_over
    assert not folded(*ended, said("running")).is_over
    assert not folded(*ended, RESTART).is_over


def test_a_limit_that_was_not_waited_for_does_not_hold_the_next_run():
    """`limits.wait: false`: it stopped, the operator says `run`, and it goes on."""
    runtime = Runtime(limits=Limits(wait=False))
    before = folded(STARTED, said("running"))
    assert move(before, attempt("limit", seq=3), runtime=runtime) == Stop("limit")
    # At 3 the launch, at 4 its end.
    run = folded(STARTED, said("running"), noted(1), noted(2), over("limit"))
    assert move(run, attempt("limit", seq=3), runtime=runtime) == Stop("limit")
    run = folded(STARTED, said("running"), noted(1), noted(2), over("limit"), said("running"))
    assert move(run, attempt("limit", seq=3), runtime=runtime) == Resume("one")


def test_spending_is_the_run_s_and_survives_restarts():
    spent = (STARTED, noted(10), noted(30))
    assert folded(*spent).spent_of_run().tokens == 30
    assert folded(*spent, SAFE, RESTART, said("running")).spent_of_run().tokens == 30
    assert folded(*spent, STARTED).spent_of_run().tokens == 0


def test_a_summary_says_all_that_the_run_has_spent_with_it():
    unpriced = events.SpendNoted(ts=NOW, launch="l", tokens=10, unpriced=2)
    made = {"document": "relay", "how": "headless", "run_usd": 1.0, "run_tokens": 40}
    found = folded(STARTED, unpriced, events.SummaryMade(ts=NOW, **made, unpriced=2))
    spent = found.spent_of_run()
    assert (spent.usd, spent.tokens, spent.unpriced) == (1.0, 40, 2)


def test_without_money_nothing_is_started():
    run = folded(STARTED, said("running"), noted(30))
    assert move(run, cap=Budget(tokens=31)) == Fresh(recovery=False)
    assert move(run, cap=Budget(tokens=30)).why == "budget"


def test_what_was_done_with_the_last_money_is_done():
    run = folded(STARTED, said("running"), noted(30))
    assert move(run, attempt("clean"), cap=Budget(tokens=30)) == End()
    assert move(run, attempt("crash"), cap=Budget(tokens=30)).why == "budget"
