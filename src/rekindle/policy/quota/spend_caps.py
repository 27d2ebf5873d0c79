"""Apply caps on what several agents spend together in a day and in a month."""

from collections.abc import Sequence
from datetime import datetime

from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.manifest_quota import QuotaKeys, SpendCap
from rekindle.formats.counts import render_count
from rekindle.policy.quota.ledger_entries import sum_spending
from rekindle.policy.quota.pacing import QuotaHold


def find_cap_hold(
    keys: QuotaKeys, ledgers: Sequence[AgentLedger], now: datetime, whose: str
) -> QuotaHold | None:
    """Return the hold of a cap that agents have reached together, or None.

    `now` is in the operator's time zone, in which days and months begin at midnight.
    """
    day, month = _find_begins(now)
    years, months = divmod(month.month, 12)
    next_month = month.replace(year=month.year + years, month=months + 1)
    # A day may have 23 or 25 hours, so the next one begins at a date, not after a duration.
    next_day = datetime.fromordinal(day.toordinal() + 1).replace(tzinfo=now.tzinfo)
    holds = [
        _check_cap(keys.per_day, ledgers, day, next_day, f"{whose} for today"),
        _check_cap(keys.per_month, ledgers, month, next_month, f"{whose} for this month"),
    ]
    return max((hold for hold in holds if hold), key=lambda each: each.until, default=None)


def describe_caps(keys: QuotaKeys, ledgers: Sequence[AgentLedger], now: datetime) -> list[str]:
    """Return how much of each cap agents have spent together, such as `$3.20 of $20 today`.

    `now` is in the operator's time zone.
    """
    lines = []
    spans = zip((keys.per_day, keys.per_month), _find_begins(now), strict=True)
    for (cap, since), when in zip(spans, ("today", "this month"), strict=True):
        spent = sum_spending(ledgers, since)
        if cap and cap.usd is not None:
            lines.append(f"${spent.usd:.2f} of ${cap.usd:g} {when}")
        if cap and cap.tokens is not None:
            lines.append(f"{spent.tokens:,} of {render_count(cap.tokens, 'token')} {when}")
    return lines


def _find_begins(now: datetime) -> tuple[datetime, datetime]:
    """Return when the day and the month began."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return day, day.replace(day=1)


def _check_cap(
    cap: SpendCap | None,
    ledgers: Sequence[AgentLedger],
    since: datetime,
    until: datetime,
    whose: str,
) -> QuotaHold | None:
    if cap is None:
        return None
    spent = sum_spending(ledgers, since)
    if cap.usd is not None and spent.usd >= cap.usd:
        return QuotaHold(until, f"{whose}: ${spent.usd:.2f} of ${cap.usd:g} spent")
    if cap.tokens is not None and spent.tokens >= cap.tokens:
        used = f"{spent.tokens:,} of {render_count(cap.tokens, 'token')} used"
        return QuotaHold(until, f"{whose}: {used}")
    return None
