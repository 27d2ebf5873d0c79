"""What a run may spend: money, tokens, hours. It outlives every supervisor and every restart.

Money is what the CLI reports, else what `prices:` makes of its tokens. Tokens are all that was read
and written in every turn, whether a cache had it or not.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.manifest import Budget, Price
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


def exhausted(spent: Spent, cap: Budget | None, *, began: datetime | None, now: datetime) -> str:
    """Which cap is reached, in words; empty: none is."""
    if cap is None:
        return ""
    if cap.usd is not None and spent.usd >= cap.usd:
        return f"its budget of ${cap.usd:g} is spent (${spent.usd:.2f})"
    if cap.tokens is not None and spent.tokens >= cap.tokens:
        return f"its budget of {cap.tokens:,} tokens is spent ({spent.tokens:,})"
    hours = (now - began).total_seconds() / SECONDS_AN_HOUR if began else 0.0
    if cap.hours is not None and hours >= cap.hours:
        return f"its {cap.hours:g} hours are over"
    return ""


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
    found = prices.get(model) or prices.get("default")
    if found is None:
        return None
    return (read * found.input + written * found.output) / _MILLION
