"""Agents leave the reserve to the person, and take turns on a shared account."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.policy.quota.ledger_entries import add_spending
from rekindle.policy.quota.pacing import (
    find_budget,
    find_last_part_hold,
    find_pace_hold,
    find_reserve_hold,
)
from rekindle.policy.supervision.budget import RunSpending
from rekindle.thresholds.quota_limits import PACE_MEMORY_HOURS, TURN_PERCENT
from simulated_quota import RESERVE, SimulatedAccount

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def window(used, passed=0.5, length=WEEK, name="7 days"):
    """Return a window of which a part of the time has passed."""
    return QuotaWindow(name, used, NOW + length * (1 - passed), int(length.total_seconds() // 60))


def agent(name, usd=0.0, priority="normal", *, asked=NOW, working=False, waits=False):
    ledger = AgentLedger("/p", name, priority, asked, is_working=working, waits=waits)
    return add_spending(ledger, "1", RunSpending(usd=usd), NOW - timedelta(hours=1))


def pace(used, own, *others, **more):
    return find_pace_hold([window(used, **more)], RESERVE, own, others, NOW)


def test_agents_stop_at_the_reserve_until_the_reset():
    full = window(80.0)
    hold = find_reserve_hold([full], 20.0, [], NOW)
    assert hold.until == full.resets_at
    assert hold.words == "7 days 80 % used; the rest is kept in reserve (20 %)"


def test_below_the_reserve_agents_work():
    assert find_reserve_hold([window(79.4)], 20.0, [], NOW) is None


def test_each_working_agent_can_finish_its_turn():
    working = [agent(str(number), working=True) for number in range(8)]
    line = 80.0 - 9 * TURN_PERCENT
    assert find_reserve_hold([window(line)], 20.0, working, NOW)
    assert find_reserve_hold([window(line - 0.1)], 20.0, working, NOW) is None


def test_an_agent_that_died_does_not_lower_the_line():
    gone = [agent("a", working=True, asked=NOW - timedelta(days=1))]
    assert find_reserve_hold([window(79.4)], 20.0, gone, NOW) is None


@pytest.mark.parametrize(
    "unusable",
    [
        QuotaWindow("7 days", 99.0, NOW, 10080),
        QuotaWindow("7 days opus", 99.0, NOW + WEEK, None),
        QuotaWindow("7 days", 99.0, None, 10080),
    ],
)
def test_a_window_that_has_reset_or_limits_one_model_holds_no_agent(unusable):
    assert find_reserve_hold([unusable], 20.0, [], NOW) is None
    assert find_pace_hold([unusable], 20.0, agent("a", 9.0), [agent("b")], NOW) is None


def test_the_window_that_resets_last_counts():
    short = window(90.0, length=timedelta(hours=5), name="5 hours")
    assert find_reserve_hold([window(90.0), short], 20.0, [], NOW).until == window(90.0).resets_at


def test_an_agent_ahead_of_its_share_waits_for_the_line():
    hold = pace(60.0, agent("a", 9.0), agent("b", 1.0))
    assert NOW < hold.until < window(60.0).resets_at
    assert hold.words == "7 days 60 % used; other agents go first"


def test_an_agent_behind_its_share_goes_ahead():
    assert pace(60.0, agent("b", 1.0), agent("a", 9.0)) is None


def test_no_agent_waits_while_the_account_is_behind_the_line():
    assert pace(20.0, agent("a", 9.0), agent("b", 1.0)) is None


def test_a_lone_agent_is_not_slowed_down():
    assert pace(75.0, agent("a", 9.0)) is None
    idle = agent("b", 1.0, asked=NOW - timedelta(hours=PACE_MEMORY_HOURS + 1))
    assert pace(75.0, agent("a", 9.0), idle) is None


def test_a_high_priority_gives_a_larger_share():
    rival = agent("b", 6.0)
    assert pace(50.0, agent("a", 6.0, "low"), rival) is not None
    assert pace(50.0, agent("a", 6.0, "high"), rival) is None


@pytest.mark.parametrize("state", ["waits", "working"])
def test_an_agent_leaves_the_last_free_part_to_one_with_work_that_has_used_less(state):
    line = find_budget(RESERVE) * 0.85 * 0.5225
    needier = agent("b", 1.0, **{state: True})
    assert pace(line, agent("a", 9.0), needier) is not None
    assert pace(line, agent("a", 9.0), agent("b", 1.0)) is None
    assert pace(line, agent("a", 0.5), needier) is None


def test_the_last_part_of_the_week_is_for_agents_that_catch_up():
    late = window(77.0, 0.9)
    ahead, behind = agent("a", 9.0), agent("b", 1.0)
    hold = find_last_part_hold([late], RESERVE, ahead, [behind], NOW)
    assert NOW < hold.until < late.resets_at
    assert hold.is_turn
    assert hold.words == "7 days 77 % used; the rest is for other agents"
    assert find_last_part_hold([late], RESERVE, behind, [ahead], NOW) is None
    assert find_last_part_hold([late], RESERVE, ahead, [], NOW) is None
    assert find_last_part_hold([window(74.0, 0.9)], RESERVE, ahead, [behind], NOW) is None
    assert find_last_part_hold([], RESERVE, ahead, [behind], NOW) is None


def test_half_of_what_is_left_at_the_end_of_the_week_is_for_all():
    ahead, behind = agent("a", 9.0), agent("b", 1.0)
    late = window(77.0, 0.99)
    assert find_last_part_hold([late], RESERVE, ahead, [behind], NOW) is None
    assert find_pace_hold([late], RESERVE, ahead, [behind], NOW) is None
    full = window(78.0, 0.99)
    assert find_last_part_hold([full], RESERVE, ahead, [behind], NOW).until == full.resets_at


def test_the_more_an_agent_has_used_the_more_it_leaves():
    idle = [agent("c", 0.1), agent("d", 0.1)]
    most, less = agent("a", 9.0), agent("b", 5.0)
    assert pace(37.0, most, less, *idle) is not None
    assert pace(37.0, less, most, *idle) is None


def test_an_agent_that_catches_up_in_the_week_ignores_the_line_of_five_hours():
    short = window(70.0, 0.2, timedelta(hours=5), "5 hours")
    behind = add_spending(agent("b"), "1", RunSpending(usd=1.0), NOW)
    others = [agent("a", 9.0)]
    assert find_pace_hold([window(30.0), short], RESERVE, behind, others, NOW) is None


def test_without_spending_no_agent_waits():
    assert pace(60.0, agent("a"), agent("b")) is None


def test_a_reserve_of_everything_leaves_nothing():
    assert find_budget(99.9, working=8) == 0.0


@pytest.fixture(scope="module")
def weeks():
    return {paced: [*SimulatedAccount(56, paced=paced).play(2)] for paced in (True, False)}


def test_eight_agents_keep_the_reserve_and_share_fairly(weeks):
    """A sample of the thousand weeks in tests/torture/test_quota_weeks.py."""
    for week in weeks[True]:
        assert week.hits <= 1
        assert week.taken <= 2.0
        assert min(week.shares) >= 0.8
        assert week.person_refused == 0


def test_without_pacing_the_same_agents_hit_the_limits(weeks):
    assert sum(week.hits for week in weeks[False]) > 2
    assert max(week.taken for week in weeks[False]) > 15.0
    assert min(min(week.shares) for week in weeks[False]) < 0.8
    assert sum(week.person_refused for week in weeks[False]) > 0
