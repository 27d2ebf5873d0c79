"""Add an agent's spending to its ledger, and sum ledgers over a time."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from rekindle.documents.agent_ledger import AgentLedger, HourSpending
from rekindle.policy.settings.runtime_settings import SECONDS_AN_HOUR
from rekindle.policy.supervision.budget import RunSpending, guess_cost
from rekindle.thresholds.quota_limits import LEDGER_DAYS


def add_spending(ledger: AgentLedger, run: str, spent: RunSpending, now: datetime) -> AgentLedger:
    """Return the ledger with what the run spent since the last entry.

    `run` names the run. With the totals in the ledger, nothing counts twice after a crash, so they
    never decrease during a run.
    """
    before_usd, before_tokens = (
        (ledger.run_usd, ledger.run_tokens) if run == ledger.run else (0.0, 0)
    )
    run_usd, run_tokens = max(before_usd, spent.usd), max(before_tokens, spent.tokens)
    usd, tokens = run_usd - before_usd, run_tokens - before_tokens
    hour = _find_hour(now)
    hours = dict(ledger.hours)
    if usd or tokens:
        if hour not in hours:
            oldest = _find_hour(now - timedelta(days=LEDGER_DAYS))
            hours = {at: entry for at, entry in hours.items() if at > oldest}
        before = hours.get(hour, HourSpending())
        hours[hour] = HourSpending(before.usd + usd, before.tokens + tokens)
    return msgspec.structs.replace(
        ledger, run=run, run_usd=run_usd, run_tokens=run_tokens, hours=hours
    )


def sum_spending(ledgers: Iterable[AgentLedger], since: datetime) -> HourSpending:
    """Return what the agents spent since a time, in whole hours."""
    first = _find_hour(since)
    # The hours are not in order if the clock was set back.
    entries = [entry for ledger in ledgers for at, entry in ledger.hours.items() if at >= first]
    return HourSpending(sum(each.usd for each in entries), sum(each.tokens for each in entries))


def measure_cost(ledger: AgentLedger, since: datetime) -> float:
    """Return what an agent spent since a time in dollars, estimated from tokens if needed."""
    spent = sum_spending([ledger], since)
    return spent.usd or guess_cost(read=spent.tokens, written=0)


def _find_hour(at: datetime) -> int:
    return int(at.timestamp() // SECONDS_AN_HOUR)
