"""Add an agent's spending to its ledger, and sum ledgers over a time."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from rekindle.documents.agent_ledger import AgentLedger, HourSpending
from rekindle.policy.settings.runtime_settings import SECONDS_AN_HOUR
from rekindle.policy.supervision.budget import RunSpending, guess_cost
from rekindle.thresholds.quota_limits import LEDGER_DAYS


def add_spending(ledger: AgentLedger, run: int, spent: RunSpending, now: datetime) -> AgentLedger:
    """Return the ledger with what the run spent since the last entry.

    `run` is the log position of the run's start. The totals in the ledger prevent that spending
    counts twice after a crash.
    """
    is_same = run == ledger.run
    usd = max(0.0, spent.usd - (ledger.run_usd if is_same else 0.0))
    tokens = max(0, spent.tokens - (ledger.run_tokens if is_same else 0))
    hour = _find_hour(now)
    hours = dict(ledger.hours)
    if usd or tokens:
        if hour not in hours:
            oldest = _find_hour(now - timedelta(days=LEDGER_DAYS))
            hours = {at: entry for at, entry in hours.items() if at > oldest}
        before = hours.get(hour, HourSpending())
        hours[hour] = HourSpending(before.usd + usd, before.tokens + tokens)
    return msgspec.structs.replace(
        ledger, run=run, run_usd=spent.usd, run_tokens=spent.tokens, hours=hours
    )


def sum_spending(ledgers: Iterable[AgentLedger], since: datetime) -> HourSpending:
    """Return what the agents spent since a time, in whole hours."""
    first, usd, tokens = _find_hour(since), 0.0, 0
    for ledger in ledgers:
        for at, entry in reversed(ledger.hours.items()):
            if at < first:
                break
            usd, tokens = usd + entry.usd, tokens + entry.tokens
    return HourSpending(usd, tokens)


def measure_cost(ledger: AgentLedger, since: datetime) -> float:
    """Return what an agent spent since a time in dollars, estimated from tokens if needed."""
    spent = sum_spending([ledger], since)
    return spent.usd or guess_cost(read=spent.tokens, written=0)


def _find_hour(at: datetime) -> int:
    return int(at.timestamp() // SECONDS_AN_HOUR)
