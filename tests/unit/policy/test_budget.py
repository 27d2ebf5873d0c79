"""What a run may spend, and the words that say it is spent."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rekindle.documents.manifest import Budget, Price
from rekindle.policy.budget import Spent, exhausted, price
from rekindle.policy.list_prices import complete_prices, find_price, list_prices

RECORDINGS = Path(__file__).parents[2] / "recordings"

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("spent", "cap", "words"),
    [
        (Spent(usd=1e9, tokens=10**9), None, ""),
        (Spent(usd=1e9, tokens=10**9), Budget(), ""),
        (Spent(usd=4.99), Budget(usd=5.0), ""),
        (Spent(usd=5.0), Budget(usd=5.0), "its budget of $5 is spent ($5.00)"),
        (Spent(usd=7.125), Budget(usd=2.5), "its budget of $2.5 is spent ($7.12)"),
        (Spent(tokens=9_999), Budget(tokens=10_000), ""),
        (
            Spent(tokens=12_345),
            Budget(tokens=10_000),
            "its budget of 10,000 tokens is spent (12,345)",
        ),
        (Spent(), Budget(hours=2.1), ""),
        (Spent(), Budget(hours=2.0), "its 2 hours are over"),
        (Spent(usd=3.0), Budget(usd=2.0, hours=1.0), "its budget of $2 is spent ($3.00)"),
    ],
)
def test_the_words(spent, cap, words):
    """Which cap is reached; the run began two hours ago."""
    assert exhausted(spent, cap, began=NOW - timedelta(hours=2), now=NOW) == words


def test_a_run_that_has_not_begun_has_used_no_hours():
    assert exhausted(Spent(), Budget(hours=1.0), began=None, now=NOW) == ""


def test_prices():
    """The model's own, else the default's; unknown without both."""
    prices = {"big": Price(input=10.0, output=50.0)}
    assert price(prices, "big", read=1_000_000, written=100_000) == 15.0
    assert price(prices, "other", read=1, written=1) is None
    assert price({"default": Price(input=1.0, output=0.0)}, "other", read=500_000, written=9) == 0.5


@pytest.mark.parametrize(
    ("model", "read", "written"),
    [
        ("gpt-5.5", 5.0, 30.0),
        ("gpt-5-codex", 1.25, 10.0),
        ("gpt-5.5-2026-04-02", 5.0, 30.0),
        ("gemini-2.5-flash", 0.3, 2.5),
        ("gemini-2.5-flash-lite", 0.1, 0.4),
        ("claude-opus-5-5", 4.0, 20.0),
        ("claude-sonnet-4-5[1m]", 3.0, 15.0),
        ("mine", 7.0, 8.0),
        ("gpt-5-mini", 1.0, 2.0),
    ],
)
def test_list_prices_and_those_of_the_manifest(model, read, written):
    own = {"mine": Price(7.0, 8.0), "gpt-5-mini": Price(1.0, 2.0)}
    assert find_price(complete_prices(own), model) == Price(read, written)


def test_a_default_of_the_manifest_replaces_every_list_price():
    own = {"default": Price(1.0, 2.0)}
    assert find_price(complete_prices(own), "gpt-5.5") == Price(1.0, 2.0)
    assert find_price(complete_prices({}), "unheard-of") is None


def test_every_recorded_model_of_a_cli_has_a_list_price():
    """A model of the recordings that has none would make a cap on money useless."""
    text = "".join(path.read_text() for path in RECORDINGS.glob("*/*/*.jsonl"))
    models = set(re.findall(r'"model": "((?:gpt|gemini|claude)-[^"]+)"', text))
    assert len(models) >= 4
    assert [model for model in sorted(models) if find_price(list_prices(), model) is None] == []
