"""Launches that lead nowhere: paced, notified, and paused in the end, whatever their exit."""

from datetime import timedelta
from itertools import count, pairwise

import pytest

from rekindle.documents import events
from rekindle.documents.events import WorkSigns
from rekindle.documents.launches.launch_types import AssistantText
from rekindle.flows.supervisor_ports import (
    SafeModeReport,
    WaitReport,
)
from rekindle.policy.settings.runtime_settings import (
    PROGRESS_NUMBERED,
    RestartSettings,
    RuntimeSettings,
)
from unit.flows.supervision.test_supervisor import (
    Killed,
    Life,
)

HOUR = 3600.0
WEEK = 7 * 24 * HOUR


TALKS = (300, AssistantText("still at it")) * 500
"""41 hours of work, with a sign of life every five minutes."""


class Hurried(Life):
    """Time jumps to the end of a wait, and the life ends in safe mode."""

    def rest(self, seconds):
        last = self.told[-1] if self.told else None
        if isinstance(last, SafeModeReport):
            raise Killed
        left = (last.until - self.clock()).total_seconds() if isinstance(last, WaitReport) else 0.0
        super().rest(max(seconds, left))


@pytest.fixture
def life(clock):
    return Hurried(clock)


def live(life, play, *, until=WEEK, **how):
    """Play the same launch again and again, and end the supervisor after some time."""
    life.plays = [play] * 2_000
    life.after(until, life.is_killed)
    with pytest.raises(Killed):
        life.run(**how)
    return life.logged(events.LaunchStarted)


def most_within_an_hour(launches):
    return max(
        sum(first.ts <= other.ts < first.ts + timedelta(hours=1) for other in launches)
        for first in launches
    )


ENDLESS = {
    "a crash after healthy_after": ("crash", 700),
    "SIGTERM": ("interrupted", 60),
    "SIGTERM at once": ("interrupted",),
    "an outage": ("network",),
    "a crash at once": ("crash",),
    "a full window after hours": ("context-full", 7_200),
    "a limit that is always just ahead": ("limit",),
    "a hang": ("hang", 650),
}


@pytest.mark.parametrize("play", ENDLESS.values(), ids=ENDLESS)
def test_launches_without_progress_end_in_a_pause(life, play):
    """At most 40 of them, a dozen in any hour, and then safe mode with a reason of its own."""
    launches = live(life, play)
    assert len(launches) <= 40
    assert most_within_an_hour(launches) <= 12
    (safe,) = life.logged(events.SafeModeEntered)
    assert safe.why == "no-progress"
    assert "without progress" in safe.words


def test_cycles_without_end_that_only_append_to_a_file_are_paused(life):
    """`cycles: 0`, done at once every time, with the same file changed in each."""
    life.facts = {"cycles": 0}
    life.signs = lambda head, since: WorkSigns(artefacts=("notes.txt",))
    launches = live(life, ("clean",), until=2 * WEEK)
    assert len(launches) <= 42
    assert most_within_an_hour(launches) <= 14
    assert life.logged(events.SafeModeEntered)[-1].why == "no-progress"


def test_cycles_without_end_that_only_write_numbered_files_are_paused(life):
    """`out-1.txt`, `out-2.txt` and so on: a new file in each cycle, and nothing else."""
    life.facts = {"cycles": 0}
    numbers = count(1)
    life.signs = lambda head, since: WorkSigns(artefacts=(f"out-{next(numbers)}.txt",))
    launches = live(life, ("clean",), until=2 * WEEK)
    assert PROGRESS_NUMBERED < len(launches) <= PROGRESS_NUMBERED + 42
    assert life.logged(events.SafeModeEntered)[-1].why == "no-progress"


def test_progress_is_never_paused(life):
    """The same crashes, with a commit in every launch."""
    life.signs = lambda head, since: WorkSigns(commits=1)
    life.plays = [("crash", 700)] * 100 + [("clean",)]
    assert life.run() == "cycles"
    assert life.logged(events.WaitStarted) == []


def test_a_restart_begins_to_count_again(life):
    live(life, ("interrupted",))
    before = len(life.starts)
    life.restarts()
    live(life, ("interrupted",), by_watchdog=True)
    assert len(life.starts) == 2 * before


def test_the_operator_lifts_the_bounds_and_a_supervisor_of_the_watchdog_keeps_that(life):
    """`--budget none`: never paused, and still no more than one launch an hour."""
    launches = live(life, ("crash", 700), until=WEEK / 2, unbounded=True)
    life.after(WEEK / 2, life.is_killed)
    with pytest.raises(Killed):
        life.run(by_watchdog=True)
    launches = life.logged(events.LaunchStarted)
    assert len(launches) > 100
    assert most_within_an_hour(launches) <= 12
    assert life.logged(events.SafeModeEntered) == []
    launches = live(life, ("crash", 700))
    assert life.logged(events.SafeModeEntered)[-1].why == "no-progress"


