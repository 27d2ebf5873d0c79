"""A run, folded from the log: what is wanted, what is over, what was spent."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.policy.exits.restart import (
    EnterSafeMode,
    StopRun,
    WaitUntil,
)
from rekindle.policy.exits.session_choice import (
    ResumeSession,
    StartFresh,
)
from rekindle.policy.progress.idle import IdleWork
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.budget import RunSpending
from rekindle.policy.supervision.raised_caps import RaisedCap
from rekindle.policy.supervision.run_moves import (
    CloseCycle,
    CycleLimit,
    HandOff,
    LogPosition,
    OperatorCommand,
    PendingWait,
    ProgressBounds,
    RefusedCallCount,
    RunState,
    decide_next_move,
    is_done,
    is_new_run,
    make_desired_event,
)
from rekindle.thresholds.sandbox_limits import REFUSED_HOSTS

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


@pytest.mark.parametrize(("seq", "counts"), [(4, False), (5, False), (6, True)])
def test_only_events_after_the_start_of_the_run_count(seq, counts):
    """An event at the position of the start belongs to the run before."""
    run = RunState(
        began=5,
        spent=RunSpending(seq, 1.0, 9),
        refused=RefusedCallCount(seq, 3),
        raised=(RaisedCap("usd", seq, 2.5),),
        ended=LogPosition(seq, "done"),
        safe=LogPosition(seq, "auth"),
        waiting=PendingWait(seq, "crash", NOW),
    )
    assert run.run_spending() == (RunSpending(seq, 1.0, 9) if counts else RunSpending())
    assert run.refused_call_count() == (3 if counts else 0)
    assert run.raised_caps() == ({"usd": 2.5} if counts else {})
    assert run.is_over is counts
    assert is_done(run) is counts
    assert (run.waits(0) is not None) is counts
    assert not run.is_safe  # the end is at the same position
    assert msgspec.structs.replace(run, ended=LogPosition()).is_safe is counts


@pytest.mark.parametrize(
    ("began", "restarted", "ended", "wanted", "since"),
    [
        (0, 0, 0, 0, 0),
        (3, 0, 0, 0, 3),
        (3, 7, 0, 0, 7),
        (3, 2, 6, 5, 3),
        (3, 2, 6, 6, 3),
        (3, 2, 6, 7, 6),
        (3, 9, 6, 7, 9),
    ],
)
def test_since_when_events_affect_the_run(began, restarted, ended, wanted, since):
    """Since its start, a restart, or an end that a later command to run overruled."""
    run = RunState(began=began, restarted=restarted, ended=LogPosition(ended), wanted=wanted)
    assert run.since == since


@pytest.mark.parametrize(
    ("why", "wanted", "is_safe"),
    [("settings", 4, True), ("settings", 5, True), ("settings", 6, False), ("auth", 6, True)],
)
def test_a_later_command_to_run_accepts_changed_settings(why, wanted, is_safe):
    """Only a restart ends safe mode for another reason."""
    assert RunState(began=1, safe=LogPosition(5, why), wanted=wanted).is_safe is is_safe


@pytest.mark.parametrize(
    ("run", "tried", "expected"),
    [
        ({}, [], True),
        ({"began": 1}, [], False),
        ({"began": 1, "ended": LogPosition(1, "done")}, [], False),
        ({"began": 1, "ended": LogPosition(2, "done")}, [], True),
        ({"began": 1, "ended": LogPosition(2, "budget")}, [], False),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 4}, [], False),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 5}, [], True),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 9}, [4], True),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 9}, [5], False),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 9}, [8], False),
        ({"began": 1, "ended": LogPosition(4, "budget"), "restarted": 9}, [9], True),
    ],
)
def test_when_a_command_starts_a_new_run(run, tried, expected):
    """After a finished run, or after a restart of a run that did not continue since its end."""
    launches = [attempt("crash", seq=seq) for seq in tried]
    assert is_new_run(RunState(**run), launches) is expected


def test_the_command_of_the_operator():
    """With its limits, and later than the command before."""
    event = make_desired_event(RunState(), "running", NOW, 3, unbounded=True)
    assert event == events.DesiredSet(ts=NOW, desired="running", cycles=3, unbounded=True)
    run = RunState(command=OperatorCommand(NOW, "running"))
    late = make_desired_event(run, "stopped", NOW)
    assert (late.ts, late.cycles, late.unbounded) == (NOW + timedelta(microseconds=1), None, None)


def test_the_limits_of_the_last_command_count():
    """Those of an earlier command, or of none, change nothing."""

    def limited(cycles, unbounded):
        return events.DesiredSet(ts=NOW, desired="running", cycles=cycles, unbounded=unbounded)

    run = folded(limited(3, unbounded=True), limited(None, unbounded=None))
    assert (run.cycles, run.bounds) == (CycleLimit(1, 3), ProgressBounds(1, lifted=True))
    run = folded(limited(3, unbounded=True), limited(0, unbounded=False))
    assert (run.cycles, run.bounds) == (CycleLimit(2, 0), ProgressBounds(2, lifted=False))
    assert (run.wanted, run.stopped) == (2, 0)
    run = folded(said("running"), said("stopped"))
    assert (run.wanted, run.stopped) == (1, 2)


def answer(effect, **more):
    return events.QuestionAnswered(ts=NOW, question="a-1", effect=effect, **more)


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (answer("note"), {}),
        (answer("stop"), {"desired": "stopped", "stopped": 2}),
        (
            answer("restart", origin="deadline"),
            {"desired": "running", "wanted": 2, "restarted": 2},
        ),
        (answer("continue"), {"desired": "running", "wanted": 2}),
        (
            answer("restart"),
            {"desired": "running", "wanted": 2, "restarted": 2, "intervened": 2},
        ),
        (
            answer("finish", choice="done"),
            {"ended": LogPosition(2, "claimed", "accepted")},
        ),
        (
            answer("finish", choice="yes", by="Ann"),
            {
                "ended": LogPosition(
                    2,
                    "claimed",
                    "accepted by Ann, although `until:` or the review failed",
                )
            },
        ),
        (
            answer("continue", budget={"usd": 5.0, "tokens": 9.0}),
            {
                "desired": "running",
                "wanted": 2,
                "raised": (RaisedCap("tokens", 2, 9.0), RaisedCap("usd", 2, 5.0)),
            },
        ),
    ],
)
def test_the_effect_of_an_answer(event, expected):
    """Each one changes what it says, and nothing else."""
    run = folded(STARTED, event)
    names = ("desired", "wanted", "stopped", "restarted", "intervened", "ended", "raised")
    nothing = {"desired": "", "ended": LogPosition(), "raised": ()}
    for name in names:
        default = nothing.get(name, 0)
        assert getattr(run, name) == expected.get(name, default), name


def test_a_raised_budget_counts_like_an_answer_but_starts_nothing():
    run = folded(STARTED, events.BudgetRaised(ts=NOW, usd=5.0, tokens=9, by="ann"))
    assert run.raised_caps() == {"usd": 5.0, "tokens": 9}
    assert (run.desired, run.wanted, run.restarted) == ("", 0, 0)
    assert folded(events.BudgetRaised(ts=NOW, usd=5.0), STARTED).raised_caps() == {}


@pytest.mark.parametrize(("seq", "moves"), [(2, ResumeSession), (4, EnterSafeMode)])
def test_a_raise_overrules_the_limit_of_the_session_before(seq, moves):
    """The CLI enforces the cap that it was started with."""
    run = folded(STARTED, said("running"), events.BudgetRaised(ts=NOW, usd=5.0))
    assert isinstance(move(run, attempt("budget", seq=seq), cap=Budget(usd=1.0)), moves)
    assert isinstance(move(run, attempt("auth", seq=2), cap=Budget(usd=1.0)), EnterSafeMode)


def test_the_last_raise_of_a_cap_counts():
    """One for each unit."""
    run = folded(
        STARTED,
        answer("continue", budget={"usd": 5.0}),
        answer("continue", budget={"usd": 3.0}),
        answer("continue", budget={"tokens": 7.0}),
    )
    assert run.raised_caps() == {"usd": 3.0, "tokens": 7.0}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (RESTART, (2, 2)),
        (events.RestartRequested(ts=NOW, once=True), (2, 0)),
        (events.PersonAnswered(ts=NOW, text="yes"), (2, 2)),
        (answer("restart"), (2, 2)),
        (answer("restart", origin="deadline"), (2, 0)),
    ],
)
def test_which_restarts_reset_the_stall_ladder(event, expected):
    """All but a restart for one launch, and one by a deadline."""
    run = folded(STARTED, event)
    assert (run.restarted, run.intervened) == expected


def test_the_start_of_the_last_run_counts():
    """With its time and its first cycle."""
    run = folded(events.RunStarted(ts=NOW, cycle=2), events.RunStarted(ts=NOW, cycle=5))
    assert (run.began, run.first, run.began_at) == (2, 5, NOW + timedelta(seconds=2))


def launch_ended(**more):
    return events.LaunchEnded(
        ts=NOW, launch="l", cycle=1, session="s", exit="clean", run_usd=1.5, run_tokens=9, **more
    )


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            events.SpendRecorded(ts=NOW, launch="l", usd=1.5, tokens=9, unpriced=1),
            RunSpending(2, 1.5, 9, 1),
        ),
        (
            events.SummaryMade(
                ts=NOW, document="relay", how="headless", run_usd=1.5, run_tokens=9, usd=0.5
            ),
            RunSpending(2, 1.5, 9, is_reported=True),
        ),
        (
            events.SummaryMade(ts=NOW, document="relay", how="headless", run_usd=1.5, run_tokens=9),
            RunSpending(2, 1.5, 9),
        ),
        (
            launch_ended(unpriced=2, usd=0.0),
            RunSpending(2, 1.5, 9, 2, is_reported=True),
        ),
        (
            launch_ended(),
            RunSpending(2, 1.5, 9),
        ),
    ],
)
def test_the_last_report_of_spending_counts(event, expected):
    """Whichever event has it."""
    assert folded(STARTED, event).run_spending() == expected
    assert folded(STARTED, event, noted(7)).run_spending() == RunSpending(3, 0.007, 7)


def test_a_clean_exit_closes_the_cycle_unless_the_agent_stays():
    """An agent that stays is started again."""
    run = folded(STARTED, said("running"))
    assert move(run, attempt("clean")) == CloseCycle()
    assert not isinstance(move(run, attempt("clean"), stays=True), CloseCycle)


def test_the_operator_can_lift_the_bounds_on_work_without_progress():
    """Then the run is not paused."""
    fruitless = IdleWork(launches=40)
    run = folded(STARTED, said("running"))
    assert move(run, fruitless=fruitless).why == "no-progress"
    lifted = msgspec.structs.replace(run, bounds=ProgressBounds(3, lifted=True))
    assert move(lifted, fruitless=fruitless) == StartFresh(recovery=False)


@pytest.mark.parametrize(("checkpoint", "is_due"), [(0, True), (8, True), (9, False), (10, False)])
def test_a_handoff_is_due_until_its_checkpoint_is_written(checkpoint, is_due):
    """The checkpoint must be later than the end of the launch."""
    last = msgspec.structs.replace(attempt("handoff", seq=8), ended_seq=9)
    found = move(folded(STARTED, said("running")), last, checkpoint=checkpoint)
    assert isinstance(found, HandOff) is is_due


def refused(host):
    return events.HostRefused(ts=NOW, launch="l1", host=host)


def test_refused_hosts_belong_to_the_run_and_are_listed_once():
    run = folded(refused("old:443"), STARTED, refused("a:443"), refused("b:80"), refused("a:443"))
    assert run.list_refused_hosts() == ["b:80", "a:443"]
    assert folded(refused("a:443"), STARTED).list_refused_hosts() == []


def test_only_the_last_refused_hosts_are_listed():
    """An agent chooses the names, so their number is limited."""
    hosts = [f"h{number}:443" for number in range(REFUSED_HOSTS + 5)]
    happened = [
        msgspec.structs.replace(refused(host), seq=seq) for seq, host in enumerate(hosts, 1)
    ]
    run = fold_events(Projection(agent="a"), happened).run
    assert run.list_refused_hosts() == hosts[5:]
