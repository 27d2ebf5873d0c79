"""What a run may spend: money, tokens, hours. It outlives every supervisor and every restart.

Money is what the CLI reports, else what `prices:` or a list price makes of its tokens. Tokens are
all that was read and written in every turn, whether a cache had it or not.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.manifest import Budget, Price
from rekindle.policy.list_prices import find_price
from rekindle.policy.settings import (
    GUESSED_USD_READ,
    GUESSED_USD_WRITTEN,
    SECONDS_AN_HOUR,
    SPENDING_SHARE,
)

_MILLION = 1_000_000


class Spent(msgspec.Struct, frozen=True):
    """What a run has spent so far."""

    seq: int = 0
    """The place in the log of whoever said so."""
    usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    """Launches whose cost nobody knows: they were killed before their CLI could say."""
    is_reported: bool = False
    """The CLI itself reported the money last; else it was made from tokens and prices."""


class Reached(msgspec.Struct, frozen=True):
    """A cap that a run has reached."""

    unit: str
    """`usd`, `tokens` or `hours`."""
    cap: float
    spent: float
    words: str


def reached(
    spent: Spent, cap: Budget | None, *, began: datetime | None, now: datetime
) -> Reached | None:
    """Return the cap that is reached; None: none is."""
    if cap is None:
        return None
    if cap.usd is not None and spent.usd >= cap.usd:
        words = f"its budget of ${cap.usd:g} is spent (${spent.usd:.2f})"
        return Reached("usd", cap.usd, spent.usd, words)
    if cap.tokens is not None and spent.tokens >= cap.tokens:
        words = f"its budget of {cap.tokens:,} tokens is spent ({spent.tokens:,})"
        return Reached("tokens", cap.tokens, spent.tokens, words)
    hours = (now - began).total_seconds() / SECONDS_AN_HOUR if began else 0.0
    if cap.hours is not None and hours >= cap.hours:
        return Reached("hours", cap.hours, hours, f"its {cap.hours:g} hours are over")
    return None


def exhausted(spent: Spent, cap: Budget | None, *, began: datetime | None, now: datetime) -> str:
    """Which cap is reached, in words; empty: none is."""
    found = reached(spent, cap, began=began, now=now)
    return found.words if found else ""


def raise_caps(cap: Budget | None, raised: Mapping[str, float]) -> Budget | None:
    """Return the budget with the caps that the operator raised for this run."""
    if cap is None or not raised:
        return cap
    caps = {unit: amount for unit, amount in raised.items() if getattr(cap, unit, None)}
    return msgspec.structs.replace(
        cap,
        **{
            unit: max(getattr(cap, unit), int(amount) if unit == "tokens" else amount)
            for unit, amount in caps.items()
        },
    )


def in_words(cap: Budget) -> str:
    """Return what ends the run, for the operator; empty: nothing does."""
    caps = [
        f"${cap.usd:g}" if cap.usd is not None else "",
        f"{cap.tokens:,} tokens" if cap.tokens is not None else "",
        f"{cap.hours:g} hours" if cap.hours is not None else "",
    ]
    told = " or ".join(filter(None, caps))
    return f"ends after {told}" if told else ""


def is_news(before: Spent, now: Spent, cap: Budget | None) -> bool:
    """Whether more was spent than is worth a line of the log: a turn is told in many pieces."""
    money = (before.usd, now.usd, cap.usd if cap else None)
    tokens = (before.tokens, now.tokens, cap.tokens if cap else None)
    return any(
        there != here and abs(here - there) >= SPENDING_SHARE * (most or here)
        for there, here, most in (money, tokens)
    )


def guess(*, read: int, written: int) -> float:
    """What a turn may cost that nobody has priced."""
    return (read * GUESSED_USD_READ + written * GUESSED_USD_WRITTEN) / _MILLION


def price(prices: Mapping[str, Price], model: str, *, read: int, written: int) -> float | None:
    """What a turn costs; cached tokens count as read, so that it is never too little."""
    found = find_price(prices, model)
    if found is None:
        return None
    return (read * found.input + written * found.output) / _MILLION
