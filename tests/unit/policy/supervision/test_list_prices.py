"""List prices, and the prices of a manifest."""

import re
from datetime import date
from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import WindowUsage
from rekindle.documents.manifest import ModelPrice
from rekindle.policy.supervision import list_prices, price_table
from rekindle.policy.supervision.list_prices import PriceList, find_list_price, read_list_prices

RECORDINGS = Path(__file__).parents[3] / "recordings"
DAY = date(2026, 11, 18)
ROWS = """
big = 10 50 1 12.5 20
big-mini = 1 5 - - -
tall tall-latest = 2 8 0.5 - -; >1000 4 12 1 - -; >5000 6 18 - - -
soon = 1 2 - - -; @2027-01-01 3 4 - - -; @2027-01-01 >1000 5 6 - - -
"""
OWN = {
    "mine": ModelPrice(7.0, 8.0),
    "gpt-5-mini": ModelPrice(1.0, 2.0),
    "mine-large": ModelPrice(9.0, 9.0, cached=0.5),
}


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(price_table, "ROWS", ROWS)
    read_list_prices.cache_clear()
    yield
    read_list_prices.cache_clear()


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("mine", ModelPrice(7.0, 8.0)),
        ("mine-2", ModelPrice(7.0, 8.0)),
        ("mine-large-2026", ModelPrice(9.0, 9.0, cached=0.5)),
        ("mine2", None),
        ("gpt-5-mini", ModelPrice(1.0, 2.0)),
        ("gpt-5-mini-2025-08-07", ModelPrice(1.0, 2.0)),
        ("openai/gpt-5-mini[high]", ModelPrice(1.0, 2.0)),
        ("unheard-of", None),
    ],
)
def test_the_price_of_a_manifest_comes_first(model, price):
    """The longest matching beginning of the name decides."""
    assert PriceList(OWN, has_list_prices=True).find(model, tokens=1, day=DAY) == price
    assert PriceList(OWN).find(model, tokens=1, day=DAY) == price


def test_a_default_replaces_every_list_price():
    own = {"default": ModelPrice(1.0, 2.0), "mine": ModelPrice(3.0, 4.0)}
    prices = PriceList(own, has_list_prices=True)
    assert prices.find("gpt-5.5", tokens=1, day=DAY) == ModelPrice(1.0, 2.0)
    assert prices.find("mine-2", tokens=1, day=DAY) == ModelPrice(3.0, 4.0)


def test_list_prices_are_used_only_if_they_apply():
    assert PriceList().find("gpt-5.5", tokens=1, day=DAY) is None
    assert PriceList(has_list_prices=True).find("gpt-5.5", tokens=1, day=DAY) is not None
    assert not PriceList()
    assert PriceList(OWN)
    assert PriceList(has_list_prices=True)


@pytest.mark.parametrize(
    ("model", "read"),
    [
        ("big", 10.0),
        ("BIG", 10.0),
        ("vendor/big", 10.0),
        ("big[1m]", 10.0),
        ("vendor/big-20261101[1m]", 10.0),
        ("big@20261101", 10.0),
        ("big-2026-11-01", 10.0),
        ("big-preview", 10.0),
        ("big-0613", 10.0),
        ("big-mini", 1.0),
        ("big-mini-20261101", 1.0),
        ("big-5", None),
        ("big-5-preview", None),
        ("big-5.5", None),
        ("bigger", None),
        ("tall-latest", 2.0),
        ("", None),
    ],
)
@pytest.mark.usefixtures("table")
def test_which_names_have_a_list_price(model, read):
    """A variant costs as much as its model, but another version does not."""
    price = find_list_price(model, day=DAY)
    assert (price.input if price else None) == read


@pytest.mark.parametrize(
    ("tokens", "read"), [(0, 2.0), (1000, 2.0), (1001, 4.0), (5000, 4.0), (5001, 6.0)]
)
@pytest.mark.usefixtures("table")
def test_long_prompts_cost_more(tokens, read):
    price = find_list_price("tall", tokens=tokens, day=DAY)
    assert price is not None
    assert price.input == read


@pytest.mark.parametrize(
    ("day", "tokens", "read"),
    [
        (date(2026, 12, 31), 1, 1.0),
        (date(2026, 12, 31), 9999, 1.0),
        (date(2027, 1, 1), 1, 3.0),
        (date(2027, 1, 1), 9999, 5.0),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_price_applies_from_its_day(day, tokens, read):
    price = find_list_price("soon", tokens=tokens, day=day)
    assert price is not None
    assert price.input == read


@pytest.mark.parametrize(
    ("turn", "cost"),
    [
        (WindowUsage(1_000_000, None, "unknown", "big"), 10.0),
        (WindowUsage(0, None, "unknown", "big", 1_000_000), 50.0),
        (WindowUsage(1_000_000, None, "unknown", "big", cached=1_000_000), 1.0),
        (WindowUsage(1_000_000, None, "unknown", "big", stored=1_000_000), 12.5),
        (WindowUsage(1_000_000, None, "unknown", "big", stored_long=1_000_000), 20.0),
        (WindowUsage(1_000_000, None, "unknown", "big", 0, 500_000, 200_000, 100_000), 7.0),
        # Without a price for cached tokens, they cost as much as other input.
        (WindowUsage(1_000_000, None, "unknown", "big-mini", 0, 400_000, 300_000, 300_000), 1.0),
        # A CLI that reports more cached tokens than input must not lower the cost below zero.
        (WindowUsage(0, None, "unknown", "big", cached=1_000_000), 1.0),
        (WindowUsage(1, None, "unknown", "other"), None),
        # The price of a sum is that of its longest request.
        (WindowUsage(1_000_000, None, "unknown", "tall", longest=900), 2.0),
        (WindowUsage(1_000_000, None, "unknown", "tall", longest=1_001), 4.0),
    ],
)
@pytest.mark.usefixtures("table")
def test_the_cost_of_a_turn(turn, cost):
    assert PriceList(has_list_prices=True).compute_cost(turn, DAY) == cost


def test_the_cost_of_a_turn_with_the_price_of_a_manifest():
    prices = PriceList({"default": ModelPrice(10.0, 50.0, cached=0.0, cache_write=2.0)})
    turn = WindowUsage(1_000_000, None, "unknown", "x", 100_000, 500_000, 200_000, 100_000)
    assert prices.compute_cost(turn, DAY) == pytest.approx(2.0 + 0.4 + 0.2 + 5.0)


def test_every_recorded_model_of_a_cli_has_a_list_price():
    """A model of the recordings that has none would make a cap on money useless."""
    text = "".join(path.read_text() for path in RECORDINGS.glob("*/*/*.jsonl"))
    models = set(re.findall(r'"model": "((?:gpt|gemini|claude)-[^"]+)"', text))
    assert len(models) >= 4
    unpriced = [model for model in sorted(models) if not find_list_price(model, day=DAY)]
    assert unpriced == []


def test_a_row_that_is_not_in_force_yet_has_no_price(monkeypatch):
    monkeypatch.setattr(price_table, "ROWS", "new = @2027-01-01 3 4 - - -")
    read_list_prices.cache_clear()
    assert list_prices.find_list_price("new", day=DAY) is None
    read_list_prices.cache_clear()
