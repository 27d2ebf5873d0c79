"""When it is started again: at once, after a pause, when a limit has passed, or not at all."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.formats.validation import Duration
from rekindle.policy.exits.restart import (
    LOST_EXIT,
    EnterSafeMode,
    StopRun,
    WaitUntil,
    decide_restart,
)
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    LimitSettings,
    RestartSettings,
    RuntimeSettings,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
NEVER = RuntimeSettings(restart=RestartSettings(max_crashes=10**6))
"""Crashes are paused after, and never too many."""


def row(*kinds, seconds=1.0, ended=NOW, resets_at=None):
    how = {"ended": ended, "seconds": seconds, "resets_at": resets_at, "opened": True}
    return [
        LaunchRecord(cycle=1, session="one", resumes=False, seq=place, exit=kind, **how)
        for place, kind in enumerate(kinds, 1)
    ]


def pause(tried, now=NOW, runtime=NEVER):
    found = decide_restart(tried, now=now, runtime=runtime)
    return (found.until - now).total_seconds() if isinstance(found, WaitUntil) else found


@pytest.mark.parametrize("kind", ["crash", "hang", "interrupted"])
def test_pauses_double_up_to_the_longest(kind):
    """The first costs no time, then 10 s, 20 s, 40 s, and never more than 300 s."""
    found = [pause(row(*[kind] * times)) for times in range(1, 10)]
    assert found == [None, 10, 20, 40, 80, 160, 300, 300, 300]


@pytest.mark.parametrize("kind", ["overload", "network"])
def test_an_outage_is_paused_for_from_the_first(kind):
    """It is still there a moment later; as long as it takes, and without counting."""
    found = [pause(row(*[kind] * times), runtime=RuntimeSettings()) for times in (1, 2, 3, 9, 99)]
    assert found == [10, 20, 40, 300, 300]


def test_killed_supervisors_are_paused_for_in_the_end():
    """As many kills as a run may have crashes cost no time: they are not the agent's fault."""
    found = [pause(row(*[LOST_EXIT] * times), runtime=RuntimeSettings()) for times in range(1, 9)]
    assert found == [None] * 5 + [10, 20, 40]


def test_a_lost_launch_neither_adds_to_a_row_nor_ends_it():
    assert pause(row("crash", LOST_EXIT, "crash")) == 10
    assert pause(row("crash", "crash", LOST_EXIT)) is None


def test_running_well_for_a_while_resets_the_count():
    """The launch that ran well counts as the first."""
    tried = [*row("crash", "crash", "crash"), *row("crash", seconds=600)]
    assert pause(tried) is None
    assert pause([*tried, *row("crash")]) == 10
    assert pause([*row("crash", "crash", "crash"), *row("crash", seconds=599)]) == 40


def test_running_well_for_a_while_forgives_crashes():
    runtime = RuntimeSettings(restart=RestartSettings(max_crashes=3, cooldown=Duration(0)))
    assert decide_restart(
        row("crash", "crash", "crash"), now=NOW, runtime=runtime
    ) == EnterSafeMode("crash")
    healthy = [*row("crash", "crash"), *row("crash", seconds=700)]
    assert decide_restart(healthy, now=NOW, runtime=runtime) is None


def test_a_clock_that_was_set_back_does_not_make_a_pause_longer():
    """Ended tomorrow, as it seems: the pause is counted from now."""
    later = NOW + timedelta(days=1)
    for at_once in ("crash", "interrupted", "resume-failed", "context-full", LOST_EXIT):
        assert pause(row(at_once, ended=later)) is None
    assert pause(row("crash", "crash", ended=later)) == 10
    assert pause(row("limit", ended=later)) == 900