def test_an_unknown_failure_is_probed_through_the_night(life):
    """Five failures at once, the operator is notified, then a probe every 15 to 60 minutes."""
    life.plays = [("crash",)] * 12 + [("clean",)]
    assert life.run() == "cycles"
    launches = life.logged(events.LaunchStarted)
    gaps = [(after.ts - before.ts).total_seconds() for before, after in pairwise(launches)]
    assert gaps[:4] == [0, 10, 20, 40]
    assert all(900 <= gap <= 3_600 for gap in gaps[4:])
    assert sum(gaps) > 6 * HOUR
    assert life.notified == ["no progress", "cycles"]
    assert life.logged(events.SafeModeEntered) == []


def test_the_operator_is_notified_before_the_first_probe(life):
    def looks():
        assert life.notified == ["no progress"]
        raise Killed

    life.plays = [("crash",)] * 9
    life.after(100, looks)
    with pytest.raises(Killed):
        life.run()


def test_an_explicit_number_of_crashes_ends_in_safe_mode(life):
    life.runtime = RuntimeSettings(restart=RestartSettings(max_crashes=5))
    launches = live(life, ("crash",), until=HOUR)
    assert len(launches) == 5
    assert life.logged(events.SafeModeEntered)[0].why == "crash"


FAILING = {name: play for name, play in ENDLESS.items() if play[0] != "context-full"}


@pytest.mark.parametrize("play", FAILING.values(), ids=FAILING)
def test_nothing_is_retried_for_more_than_an_hour_without_a_notification(life, play):
    life.plays, told = [play] * 100, []
    life.after(24 * HOUR, life.is_killed)
    life.notified = type("Told", (list,), {"append": lambda _, what: told.append(life.seconds)})()
    with pytest.raises(Killed):
        life.run()
    assert told
    first = life.logged(events.LaunchEnded)[0].seconds
    assert told[0] <= first + HOUR + life.logged(events.LaunchEnded)[-1].seconds


def test_a_probe_is_not_waited_for_where_only_one_try_was_asked_for(life):
    life.plays = [("crash",)] * 5
    assert life.run(once=True) == "crash"
    assert life.seconds < 100


def test_work_without_progress_is_ended_after_its_hours_within_one_launch(life):
    """It works for days and shows nothing for it; the launch is ended and the run pauses."""
    launches = live(life, ("crash", *TALKS))
    assert len(launches) == 1
    (ended,) = life.logged(events.LaunchEnded)
    assert ended.seconds == pytest.approx(12 * HOUR, rel=0.01)
    assert life.logged(events.SafeModeEntered)[0].why == "no-progress"


def test_a_long_launch_that_makes_progress_is_left_alone(life):
    life.signs = lambda head, since: WorkSigns(commits=1)
    life.plays = [("clean", *TALKS)]
    assert life.run() == "cycles"
    assert len(life.starts) == 1


def test_money_bounds_work_only_for_an_account_that_is_billed(life):
    """List price is a bill only if the CLI says that the account is billed per token."""
    for billed, paused in ((None, False), (False, False), (True, True)):
        one = Hurried(life.clock)
        one.spends, one.billed = 15.0, billed
        one.plays = [("crash", 500)] * 3 + [("clean",)]
        one.after(HOUR, one.is_killed)
        if paused:
            with pytest.raises(Killed):
                one.run()
            (safe,) = one.logged(events.SafeModeEntered)
            assert (safe.why, "$30.00" in safe.words) == ("no-progress", True)
        else:
            assert one.run() == "cycles"


def test_a_run_after_a_stop_is_never_spaced_out(life):
    """The operator ended these launches: they say nothing about the agent."""
    for _ in range(12):
        life.plays = [("crash", 60, AssistantText("at it"), life.stops)]
        assert life.run() == "stopped"
    launches = life.logged(events.LaunchStarted)
    assert len(launches) == 12
    assert life.logged(events.WaitStarted) == []
    assert life.notified == []


@pytest.mark.parametrize("play", [("crash", 60), ("interrupted", 60)])
def test_pauses_and_pacing_count_from_the_stop(life, play):
    life.plays = [play] * 3 + [("crash", 60, life.stops)]
    assert life.run() == "stopped"
    before = len(life.logged(events.WaitStarted))
    life.plays = [play, ("clean",)]
    assert life.run() == "cycles"
    assert before > 0
    assert len(life.logged(events.WaitStarted)) == before


def test_work_without_progress_is_bounded_over_stops(life):
    """Otherwise a script of `stop` and `run` would work without progress for ever."""
    for _ in range(4):
        life.plays = [("crash", *TALKS[:100], life.stops)]
        outcome = life.run(once=True)
    assert outcome == "no-progress"
    assert len(life.starts) < 5


def test_one_try_while_paced_says_when_the_next_launch_is_due(life):
    def rest(seconds):
        if life.told[-1].why == "idle":
            raise Killed
        Hurried.rest(life, seconds)

    life.plays, life.rest = [("crash", 200)] * 10, rest
    with pytest.raises(Killed):
        life.run()
    assert life.run(once=True) == "idle"
    due = life.logged(events.WaitStarted)[-1].until
    assert life.outcome.words == (
        f"no progress lately, the next launch is due at {due:%Y-%m-%d %H:%M} UTC;"
        " the last one: crash"
    )
