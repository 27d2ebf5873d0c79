"""Work without progress: what counts, what is paced, what pauses."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from rekindle.documents.events import (
    CycleEnded,
    WorkSigns,
)
from rekindle.policy.exits.session_choice import StartFresh
from rekindle.policy.progress import idle, work_progress
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


def test_launches_without_a_login_are_not_counted():
    """They are paced already, and a person may repair the login only after days."""
    found = measured(launch(2), launch(4, "auth"), launch(6, "auth"))
    assert (found.launches, found.seconds) == (1, 1800.0)


@pytest.mark.parametrize("launches", [20, 60])
def test_only_what_came_after_the_last_progress_is_compared(monkeypatch, launches):
    """Otherwise, each look at a busy agent costs more the longer it has worked."""
    compared = []

    def compare(signs, before=()):
        compared.append(signs)
        return work_progress.find_progress(signs, before)

    monkeypatch.setattr(idle, "find_progress", compare)
    works = [
        launch(2 * n, signs=WorkSigns(artefacts=("a" * n + ".py",))) for n in range(1, launches)
    ]
    assert measured(*works, launch(200), launch(202)).launches == 2
    assert len(compared) == 3


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


def test_failures_are_announced_before_they_last_an_hour():
    last = launch(0, ended=NOW, words="what is this?")
    found = idle.IdleWork(launches=3, failing=NOW, last=last)
    assert idle.render_idle_notice(found, NOW + timedelta(minutes=44)) == ""
    assert "what is this?" in idle.render_idle_notice(found, NOW + timedelta(minutes=45))
    probe = idle.WaitUntil(NOW + timedelta(minutes=15), "crash", 1, probe=True)
    assert "2026-04-09 12:15 UTC" in idle.render_idle_notice(found, NOW, probe)
    assert idle.render_idle_notice(idle.IdleWork(launches=3, last=last), NOW, probe) == ""


FULL = "40 launches in a row without progress"
LIFT = "`rekindle run --budget none` lifts this limit"


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (None, f"{FULL}; {LIFT}"),
        (launch(0), f"{FULL}; {LIFT}"),
        (launch(0, words="exit 1"), f"{FULL}; the last one: exit 1; {LIFT}"),
    ],
)
def test_a_pause_says_what_happened_last(last, words):
    """And how to lift the limit."""
    pause = idle.decide_pause(idle.IdleWork(launches=40, last=last), ProgressSettings())
    assert (pause.why, pause.words) == ("no-progress", words)
    assert idle.decide_pause(idle.IdleWork(launches=39, last=last), ProgressSettings()) is None


@pytest.mark.parametrize(
    ("seconds", "usd", "words"),
    [
        (3_599.0, 0.99, ""),
        (3_600.0, 0.99, "2 hours of work without progress"),
        (3_599.0, 1.0, "$2.00 was spent without progress"),
        (3_600.0, 1.0, "$2.00 was spent without progress"),
    ],
)
def test_the_current_launch_counts_towards_the_bounds(seconds, usd, words):
    """Its duration and its cost so far are added to those of the launches before it."""
    before = idle.IdleWork(launches=1, seconds=3_600.0, usd=1.0, billed=True)
    bounds = ProgressSettings(max_launches=3, max_hours=2, max_usd=2)
    assert idle.find_reached_bound(before, bounds, seconds=seconds, usd=usd) == words


def test_one_launch_and_one_hour_are_counted_in_the_singular():
    """As every count."""
    bounds = ProgressSettings(max_launches=1, max_hours=1)
    found = idle.find_reached_bound(idle.IdleWork(launches=1), bounds)
    assert found == "1 launch in a row without progress"
    found = idle.find_reached_bound(idle.IdleWork(seconds=3_600.0), bounds)
    assert found == "1 hour of work without progress"


def test_a_wait_for_progress():
    """It belongs to the last launch, and is a probe."""
    last = launch(7, ended=NOW)
    wait = idle.decide_pace(idle.IdleWork(launches=10, last=last), ProgressSettings(), NOW)
    assert wait == idle.WaitUntil(NOW + timedelta(minutes=15), "idle", 7, probe=True)
    unknown = idle.IdleWork(launches=10, last=launch(7, ended=None))
    assert idle.decide_pace(unknown, ProgressSettings(), NOW) == wait
    assert idle.decide_pace(idle.IdleWork(launches=10), ProgressSettings(), NOW) is None


def test_a_login_that_fails_for_an_hour_is_announced_without_a_number():
    """Its launches are not counted, so the notification says since when it has failed."""
    found = measured(launch(2, "auth", words="log in"), launch(40, "auth", words="log in"))
    assert idle.render_idle_notice(found, NOW + timedelta(minutes=62)) == (
        "all launches have failed since 2026-04-09 12:02 UTC, the last one: log in; "
        "the next try is now"
    )


NOTICE = "3 launches without progress, the last one: "


@pytest.mark.parametrize(
    ("found", "minutes", "wait", "notice"),
    [
        ({}, 44, None, ""),
        ({}, 45, None, f"{NOTICE}exit 1; the next try is now"),
        ({"words": ""}, 45, None, f"{NOTICE}crash; the next try is now"),
        ({}, 0, ("crash", 44, False), ""),
        (
            *({}, 0, ("crash", 45, False)),
            f"{NOTICE}exit 1; the next try is at 2026-04-09 12:45 UTC",
        ),
        (
            *({}, 0, ("crash", 1, True)),
            f"{NOTICE}exit 1; the next try is at 2026-04-09 12:01 UTC",
        ),
        ({}, 90, ("limit", 90, True), ""),
        ({}, 90, ("limit", 90, False), ""),
    ],
)
def test_when_failures_are_announced(found, minutes, wait, notice):
    """A probe at once, other retries before they last an hour, and a usage limit not at all."""
    last = launch(0, ended=NOW, **{"words": "exit 1"} | found)
    work = idle.IdleWork(launches=3, failing=NOW, last=last)
    planned = (
        idle.WaitUntil(NOW + timedelta(minutes=wait[1]), wait[0], 1, probe=wait[2])
        if wait
        else None
    )
    now = NOW + timedelta(minutes=minutes)
    assert idle.render_idle_notice(work, now, planned) == notice
    nothing = msgspec.structs.replace(work, last=None)
    assert idle.render_idle_notice(nothing, now, planned) == ""


@pytest.mark.parametrize(
    ("paced", "ordinal"),
    [
        *((1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (10, "10th"), (11, "11th")),
        *((12, "12th"), (13, "13th"), (14, "14th"), (20, "20th"), (21, "21st"), (22, "22nd")),
        *((23, "23rd"), (101, "101st"), (111, "111th"), (112, "112th"), (113, "113th")),
    ],
)
def test_the_launch_after_which_others_wait(paced, ordinal):
    """With its English ending."""
    text = idle.describe_bounds(ProgressSettings(paced_after=paced, max_launches=200))
    assert text.startswith(f"without progress, each launch after the {ordinal} waits")


def test_when_the_next_launch_is_due():
    """With the end of the last one, if it is known."""
    wait = idle.WaitUntil(NOW, "idle", 1, probe=True)
    due = "no progress lately, the next launch is due at 2026-04-09 12:00 UTC"
    assert idle.describe_next_launch(wait, "") == due
    assert idle.describe_next_launch(wait, "exit 1") == f"{due}; the last one: exit 1"


def test_progress_inside_a_launch_keeps_only_the_time_after_it():
    """The launch itself is not counted, and its cost is the new base."""
    found = measured(
        launch(2, run_usd=1.0),
        launch(4, run_usd=3.0, fruitless=90.0),
        launch(6, run_usd=3.5),
    )
    assert (found.launches, found.seconds, found.usd) == (1, 690.0, 0.5)
    assert measured(launch(4, fruitless=90.0)) == idle.IdleWork(seconds=90.0)


@pytest.mark.parametrize(
    ("billed", "expected"),
    [([None], False), ([True, None], True), ([True, False], False), ([False, True], True)],
)
def test_the_last_known_billing_counts(billed, expected):
    """A launch that does not report it changes nothing."""
    launches = [launch(2 + 2 * place, billed=each) for place, each in enumerate(billed)]
    assert measured(*launches).billed is expected


def test_launches_are_sorted_by_their_end():
    """A launch that ended before another one began may have a later position."""
    cycle = CycleEnded(ts=NOW, seq=7, cycle=1, signs=WorkSigns(commits=1))
    assert measured(launch(6, ended_seq=9), cycles=[cycle]).launches == 1
    assert measured(launch(6, ended_seq=0), cycles=[cycle]).launches == 0
    assert measured(launch(5), launch(5, ended_seq=2), intervened=4).launches == 2
    assert measured(launch(5), intervened=5).launches == 0


def test_the_signs_of_each_launch_are_kept():
    """Only those with artefacts, from launches and not from cycles."""
    first, second = WorkSigns(artefacts=("a",)), WorkSigns(artefacts=("b",))
    cycle = CycleEnded(ts=NOW, seq=5, cycle=1, signs=WorkSigns(artefacts=("c",)))
    found = measured(
        launch(2, signs=first),
        launch(6, signs=second),
        launch(8, signs=WorkSigns()),
        cycles=[cycle],
    )
    assert found.signs == (first, second)
