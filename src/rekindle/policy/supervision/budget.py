"""Check a run's spending against its budget: money, tokens and hours.

Spending is carried over between supervisors and restarts. Money is the amount that the CLI reports.
If the CLI reports none, it is computed from the tokens with `prices:` or a list price, and is an
estimate. Tokens include each turn's input and output, cached or not.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from rekindle.documents.manifest_keys import Budget
from rekindle.formats.counts import render_count
from rekindle.policy.settings.runtime_settings import (
    GUESSED_USD_READ,
    GUESSED_USD_WRITTEN,
    SECONDS_AN_HOUR,
    SPENDING_SHARE,
)

_MILLION = 1_000_000


class RunSpending(msgspec.Struct, frozen=True):
    """A run's spending so far."""

    seq: int = 0
    """Log position of the event that reported the spending."""
    usd: float = 0.0
    tokens: int = 0
    unpriced: int = 0
    """Number of launches that were killed before their CLI reported the cost."""
    is_reported: bool = False
    """Whether the CLIs reported the whole amount, rather than Rekindle computing some of it."""

    @property
    def is_estimated(self) -> bool:
        """Return whether Rekindle computed a part of the amount from tokens."""
        return self.usd > 0 and not self.is_reported


class ReachedCap(msgspec.Struct, frozen=True):
    """A cap that a run has reached."""

    unit: str
    """Unit of the cap: `usd`, `tokens` or `hours`."""
    cap: float
    spent: float
    words: str


def find_reached_cap(
    spent: RunSpending, cap: Budget | None, *, began: datetime | None, now: datetime
) -> ReachedCap | None:
    """Return the first cap that the run has reached, or None if it has reached none."""
    if cap is None:
        return None
    if cap.usd is not None and spent.usd >= cap.usd:
        mark = "~" if spent.is_estimated else ""
        words = f"its budget of ${cap.usd:g} is spent ({mark}${spent.usd:.2f})"
        return ReachedCap("usd", cap.usd, spent.usd, words)
    if cap.tokens is not None and spent.tokens >= cap.tokens:
        words = f"its budget of {render_count(cap.tokens, 'token')} is spent ({spent.tokens:,})"
        return ReachedCap("tokens", cap.tokens, spent.tokens, words)
    hours = (now - began).total_seconds() / SECONDS_AN_HOUR if began else 0.0
    if cap.hours is not None and hours >= cap.hours:
        words = f"its budget of {render_count(cap.hours, 'hour')} is spent"
        return ReachedCap("hours", cap.hours, hours, words)
    return None


def describe_reached_cap(
    spent: RunSpending, cap: Budget | None, *, began: datetime | None, now: datetime
) -> str:
    """Describe the cap that the run has reached, or return "" if it has reached none."""
    reached = find_reached_cap(spent, cap, began=began, now=now)
    return reached.words if reached else ""


def raise_caps(cap: Budget | None, raised: Mapping[str, float]) -> Budget | None:
    """Return the budget, including the caps that the operator raised for this run."""
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


def describe_budget(cap: Budget) -> str:
    """Describe the caps to the operator, or return "" if there are none."""
    caps = [
        f"${cap.usd:g}" if cap.usd is not None else "",
        render_count(cap.tokens, "token") if cap.tokens is not None else "",
        render_count(cap.hours, "hour") if cap.hours is not None else "",
    ]
    limits = " or ".join(filter(None, caps))
    return f"ends after {limits}" if limits else ""


def is_worth_recording(
    before: RunSpending, now: RunSpending, cap: Budget | None, share: float = SPENDING_SHARE
) -> bool:
    """Return whether spending grew enough to be logged. One turn is reported in many parts."""
    money = (before.usd, now.usd, cap.usd if cap else None)
    tokens = (before.tokens, now.tokens, cap.tokens if cap else None)
    return any(
        old != new and abs(new - old) >= share * (most or new) for old, new, most in (money, tokens)
    )


def is_cost_reported(*, is_estimated: bool | None, older: bool) -> bool:
    """Return whether an event's whole cost was reported; `older` if it is from an older log."""
    return older if is_estimated is None else not is_estimated


def guess_cost(*, read: int, written: int) -> float:
    """Return the estimated cost of a turn whose price is unknown, in dollars."""
    return (read * GUESSED_USD_READ + written * GUESSED_USD_WRITTEN) / _MILLION
