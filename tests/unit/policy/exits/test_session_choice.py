"""The next step of a cycle, from its attempts."""

import itertools
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.formats.validation import parse_duration
from rekindle.policy.exits import session_choice
from rekindle.policy.exits.restart import (
    LOST_EXIT,
    EnterSafeMode,
    StopRun,
    WaitUntil,
)
from rekindle.policy.exits.session_choice import (
    ResumeSession,
    StartFresh,
)
from rekindle.policy.exits.stop_reasons import EXIT_KINDS
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    RestartSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.run_moves import (
    CloseCycle,
    RunState,
    decide_next_move,
)

SINCE = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
NOW = SINCE + timedelta(minutes=5)
BEFORE_RUN = 1_000
"""The length of the log when this run began."""
CRASHES = ("crash", "hang", "resume-failed")
PERSON = ("auth", "billing", "misconfigured", "budget", "no-permission")
OUTSIDE = ("overload", "network")
KINDS = EXIT_KINDS


def attempt(exit_kind, *, session="one", resumes=False, opened=False, earlier=False):
    return LaunchRecord(
        cycle=1,
        session=session,
        resumes=resumes,
        seq=1 if earlier else BEFORE_RUN + 1,
        exit=exit_kind,
        ended=SINCE + timedelta(minutes=-1 if earlier else 1),
        opened=opened,
    )


def in_order(tried):
    """Each with a place of its own in the log, on its side of the beginning of this run."""
    return [
        msgspec.structs.replace(one, seq=one.seq + place)
        for place, one in enumerate(sorted(tried, key=lambda one: one.seq))
    ]


def after(*tried, now=NOW, **limits):
    runtime = RuntimeSettings(
        restart=RestartSettings(**{"cooldown": parse_duration("0s")} | limits)
    )
    return decide_next_move(RunState(began=BEFORE_RUN), in_order(tried), now=now, runtime=runtime)