def test_a_known_limit_is_waited_out_to_the_second():
    reset = NOW + timedelta(hours=3)
    tried = row("limit", resets_at=int(reset.timestamp()))
    assert decide_restart(tried, now=NOW, runtime=RuntimeSettings()) == WaitUntil(reset, "limit", 1)
    just_before = reset - timedelta(seconds=1)
    assert isinstance(decide_restart(tried, now=just_before, runtime=RuntimeSettings()), WaitUntil)
    assert decide_restart(tried, now=reset, runtime=RuntimeSettings()) is None


def test_an_unknown_limit_is_probed_more_and_more_seldom():
    found = [pause(row(*["limit"] * times)) for times in (1, 2, 3, 4, 9)]
    assert found == [900, 1800, 3600, 3600, 3600]


def test_a_reset_in_the_past_is_believed_once():
    """Refused again, what is told is not relied on."""
    past = int(NOW.timestamp()) - 60
    assert pause(row("limit", resets_at=past)) is None
    assert pause(row("limit", "limit", resets_at=past)) == 1800


def test_stops_for_the_reserve_of_a_quota_are_not_refusals():
    """The supervisor knows the reset, and waits only a little if it stops many launches."""
    past, later = (int((NOW + timedelta(hours=hours)).timestamp()) for hours in (-1, 3))
    held = [
        msgspec.structs.replace(launch, is_held=True)
        for launch in row(*["limit"] * 9, resets_at=past)
    ]
    assert [pause(held[:times]) for times in (1, 2, 3, 9)] == [None, 10, 20, 300]
    assert pause([*held[:2], msgspec.structs.replace(held[2], resets_at=later)]) == 3 * 3600
    assert pause([*held, *row("limit")]) == 900


def test_a_limit_need_not_be_waited_for():
    runtime = RuntimeSettings(limits=LimitSettings(wait=False))
    assert decide_restart(row("limit"), now=NOW, runtime=runtime) == StopRun("limit")


@pytest.mark.parametrize("kind", ["auth", "billing", "budget"])
def test_what_only_a_person_can_fix(kind):
    assert decide_restart(row(kind), now=NOW, runtime=RuntimeSettings()) == EnterSafeMode(kind)


@pytest.mark.parametrize("kind", ["limit", "overload", "network", "interrupted", LOST_EXIT])
def test_what_comes_from_outside_never_ends_in_safe_mode(kind):
    for times in (5, 50, 500):
        assert not isinstance(pause(row(*[kind] * times), runtime=RuntimeSettings()), EnterSafeMode)


def test_a_window_that_fills_up_again_needs_a_person():
    """The fresh one is full at once: the work does not fit. What lies between does not hide it."""
    full = "context-full"
    assert decide_restart(row(full), now=NOW, runtime=RuntimeSettings()) is None
    for between in ((), ("crash",), ("overload", LOST_EXIT), ("limit",)):
        tried = row(full, *between, full)
        assert decide_restart(tried, now=NOW, runtime=RuntimeSettings()) == EnterSafeMode(full)


def test_windows_that_fill_up_after_hours_of_work_are_ordinary():
    """Working well for a while resets the count, as for crashes."""
    hours = row("context-full", "context-full", "context-full", seconds=7200)
    assert decide_restart(hours, now=NOW, runtime=RuntimeSettings()) is None
    assert decide_restart(
        [*hours, *row("context-full")], now=NOW, runtime=RuntimeSettings()
    ) == EnterSafeMode("context-full")


def test_a_person_before_the_agent_has_ended_it():
    """`mode: stay`: what comes next is theirs to say."""
    assert decide_restart(
        row("clean"), now=NOW, runtime=RuntimeSettings(), stays=True
    ) == EnterSafeMode("clean")
    assert decide_restart(row("clean"), now=NOW, runtime=RuntimeSettings()) == StopRun("done")


def test_a_limit_that_is_always_about_to_end_is_retried_after_doubling_pauses():
    """The first time, the reported second is believed."""
    soon = int(NOW.timestamp()) + 1
    found = [pause(row(*["limit"] * times, resets_at=soon)) for times in (1, 2, 3, 4)]
    assert found == [1, 10, 20, 40]
