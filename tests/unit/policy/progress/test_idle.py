"""Work without progress: what counts, what is paced, what pauses."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.events import (
    CycleEnded,
    WorkSigns,
)
from rekindle.policy.exits.session_choice import StartFresh
from rekindle.policy.progress import idle
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    ProgressSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.run_moves import (
    HandOff,
    RunState,
    decide_next_move,
)

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def launch(seq, kind="crash", signs=None, **more):
    ended = NOW + timedelta(minutes=seq)
    how = {"seconds": 600.0, "ended": ended, "ended_seq": seq + 1, "exit": kind} | more
    return LaunchRecord(1, "one", resumes=False, seq=seq, signs=signs, **how)


def measured(*launches, cycles=(), began=1, intervened=0, stopped=0):
    known = {one.cycle: one for one in cycles}
    return idle.sum_idle_launches(
        launches, known, began=began, intervened=intervened, stopped=stopped
    )


def test_launches_are_counted_since_the_last_progress():
    found = measured(launch(2), launch(4, signs=WorkSigns(commits=1)), launch(6), launch(8))
    assert (found.launches, found.seconds) == (2, 1200.0)
    assert found.failing == NOW + timedelta(minutes=6)


def test_a_cycle_that_moved_forward_counts_for_its_launches():
    cycle = CycleEnded(ts=NOW, seq=5, cycle=1, signs=WorkSigns(asks_else=True))
    assert measured(launch(2), launch(6), cycles=[cycle]).launches == 1
    assert measured(launch(2), launch(3), cycles=[cycle]).launches == 0
    still = CycleEnded(ts=NOW, seq=5, cycle=1, signs=WorkSigns())
    assert measured(launch(2), launch(3), cycles=[still]).launches == 2


def test_the_operator_s_restart_begins_to_count_again():
    assert measured(launch(2), launch(4), launch(6), intervened=5).launches == 1
    assert measured(launch(2), launch(4), launch(6), began=5).launches == 1


def test_the_operator_s_stop_begins_to_count_launches_again():
    """Hours and money count from the last progress: a stop makes none."""
    found = measured(launch(2), launch(4), launch(6), stopped=5)
    assert (found.launches, found.seconds) == (1, 1800.0)
    assert found.failing == NOW + timedelta(minutes=6)
    assert measured(launch(2), stopped=5).failing is None


def test_the_bounds_name_pacing_and_pauses():
    assert idle.describe_bounds(ProgressSettings()) == (
        "without progress, each launch after the 10th waits 15 to 60 minutes, and Rekindle pauses"
        " the agent after 40 launches or 12 hours of work (or $20, if it is billed per token)"
    )
    assert idle.describe_bounds(ProgressSettings(paced_after=1, max_launches=1), lifted=True) == (
        "without progress, each launch after the 1st waits 15 to 60 minutes, and Rekindle never"
        " pauses the agent (`--budget none`)"
    )


def test_what_still_runs_is_not_counted():
    assert measured(launch(2), launch(4, kind="")).launches == 1


def test_money_is_counted_since_the_last_progress():
    spent = [
        launch(2, run_usd=5.0, billed=True),
        launch(4, run_usd=9.0, signs=WorkSigns(commits=1)),
        launch(6, run_usd=12.0),
        launch(8, run_usd=16.5),
    ]
    found = measured(*spent)
    assert (found.usd, found.billed) == (7.5, True)
    assert measured(*spent, intervened=7).usd == 4.5
    assert measured(*spent, launch(12, run_usd=1.0), began=10).usd == 1.0


def test_a_good_end_ends_the_failures():
    assert measured(launch(2), launch(4, "clean")).failing is None
    assert measured(launch(2), launch(4, "handoff")).failing is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (idle.IdleWork(launches=39, seconds=43_199.0, usd=999.0), ""),
        (idle.IdleWork(launches=40), "40 launches in a row without progress"),
        (idle.IdleWork(seconds=43_200.0), "12 hours of work without progress"),
        (idle.IdleWork(usd=20.0, billed=True), "$20.00 was spent without progress"),
        (idle.IdleWork(usd=19.99, billed=True), ""),
    ],
)
def test_the_bounds_that_pause(found, words):
    assert idle.find_reached_bound(found, ProgressSettings()) == words
    pause = idle.decide_pause(found, ProgressSettings())
    assert (pause.why if pause else "") == ("no-progress" if words else "")


def test_later_launches_are_spaced_out():
    def wait(times, now=NOW):
        last = launch(0, ended=NOW)
        found = idle.decide_pace(idle.IdleWork(launches=times, last=last), ProgressSettings(), now)
        return (found.until - now).total_seconds() if found else 0

    assert [wait(times) for times in (0, 9, 10, 11, 12, 39)] == [0, 0, 900, 1800, 3600, 3600]
    assert wait(10, NOW + timedelta(seconds=900)) == 0
    assert wait(10, NOW - timedelta(days=1)) == 900  # a clock that was set back


def test_a_launch_after_a_handoff_is_spaced_out_once_its_checkpoint_is_written():
    handed = launch(8, "handoff", ended=NOW)
    found = idle.IdleWork(launches=10, last=handed)

    def move(*, launches=10, checkpoint, **how):
        fruitless = msgspec.structs.replace(found, launches=launches)
        return decide_next_move(
            RunState(began=1),
            [handed],
            now=NOW,
            runtime=RuntimeSettings(),
            checkpoint=checkpoint,
            fruitless=fruitless,
            **how,
        )

    assert isinstance(move(checkpoint=0), HandOff)
    wait = move(checkpoint=10)
    assert (wait.why, wait.until) == ("idle", NOW + timedelta(minutes=15))
    assert isinstance(move(checkpoint=10, launches=9), StartFresh)
    assert isinstance(move(checkpoint=10, paces_handoffs=False), StartFresh)


def test_failures_are_announced_before_they_last_an_hour():
    last = launch(0, ended=NOW, words="what is this?")
    found = idle.IdleWork(launches=3, failing=NOW, last=last)
    assert idle.render_idle_notice(found, NOW + timedelta(minutes=44)) == ""
    assert "what is this?" in idle.render_idle_notice(found, NOW + timedelta(minutes=45))
    probe = idle.WaitUntil(NOW + timedelta(minutes=15), "crash", 1, probe=True)
    assert "2026-04-09 12:15 UTC" in idle.render_idle_notice(found, NOW, probe)
    assert idle.render_idle_notice(idle.IdleWork(launches=3, last=last), NOW, probe) == ""
