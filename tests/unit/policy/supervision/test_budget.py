"""The budget of a run, and the words that report it as spent."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rekindle.documents.manifest_keys import Budget
from rekindle.policy.settings.runtime_settings import (
    GUESSED_USD_READ,
    GUESSED_USD_WRITTEN,
    SPENDING_SHARE,
)
from rekindle.policy.supervision.budget import (
    ReachedCap,
    RunSpending,
    describe_budget,
    describe_reached_cap,
    find_reached_cap,
    guess_cost,
    is_cost_reported,
    is_worth_recording,
    raise_caps,
)

RECORDINGS = Path(__file__).parents[3] / "recordings"

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spent", "cap", "words"),
    [
        (RunSpending(usd=1e9, tokens=10**9), None, ""),
        (RunSpending(usd=1e9, tokens=10**9), Budget(), ""),
        (RunSpending(usd=4.99), Budget(usd=5.0), ""),
        (RunSpending(usd=5.0), Budget(usd=5.0), "its budget of $5 is spent (~$5.00)"),
        (RunSpending(usd=7.125), Budget(usd=2.5), "its budget of $2.5 is spent (~$7.12)"),
        (RunSpending(tokens=9_999), Budget(tokens=10_000), ""),
        (
            RunSpending(tokens=12_345),
            Budget(tokens=10_000),
            "its budget of 10,000 tokens is spent (12,345)",
        ),
        (
            RunSpending(tokens=10_000),
            Budget(tokens=10_000),
            "its budget of 10,000 tokens is spent (10,000)",
        ),
        (RunSpending(), Budget(hours=2.1), ""),
        (RunSpending(), Budget(hours=2.0), "its budget of 2 hours is spent"),
        (
            RunSpending(usd=3.0, is_reported=True),
            Budget(usd=2.0, hours=1.0),
            "its budget of $2 is spent ($3.00)",
        ),
    ],
)
def test_the_words(spent, cap, words):
    """Which cap is reached; the run began two hours ago."""
    assert describe_reached_cap(spent, cap, began=NOW - timedelta(hours=2), now=NOW) == words


def test_a_run_that_has_not_begun_has_used_no_hours():
    assert describe_reached_cap(RunSpending(), Budget(hours=1.0), began=None, now=NOW) == ""


def test_a_run_starts_with_nothing_spent():
    assert RunSpending() == RunSpending(seq=0, usd=0.0, tokens=0, unpriced=0, is_reported=False)


@pytest.mark.parametrize(
    ("cap", "expected"),
    [
        (
            Budget(usd=2.0, tokens=10),
            ReachedCap("usd", 2.0, 3.0, "its budget of $2 is spent (~$3.00)"),
        ),
        (Budget(tokens=10), ReachedCap("tokens", 10, 20, "its budget of 10 tokens is spent (20)")),
        (Budget(hours=0.5), ReachedCap("hours", 0.5, 2.0, "its budget of 0.5 hours is spent")),
    ],
)
def test_the_cap_that_is_reached(cap, expected):
    """It has its unit, its amount and the spending."""
    spent = RunSpending(usd=3.0, tokens=20)
    assert find_reached_cap(spent, cap, began=NOW - timedelta(hours=2), now=NOW) == expected


@pytest.mark.parametrize(
    ("cap", "raised", "expected"),
    [
        (None, {"usd": 9.0}, None),
        (Budget(usd=5.0), {}, Budget(usd=5.0)),
        (Budget(usd=5.0), {"usd": 9.5}, Budget(usd=9.5)),
        (Budget(usd=5.0), {"usd": 4.0}, Budget(usd=5.0)),
        (Budget(usd=5.0), {"hours": 9.0, "unheard-of": 1.0}, Budget(usd=5.0)),
        (Budget(tokens=100), {"tokens": 200.7}, Budget(tokens=200)),
        (Budget(hours=1.0), {"hours": 1.5}, Budget(hours=1.5)),
    ],
)
def test_the_caps_that_an_operator_raised(cap, raised, expected):
    """A cap only rises, and none appears that the manifest does not set."""
    assert raise_caps(cap, raised) == expected


@pytest.mark.parametrize(
    ("cap", "words"),
    [
        (Budget(), ""),
        (Budget(usd=2.5), "ends after $2.5"),
        (Budget(tokens=12_000), "ends after 12,000 tokens"),
        (Budget(hours=8.0), "ends after 8 hours"),
        (
            Budget(usd=2.0, tokens=10, hours=1.5),
            "ends after $2 or 10 tokens or 1.5 hours",
        ),
    ],
)
def test_what_ends_the_run_in_words(cap, words):
    assert describe_budget(cap) == words


@pytest.mark.parametrize(
    ("before", "now", "cap", "expected"),
    [
        (RunSpending(usd=1.0), RunSpending(usd=1.0), None, False),
        (RunSpending(), RunSpending(usd=0.01), None, True),
        (RunSpending(usd=100.0), RunSpending(usd=100.01), None, False),
        (RunSpending(usd=5.0), RunSpending(usd=5.02), Budget(usd=1.0), True),
        (RunSpending(), RunSpending(usd=16 * SPENDING_SHARE), Budget(usd=16.0), True),
        (RunSpending(), RunSpending(usd=15 * SPENDING_SHARE), Budget(usd=16.0), False),
        (RunSpending(tokens=1000), RunSpending(tokens=1001), Budget(tokens=1_000_000), False),
        (RunSpending(tokens=1000), RunSpending(tokens=900_000), Budget(tokens=1_000_000), True),
        (RunSpending(tokens=100), RunSpending(tokens=0), Budget(tokens=100), True),
    ],
)
def test_spending_that_is_worth_a_line_of_the_log(before, now, cap, expected):
    """A share of the cap; without one, of all that was spent."""
    assert is_worth_recording(before, now, cap) is expected


@pytest.mark.parametrize("older", [True, False])
def test_an_older_log_does_not_show_an_estimate(older):
    assert is_cost_reported(is_estimated=None, older=older) is older
    assert is_cost_reported(is_estimated=False, older=older) is True
    assert is_cost_reported(is_estimated=True, older=older) is False


@pytest.mark.parametrize(
    ("spent", "is_estimated"),
    [
        (RunSpending(), False),
        (RunSpending(usd=1.0), True),
        (RunSpending(usd=1.0, is_reported=True), False),
    ],
)
def test_a_cost_that_was_not_reported_is_an_estimate(spent, is_estimated):
    assert spent.is_estimated is is_estimated


def test_a_turn_without_a_price_is_guessed():
    assert guess_cost(read=1_000_000, written=0) == GUESSED_USD_READ
    assert guess_cost(read=0, written=2_000_000) == 2 * GUESSED_USD_WRITTEN
    assert guess_cost(read=1_000_000, written=1_000_000) == GUESSED_USD_READ + GUESSED_USD_WRITTEN
