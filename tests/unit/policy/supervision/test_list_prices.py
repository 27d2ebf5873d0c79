"""List prices, and the prices of a manifest."""

import pytest

from rekindle.documents.manifest import ModelPrice
from rekindle.policy.supervision.list_prices import complete_prices, find_price, list_prices

OWN = {
    "mine": ModelPrice(7.0, 8.0),
    "gpt-5-mini": ModelPrice(1.0, 2.0),
    "mine-large": ModelPrice(9.0, 9.0),
}


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("mine", ModelPrice(7.0, 8.0)),
        ("mine-2026", ModelPrice(7.0, 8.0)),
        ("mine-large-2026", ModelPrice(9.0, 9.0)),
        ("mine2", None),
        ("gpt-5-mini", ModelPrice(1.0, 2.0)),
        ("gpt-5.5", ModelPrice(5.0, 30.0)),
        ("gpt-5.5-pro-x", ModelPrice(30.0, 180.0)),
        ("gpt-5.55", None),
        ("unheard-of", None),
    ],
)
def test_the_price_of_a_model(model, price):
    """Its name decides, otherwise the longest matching beginning of it."""
    assert find_price(complete_prices(OWN), model) == price


def test_a_default_replaces_every_list_price():
    own = {"default": ModelPrice(1.0, 2.0), "mine": ModelPrice(3.0, 4.0)}
    assert complete_prices(own) == own
    assert find_price(complete_prices(own), "gpt-5.5") == ModelPrice(1.0, 2.0)
    assert find_price(complete_prices(own), "mine-2") == ModelPrice(3.0, 4.0)


def test_every_list_price_costs_something():
    prices = list_prices()
    assert len(prices) > 40
    assert all(0 < price.input < price.output for price in prices.values())
    assert complete_prices({}) == prices
