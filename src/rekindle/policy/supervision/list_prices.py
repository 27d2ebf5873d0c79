"""Find the price of a model: the manifest's, or the vendor's list price.

The list is in `price_table`, which `just prices` generates. It is for CLIs that report tokens but
no cost, and for launches that were killed before their CLI reported the cost.
"""

import re
from collections.abc import Mapping
from datetime import date
from functools import cache

import msgspec

from rekindle.documents.launches.launch_types import WindowUsage
from rekindle.documents.manifest import ModelPrice
from rekindle.policy.supervision import price_table

_VERSION = re.compile(r"-\d{1,2}(?!\d)")
"""A suffix that names another model: `-5` in `claude-opus-4-5`, but not `-20251101` or `-preview`.
"""
_AROUND = re.compile(r"^.*/|\[[^\]]*\]$|[-@](\d{8}|\d{4}-\d{2}-\d{2})$")
"""A provider, a window size and a date around a model's name: `anthropic/claude-opus-5[1m]`."""


class ListPrice(ModelPrice, frozen=True, kw_only=True):
    """A vendor's price for prompts of a certain length, in dollars per million tokens."""

    cache_write_long: float | None = None
    """Price of input written to the cache for an hour."""
    above: int = 0
    """Number of input tokens above which the price applies."""
    since: date = date.min
    """First day on which the price applies."""


class PriceList(msgspec.Struct, frozen=True):
    """The prices that apply to an agent's models."""

    own: Mapping[str, ModelPrice] = {}
    """The manifest's prices, by a model's name, the beginning of one, or `default`."""
    has_list_prices: bool = False
    """Whether list prices apply to the models that the manifest does not name."""

    def find(self, model: str, *, tokens: int, day: date) -> ModelPrice | None:
        """Return the price of a turn with this many input tokens, or None if it is unknown."""
        name = _find_longest(self.own, model) or _find_longest(self.own, _strip_around(model))
        if name or "default" in self.own:
            return self.own[name or "default"]
        return find_list_price(model, tokens=tokens, day=day) if self.has_list_prices else None

    def compute_cost(self, turn: WindowUsage, day: date) -> float | None:
        """Return the cost of a turn in dollars, or None if its model has no price."""
        price = self.find(turn.model, tokens=turn.longest or turn.tokens, day=day)
        if price is None:
            return None
        cached, stored = _either(price.cached, price.input), _either(price.cache_write, price.input)
        long = _either(price.cache_write_long, stored) if isinstance(price, ListPrice) else stored
        new = max(0, turn.tokens - turn.cached - turn.stored - turn.stored_long)
        return (
            new * price.input
            + turn.cached * cached
            + turn.stored * stored
            + turn.stored_long * long
            + turn.written * price.output
        ) / 1_000_000

    def __bool__(self) -> bool:
        return bool(self.own) or self.has_list_prices


def find_list_price(model: str, *, tokens: int = 0, day: date) -> ListPrice | None:
    """Return the list price of a model on a day, for a prompt of this length, or None.

    The price of the longest listed name applies if the rest is a variant, such as `-preview`, but
    not if the rest is the number of another version.
    """
    prices = read_list_prices()
    bare = _strip_around(model.lower())
    name = _find_longest(prices, bare)
    if not name or _VERSION.match(bare.removeprefix(name)):
        return None
    rows = [row for row in prices[name] if row.since <= day]
    newest = max((row.since for row in rows), default=None)
    fitting = [row for row in rows if row.since == newest and (tokens > row.above or not row.above)]
    return max(fitting, key=lambda row: row.above, default=None)


@cache
def read_list_prices() -> Mapping[str, tuple[ListPrice, ...]]:
    """Return the list prices by model name; several if they depend on the date or the length."""
    prices: dict[str, tuple[ListPrice, ...]] = {}
    for line in price_table.ROWS.strip().splitlines():
        names, _, rows = line.partition(" = ")
        parsed = tuple(_parse_row(row.split()) for row in rows.split(";"))
        prices.update(dict.fromkeys(names.split(), parsed))
    return prices


def _parse_row(words: list[str]) -> ListPrice:
    since = next((date.fromisoformat(word[1:]) for word in words if word[0] == "@"), date.min)
    above = next((int(word[1:]) for word in words if word[0] == ">"), 0)
    numbers = [None if word == "-" else float(word) for word in words if word[0] not in "@>"]
    read, written, cached, stored, long = numbers
    return ListPrice(
        read or 0.0,
        written or 0.0,
        cached,
        stored,
        cache_write_long=long,
        above=above,
        since=since,
    )


def _strip_around(model: str) -> str:
    return _AROUND.sub("", _AROUND.sub("", model))


def _find_longest(prices: Mapping[str, object], model: str) -> str:
    """Return the longest name that is the model's name, or its beginning up to a hyphen."""
    if model in prices:
        return model
    return max((name for name in prices if model.startswith(f"{name}-")), key=len, default="")


def _either(price: float | None, otherwise: float) -> float:
    return otherwise if price is None else price
