"""The generated table of list prices, compared with a second source."""

import json
from datetime import date
from pathlib import Path

import pytest

from rekindle.policy.supervision import price_table
from rekindle.policy.supervision.list_prices import find_list_price, read_list_prices

SECOND = json.loads(Path(__file__).with_name("litellm_prices.json").read_text())
DAY = date.fromisoformat(price_table.DATE)
DIFFERENT = {"mistral-large-4", "mistral-large-4-0", "mistral-medium"}
"""Models whose prices the two sources disagree about. Look them up before you add one."""


def compare(model):
    """Return the prices of both sources that differ by more than one percent."""
    price = find_list_price(model, day=DAY)
    ours = (price.input, price.output, price.cached, price.cache_write)
    return [
        (first, second)
        for first, second in zip(ours, SECOND["models"][model], strict=True)
        if first is not None and second is not None and first != pytest.approx(second, rel=0.01)
    ]


def test_both_sources_name_the_same_prices():
    """`just prices` stores the second source, so that CI does not need to download it."""
    assert {model for model in SECOND["models"] if compare(model)} == DIFFERENT


@pytest.mark.parametrize("family", ["claude-", "gpt-", "gemini-", "kimi-"])
def test_most_models_are_in_both_sources(family):
    names = {price: name for name, price in read_list_prices().items() if name.startswith(family)}
    compared = [name for name in SECOND["models"] if name.startswith(family)]
    assert len(compared) >= len(names) / 2


def test_every_row_costs_something():
    prices = read_list_prices()
    assert len(prices) > 100
    for rows in prices.values():
        assert all(0 < row.input < row.output for row in rows)
        assert all((row.cached or 0) < row.input for row in rows)
        assert rows[0].above == 0


def test_the_table_names_its_source():
    assert price_table.SOURCE.startswith("genai-prices ")
    assert date(2026, 11, 18) <= DAY
