"""A run, folded from the log: what is wanted, what is over, what was spent."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec

from rekindle.documents import events
from rekindle.documents.manifest import Budget
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
    WaitUntil,
)
from rekindle.policy.exits.session_choice import (
    ResumeSession,
    StartFresh,
)
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.run_moves import (
    CloseCycle,
    RunState,
    decide_next_move,
    make_desired_event,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def folded(*kinds):
    """The run after these, one after the other."""
    happened = [
        msgspec.structs.replace(one, seq=place, ts=NOW + timedelta(seconds=place))
        for place, one in enumerate(kinds, 1)
    ]
    found = {
        fold_events(Projection(agent="a"), order).run for order in itertools.permutations(happened)
    }
    assert len(found) == 1  # whatever the order in which they arrive
    return found.pop()


def said(desired):
    return events.DesiredSet(ts=NOW, desired=desired)


STARTED = events.RunStarted(ts=NOW)
RESTART = events.RestartRequested(ts=NOW)
SAFE = events.SafeModeEntered(ts=NOW, why="auth", words="log in")


def over(outcome):
    return events.RunEnded(ts=NOW, why=outcome)


def noted(tokens):
    return events.SpendRecorded(ts=NOW, launch="l", tokens=tokens, usd=tokens / 1000)


def move(run, *tried, **how):
    return decide_next_move(run, tried, **{"now": NOW, "runtime": RuntimeSettings()} | how)


def attempt(kind, seq=100):
    how = {"cycle": 1, "session": "one", "resumes": False, "opened": True}
    return LaunchRecord(seq=seq, exit=kind, ended=NOW, **how)


def test_launches_before_a_stop_make_no_later_one_wait():
    """`run` after `stop`: the operator has ended the launches before, and wants one now."""
    crashed = [attempt("interrupted", seq=place) for place in (3, 4, 5)]
    went_on = folded(STARTED, said("running"))
    assert isinstance(move(went_on, *crashed), WaitUntil)
    stopped = msgspec.structs.replace(went_on, stopped=6)
    assert isinstance(move(stopped, *crashed), ResumeSession)
    assert isinstance(move(stopped, *crashed, attempt("crash", seq=7)), ResumeSession)
    again = [attempt("crash", seq=place) for place in (7, 8)]
    assert isinstance(move(stopped, *crashed, *again), WaitUntil)
    assert folded(said("stopped"), said("running"), said("stopped"), said("running")).stopped == 3
    answered = events.QuestionAnswered(ts=NOW, question="a-1", effect="stop")
    assert folded(said("running"), answered).stopped == 2


def test_a_usage_limit_is_waited_for_after_a_stop():
    limited = msgspec.structs.replace(attempt("limit", seq=3), resets_at=NOW.timestamp() + 60)
    run = msgspec.structs.replace(folded(STARTED, said("running")), stopped=6)
    assert isinstance(move(run, limited), WaitUntil)


def test_the_last_word_counts():
    assert RunState().desired == ""
    assert folded(said("running"), said("stopped")).desired == "stopped"
    assert folded(said("stopped"), said("running")).desired == "running"


def test_a_word_comes_after_the_one_before_whatever_the_clock_says():
    run = folded(said("running"))
    word = make_desired_event(run, "stopped", NOW - timedelta(days=9))
    assert word.ts > run.command.ts


def test_safe_mode_is_left_by_a_restart_alone():
    """Neither another `run` nor a stop leaves it."""
    assert folded(STARTED, SAFE).is_safe
    assert folded(STARTED, SAFE, said("stopped"), said("running")).is_safe
    assert not folded(STARTED, SAFE, RESTART).is_safe
    assert folded(STARTED, RESTART, SAFE).is_safe
    assert move(folded(STARTED, said("running"), SAFE)) == EnterSafeMode("auth", "log in")


def test_the_operator_s_word_comes_first_then_safe_mode():
    run = folded(STARTED, SAFE, said("stopped"))
    assert move(run, attempt("clean")).why == "stopped"
    assert move(folded(STARTED, said("running"), SAFE), attempt("clean")) == EnterSafeMode(
        "auth", "log in"
    )


def test_a_finished_run_continues_on_an_operator_s_order():
    """`run` continues it in the same run; a watchdog then keeps it like any other."""
    ended = (STARTED, said("running"), over("budget"))
    assert folded(*ended).is_over
    assert folded(*ended, said("stopped")).is_over
    assert not folded(*ended, said("running")).is_over
    assert not folded(*ended, RESTART).is_over


def test_a_limit_that_was_not_waited_for_does_not_hold_the_next_run():
    """With `limits.wait: false` it stopped, and the operator's `run` resumes it."""
    runtime = RuntimeSettings(limits=LimitSettings(wait=False))
    before = folded(STARTED, said("running"))
    assert move(before, attempt("limit", seq=3), runtime=runtime) == StopRun("limit")
    # At 3 the launch, at 4 its end.
    run = folded(STARTED, said("running"), noted(1), noted(2), over("limit"))
    assert move(run, attempt("limit", seq=3), runtime=runtime) == StopRun("limit")
    run = folded(STARTED, said("running"), noted(1), noted(2), over("limit"), said("running"))
    assert move(run, attempt("limit", seq=3), runtime=runtime) == ResumeSession("one")


def test_spending_is_the_run_s_and_survives_restarts():
    spent = (STARTED, noted(10), noted(30))
    assert folded(*spent).run_spending().tokens == 30
    assert folded(*spent, SAFE, RESTART, said("running")).run_spending().tokens == 30
    assert folded(*spent, STARTED).run_spending().tokens == 0


def test_a_summary_says_all_that_the_run_has_spent_with_it():
    unpriced = events.SpendRecorded(ts=NOW, launch="l", tokens=10, unpriced=2)
    made = {"document": "relay", "how": "headless", "run_usd": 1.0, "run_tokens": 40}
    found = folded(STARTED, unpriced, events.SummaryMade(ts=NOW, **made, unpriced=2))
    spent = found.run_spending()
    assert (spent.usd, spent.tokens, spent.unpriced) == (1.0, 40, 2)


def test_without_money_nothing_is_started():
    run = folded(STARTED, said("running"), noted(30))
    assert move(run, cap=Budget(tokens=31)) == StartFresh(recovery=False)
    assert move(run, cap=Budget(tokens=30)).why == "budget"


def test_what_was_done_with_the_last_money_is_done():
    run = folded(STARTED, said("running"), noted(30))
    assert move(run, attempt("clean"), cap=Budget(tokens=30)) == CloseCycle()
    assert move(run, attempt("crash"), cap=Budget(tokens=30)).why == "budget"
