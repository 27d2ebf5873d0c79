"""Spending is added to a ledger once, by the hour, and old hours are dropped."""

from datetime import UTC, datetime, timedelta

from rekindle.documents.agent_ledger import AgentLedger, HourSpending
from rekindle.policy.quota.ledger_entries import add_spending, measure_cost, sum_spending
from rekindle.policy.supervision.budget import RunSpending, guess_cost
from rekindle.thresholds.quota_limits import LEDGER_DAYS

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)
EMPTY = AgentLedger("/p", "a")


def add(ledger, usd, now=NOW, run="1", tokens=0):
    return add_spending(ledger, run, RunSpending(usd=usd, tokens=tokens), now)


def test_only_the_spending_since_the_last_entry_is_added():
    ledger = add(add(EMPTY, 1.0, tokens=10), 1.5, tokens=30)
    assert [*ledger.hours.values()] == [HourSpending(1.5, 30)]


def test_the_same_total_is_not_added_twice():
    once = add(EMPTY, 1.0)
    assert add(once, 1.0) == once


def test_a_new_run_starts_at_zero():
    ledger = add(add(EMPTY, 5.0), 2.0, run="9")
    assert sum_spending([ledger], NOW).usd == 7.0


def test_spending_counts_in_its_hour():
    ledger = add(add(EMPTY, 1.0, NOW - timedelta(hours=2)), 4.0)
    assert sum_spending([ledger], NOW - timedelta(hours=1)).usd == 3.0
    assert sum_spending([ledger], NOW - timedelta(hours=3)).usd == 4.0


def test_the_spending_of_several_agents_is_added_up():
    ledgers = [add(EMPTY, 1.0, tokens=5), add(AgentLedger("/p", "b"), 2.0, tokens=6)]
    assert sum_spending(ledgers, NOW) == HourSpending(3.0, 11)


def test_old_hours_are_dropped():
    ledger = add(EMPTY, 1.0, NOW - timedelta(days=LEDGER_DAYS, hours=1))
    assert len(add(ledger, 2.0).hours) == 1


def test_a_total_that_shrinks_adds_nothing():
    assert sum_spending([add(add(EMPTY, 3.0), 1.0)], NOW).usd == 3.0


def test_a_total_that_shrinks_and_recovers_is_not_counted_twice():
    ledger = add(add(add(EMPTY, 2.0, tokens=20), 1.0, tokens=10), 2.5, tokens=20)
    assert sum_spending([ledger], NOW) == HourSpending(2.5, 20)


def test_an_entry_from_a_clock_that_was_set_back_hides_nothing():
    ledger = add(add(EMPTY, 10.0), 11.0, NOW - timedelta(hours=30))
    assert sum_spending([ledger], NOW - timedelta(hours=12)).usd == 10.0


def test_the_cost_is_estimated_from_tokens_if_it_is_unknown():
    assert measure_cost(add(EMPTY, 2.0, tokens=10), NOW) == 2.0
    assert measure_cost(add(EMPTY, 0.0, tokens=10), NOW) == guess_cost(read=10, written=0)