def expected(kind, *, resumes, opened, earlier):  # noqa: PLR0911 - one for each row
    """The table, said once more in other words."""
    if kind == "clean":
        return CloseCycle()
    if kind in PERSON and not earlier:
        return EnterSafeMode(kind)
    if kind == "limit" and not earlier:
        until = SINCE + timedelta(minutes=1, seconds=LIMIT_PROBE_SECONDS)
        return WaitUntil(until, kind, BEFORE_RUN + 1)
    if kind == "handoff":
        return StartFresh(recovery=False, why="")
    if kind == "context-full":
        return StartFresh(recovery=True, why="")
    if kind == "resume-failed" and resumes:
        return StartFresh(recovery=True, why="resuming it failed")
    # After one attempt there is a session to go on with if it opened.
    return ResumeSession("one") if opened else StartFresh(recovery=resumes)


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("resumes", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_table_of_one_attempt(kind, resumes, opened, earlier):
    """Every way to end, fresh or resumed, opened or not, in this run or in an earlier one."""
    how = {"resumes": resumes, "opened": opened, "earlier": earlier}
    assert after(attempt(kind, **how)) == expected(kind, **how)


def test_a_cycle_opens_with_a_fresh_session_and_no_notice():
    """Nothing was tried, so nothing was interrupted."""
    assert after() == StartFresh(recovery=False)


@pytest.mark.parametrize("kind", ["crash", "hang"])
def test_resuming_a_session_that_does_not_open_is_tried_exactly_twice(kind):
    """After one that failed it is tried again, after two a fresh session takes over."""
    first = attempt("crash", opened=True)
    failed = attempt(kind, resumes=True)
    assert after(first) == ResumeSession("one")
    assert after(first, failed) == ResumeSession("one")
    assert after(first, failed, failed) == StartFresh(recovery=True, why="resuming it failed")


@pytest.mark.parametrize("max_crashes", [2, 3, None])
def test_a_session_that_the_cli_refuses_to_resume_is_replaced_at_once(max_crashes):
    """The session is gone for good, and that is not a crash."""
    first = attempt("crash", opened=True)
    failed = attempt("resume-failed", resumes=True)
    fresh = StartFresh(recovery=True, why="resuming it failed")
    assert after(first, failed, max_crashes=max_crashes, cooldown=parse_duration("60s")) == fresh
    crash = attempt("crash", session="two", opened=True)
    assert after(first, failed, crash, max_crashes=2) == EnterSafeMode("crash")
    assert after(first, failed, crash, max_crashes=3) == ResumeSession("two")


def test_a_fresh_session_that_cannot_be_resumed_counts_as_a_crash():
    """A CLI that answers so to a new session is broken, and must not be started for ever."""
    odd = attempt("resume-failed")
    assert after(odd, odd, max_crashes=2) == EnterSafeMode("crash")


def test_pauses_after_crashes_are_not_cut_short_by_failed_resumes():
    """Crash, failed resume, fresh session, and again: the pauses double as without the resumes."""
    one, two = (attempt("crash", session=name, opened=True) for name in ("one", "two"))
    failed = attempt("resume-failed", resumes=True)
    limits = {"cooldown": parse_duration("60s"), "now": SINCE + timedelta(minutes=1)}
    found, plain = after(one, failed, two, **limits), after(one, two, **limits)
    assert isinstance(found, WaitUntil)
    assert found.until == plain.until


def test_a_failed_resume_counts_over_runs():
    """A run that continues does not begin to count again: the session is as lost as before."""
    first = attempt("crash", opened=True, earlier=True)
    failed = attempt("resume-failed", resumes=True, earlier=True)
    assert after(first, failed) == StartFresh(recovery=True, why="resuming it failed")


def test_a_resumed_session_that_opened_and_crashed_is_resumed_again():
    """The resume succeeded, so the crash is not a failed resume, however often it happens."""
    first = attempt("crash", opened=True)
    again = attempt("crash", resumes=True, opened=True)
    for times in range(1, 4):
        assert after(first, *[again] * times, max_crashes=99) == ResumeSession("one")
    unopened = attempt("crash", resumes=True)
    assert after(first, unopened, again, unopened, max_crashes=99) == ResumeSession("one")
    assert after(first, unopened, again, unopened, unopened, max_crashes=99) == StartFresh(
        recovery=True, why="resuming it failed"
    )


def test_a_fresh_session_that_took_over_is_resumed_by_its_own_id():
    """Failures of the previous session do not count against it."""
    tried = (
        attempt("crash", opened=True),
        attempt("resume-failed", resumes=True),
        attempt("crash", session="two", opened=True),
    )
    assert after(*tried) == ResumeSession("two")


def test_a_lost_resume_neither_counts_nor_clears_the_count():
    """The progress of a launch without a supervisor is unknown."""
    first = attempt("crash", opened=True)
    failed = attempt("crash", resumes=True)
    lost = attempt(LOST_EXIT, resumes=True)
    assert after(first, failed, lost) == ResumeSession("one")
    assert after(first, failed, lost, failed) == StartFresh(recovery=True, why="resuming it failed")


def test_a_window_that_is_full_twice_in_a_row_ends_the_run():
    """A fresh session gets one chance; one that fills up as well would do so for ever."""
    full = attempt("context-full", opened=True)
    other = attempt("context-full", session="two", opened=True)
    assert after(full) == StartFresh(recovery=True, why="")
    assert after(full, other) == EnterSafeMode("context-full")
    assert after(full, attempt("crash", session="two", opened=True)) == ResumeSession("two")


@pytest.mark.parametrize("kind", PERSON)
def test_what_stopped_an_earlier_run_does_not_hold_this_one(kind):
    """A person has typed `run` since: the session resumes."""
    stopped = attempt(kind, opened=True, earlier=True)
    assert after(stopped) == ResumeSession("one")
    assert after(stopped, attempt(kind, resumes=True, opened=True)) == EnterSafeMode(kind)


def test_crashes_are_counted_up_to_the_limit():
    """The last one that is allowed ends the run, and not the one before it."""
    crash = attempt("crash", opened=True)
    assert after(*[crash] * 2, max_crashes=3) == ResumeSession("one")
    assert after(*[crash] * 3, max_crashes=3) == EnterSafeMode("crash")
    assert after(crash, max_crashes=1) == EnterSafeMode("crash")


def test_crashes_before_the_window_or_of_an_earlier_run_are_forgiven():
    """Only crashes within the window and since the start of this run count."""
    crash = attempt("crash", opened=True)
    old = msgspec.structs.replace(crash, ended=NOW - timedelta(seconds=901))
    assert after(old, old, crash, max_crashes=3) == ResumeSession("one")
    on_the_edge = msgspec.structs.replace(crash, ended=NOW - timedelta(seconds=900))
    assert after(on_the_edge, on_the_edge, crash, max_crashes=3) == EnterSafeMode("crash")
    earlier = attempt("crash", opened=True, earlier=True)
    assert after(*[earlier] * 9, crash, max_crashes=3) == ResumeSession("one")


@pytest.mark.parametrize("window", ["none", "9999999d"])
def test_a_window_without_end_counts_every_crash(window):
    """Written as `none` in the manifest, or longer than any calendar."""
    crash = attempt("crash", opened=True)
    assert after(crash, max_crashes=2, window=parse_duration(window)) == ResumeSession("one")
    assert after(crash, crash, max_crashes=2, window=parse_duration(window)) == EnterSafeMode(
        "crash"
    )


@pytest.mark.parametrize("kind", PERSON)
def test_a_clock_that_was_set_back_does_not_undo_a_stop(kind):
    """The place in the log decides what belongs to this run, not the time of day."""
    stopped = msgspec.structs.replace(attempt(kind, opened=True), ended=SINCE - timedelta(hours=1))
    assert after(stopped, now=SINCE - timedelta(hours=1)) == EnterSafeMode(kind)


def test_a_clock_that_was_set_back_does_not_hide_crashes():
    """Otherwise an agent that crashes at once would be started without end."""
    crash = msgspec.structs.replace(attempt("crash", opened=True), ended=SINCE - timedelta(hours=1))
    assert after(crash, crash, now=SINCE - timedelta(hours=1), max_crashes=2) == EnterSafeMode(
        "crash"
    )


def attempts():
    return st.builds(
        attempt,
        st.sampled_from(KINDS),
        session=st.sampled_from(["one", "two"]),
        resumes=st.booleans(),
        opened=st.booleans(),
        earlier=st.booleans(),
    )


@given(
    st.lists(attempts(), max_size=12),
    st.lists(
        st.tuples(st.sampled_from([*CRASHES, "context-full"]), st.booleans()),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 6),
    st.integers(-60, 60),
)
def test_from_any_history_launches_that_only_fail_come_to_an_end(tried, ends, most, seconds):
    """Whatever was tried before and however the clock runs, no agent is started for ever."""
    tried = in_order(tried)
    now = NOW
    runtime = RuntimeSettings(restart=RestartSettings(max_crashes=most))
    futures = itertools.cycle(ends)
    for number in range(4 * most + 8):
        step = decide_next_move(RunState(began=BEFORE_RUN), tried, now=now, runtime=runtime)
        if isinstance(step, StopRun | EnterSafeMode):
            return
        if isinstance(step, WaitUntil):
            assert step.until - now <= timedelta(seconds=MAX_LIMIT_PROBE_SECONDS)
            step = session_choice.choose_session(tried)
        kind, opened = next(futures)
        now += timedelta(seconds=seconds / 10)
        resumes = isinstance(step, ResumeSession)
        tried.append(
            LaunchRecord(
                cycle=1,
                session=step.session if isinstance(step, ResumeSession) else f"new-{number}",
                resumes=resumes,
                seq=2 * BEFORE_RUN + number,
                exit=kind,
                ended=now,
                opened=opened,
            )
        )
    pytest.fail(f"still starting after {number} launches: {step}")
