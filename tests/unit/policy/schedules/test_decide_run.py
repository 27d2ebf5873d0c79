"""What happens at a due time: a run, or a record of why there is none."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from rekindle.policy.schedules import decide_run as policy
from rekindle.policy.schedules.decide_run import RunFacts, RunRules, find_next_run, is_due
from rekindle.policy.schedules.due_times import DueTimes
from rekindle.policy.schedules.schedule_record import (
    PendingRun,
    ScheduleRecord,
    select_news,
)
from rekindle.thresholds.schedule_limits import SCHEDULE_HISTORY, SCHEDULE_REVISED

pytestmark = pytest.mark.pure

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
RULES = RunRules(DueTimes("trades", interval=DAY))
"""Due at midnight."""
RECORD = ScheduleRecord("1d", MONDAY)
IDLE, BUSY = RunFacts(), RunFacts(is_running=True)
change = msgspec.structs.replace


def decide(record, now, facts=IDLE, **rules):
    assert is_due(change(RULES, **rules), record, now)
    return policy.decide_run(change(RULES, **rules), record, now, facts)


def describe(decision):
    return [(outcome.kind, outcome.count, outcome.reason) for outcome in decision.outcomes]


def test_nothing_is_due_before_the_next_due_time():
    assert not is_due(RULES, RECORD, MONDAY)
    assert not is_due(RULES, RECORD, MONDAY + DAY - MINUTE)
    assert policy.decide_run(RULES, RECORD, MONDAY + MINUTE, IDLE).record == RECORD


def test_a_run_starts_at_its_due_time():
    decision = decide(RECORD, MONDAY + DAY)
    assert decision.start == MONDAY + DAY
    assert decision.record.pending == PendingRun(MONDAY + DAY)
    confirmed = decision.record.confirm_start(MONDAY + DAY)
    assert confirmed.pending is None
    assert [outcome.kind for outcome in confirmed.history] == ["started"]
    assert not is_due(RULES, confirmed, MONDAY + DAY + MINUTE)


def test_a_killed_daemon_starts_the_run_once():
    """After the kill, the log of the agent tells whether the run was started."""
    pending = decide(RECORD, MONDAY + DAY).record
    again = decide(pending, MONDAY + DAY + MINUTE)
    assert again.start == MONDAY + DAY
    started = decide(pending, MONDAY + DAY + MINUTE, RunFacts(is_running=True, has_started=True))
    assert started.start is None
    assert describe(started) == [("started", 1, "")]


def test_several_missed_runs_lead_to_one():
    decision = decide(RECORD, MONDAY + 4 * DAY + 60 * MINUTE)
    assert decision.start == MONDAY + 4 * DAY
    assert describe(decision) == [("missed", 3, policy.NOT_WATCHED)]
    (missed,) = decision.outcomes
    assert (missed.first, missed.last) == (MONDAY + DAY, MONDAY + 3 * DAY)


def test_missed_runs_are_skipped_if_asked():
    decision = decide(RECORD, MONDAY + 4 * DAY + 60 * MINUTE, missed="skip")
    assert decision.start is None
    assert describe(decision) == [("missed", 4, policy.NOT_WATCHED)]
    on_time = decide(RECORD, MONDAY + 4 * DAY + 9 * MINUTE, missed="skip")
    assert on_time.start == MONDAY + 4 * DAY


def test_a_pending_run_that_is_too_late_is_recorded():
    pending = decide(RECORD, MONDAY + DAY, missed="skip").record
    late = decide(pending, MONDAY + DAY + 60 * MINUTE, missed="skip")
    assert describe(late) == [("skipped", 1, policy.TOO_LATE)]
    assert decide(pending, MONDAY + DAY + 60 * MINUTE).start == MONDAY + DAY


def test_an_overlapping_run_is_skipped():
    decision = decide(RECORD, MONDAY + DAY, BUSY)
    assert decision.start is None
    assert describe(decision) == [("skipped", 1, policy.STILL_RUNNING)]


def test_an_overlapping_run_is_queued_if_asked():
    queued = decide(RECORD, MONDAY + DAY, BUSY, overlap="queue")
    assert queued.start is None
    assert not queued.outcomes
    second = decide(queued.record, MONDAY + 2 * DAY, BUSY, overlap="queue")
    assert describe(second) == [("skipped", 1, policy.STILL_QUEUED)]
    ended = decide(second.record, MONDAY + 2 * DAY + MINUTE, IDLE, overlap="queue")
    assert ended.start == MONDAY + DAY


def test_an_obstacle_is_recorded_with_its_reason():
    decision = decide(RECORD, MONDAY + DAY, RunFacts(obstacle="not accepted"))
    assert describe(decision) == [("skipped", 1, "not accepted")]
    pending = change(RECORD, pending=PendingRun(MONDAY))
    dropped = decide(pending, MONDAY + MINUTE, RunFacts(obstacle="not accepted"))
    assert dropped.start is None
    assert describe(dropped) == [("skipped", 1, "not accepted")]


def test_a_clock_that_is_set_back_repeats_nothing():
    started = decide(RECORD, MONDAY + DAY).record.confirm_start(MONDAY + DAY)
    for now in (MONDAY + DAY - MINUTE, MONDAY + DAY, MONDAY + DAY + MINUTE, MONDAY - 30 * DAY):
        assert not is_due(RULES, started, now)


def test_a_wrong_clock_that_is_corrected_does_not_block_the_schedule():
    wrong = MONDAY + 400 * DAY
    record = decide(RECORD, wrong).record.confirm_start(wrong)
    now = MONDAY + 60 * MINUTE
    restored = decide(record, now)
    assert describe(restored) == [("restored", 399, policy.SET_BACK)]
    assert find_next_run(RULES, restored.record, now) == MONDAY + DAY
    tuesday = decide(restored.record, MONDAY + DAY)
    assert tuesday.start == MONDAY + DAY
    # The run that was started by the wrong clock is not repeated.
    assert tuesday.record.ahead == (wrong,)
    end = change(tuesday.record.confirm_start(MONDAY + DAY), handled=wrong - DAY)
    assert not is_due(RULES, end, wrong + MINUTE)
    assert decide(end, wrong + DAY).start == wrong + DAY


def test_a_jump_counts_as_correct_after_many_runs():
    now = MONDAY + 400 * DAY
    record = decide(RECORD, now).record.confirm_start(now)
    for _ in range(SCHEDULE_REVISED):
        now += DAY
        record = decide(record, now).record.confirm_start(now)
    assert record.jump is None
    assert not is_due(RULES, record, MONDAY + 60 * MINUTE)


def test_a_clock_that_starts_in_1970_restores_nothing():
    """The battery of the clock is empty. The correct time follows."""
    weekend = decide(RECORD, MONDAY + 3 * DAY).record.confirm_start(MONDAY + 3 * DAY)
    assert weekend.jump is not None
    assert not is_due(RULES, weekend, datetime(1970, 1, 1, 0, 1, tzinfo=UTC))


def test_repeated_reasons_are_one_entry_and_one_notification():
    record, facts = RECORD, RunFacts(obstacle="not accepted")
    for number in range(1, 4):
        decision = decide(record, MONDAY + number * DAY, facts)
        assert len(select_news(record, decision.outcomes)) == (number == 1)
        record = decision.record
    (outcome,) = record.history
    assert (outcome.count, outcome.first, outcome.last) == (3, MONDAY + DAY, MONDAY + 3 * DAY)


def test_the_history_is_bounded():
    record = RECORD
    for number in range(1, SCHEDULE_HISTORY + 10):
        record = decide(record, MONDAY + number * DAY).record.confirm_start(MONDAY)
    assert len(record.history) == SCHEDULE_HISTORY
    assert all(before.last < after.last for before, after in pairwise(record.history))


def test_the_next_run():
    assert find_next_run(RULES, None, MONDAY + MINUTE) == MONDAY + DAY
    assert find_next_run(RULES, RECORD, MONDAY + MINUTE) == MONDAY + DAY
    pending = change(RECORD, pending=PendingRun(MONDAY))
    assert find_next_run(RULES, pending, MONDAY + MINUTE) == MONDAY + MINUTE
