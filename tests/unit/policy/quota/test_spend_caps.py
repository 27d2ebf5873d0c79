"""Caps per day and month apply to all agents together, and end at midnight."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.manifest_quota import QuotaKeys, SpendCap
from rekindle.policy.quota.ledger_entries import add_spending
from rekindle.policy.quota.spend_caps import describe_caps, find_cap_hold
from rekindle.policy.supervision.budget import RunSpending

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)
DAY = QuotaKeys(per_day=SpendCap(usd=20.0))
MONTH = QuotaKeys(per_month=SpendCap(usd=100.0))


def spend(usd, at=NOW, agent="a", tokens=0):
    return add_spending(AgentLedger("/p", agent), "1", RunSpending(usd=usd, tokens=tokens), at)


def find(keys, *ledgers, now=NOW):
    return find_cap_hold(keys, ledgers, now, "cap of the project")


def test_agents_wait_until_midnight_once_they_have_reached_the_cap_together():
    hold = find(DAY, spend(12.0), spend(8.0, agent="b"))
    assert hold.until == datetime(2026, 3, 11, tzinfo=UTC)
    assert hold.words == "cap of the project for today: $20.00 of $20 spent"


def test_below_the_cap_nothing_waits():
    assert find(DAY, spend(12.0), spend(7.9, agent="b")) is None


def test_the_spending_of_yesterday_does_not_count():
    assert find(DAY, spend(30.0, NOW - timedelta(hours=13))) is None


def test_a_day_begins_at_midnight_in_the_zone_of_the_host():
    zone = ZoneInfo("America/New_York")
    now = datetime(2026, 3, 7, 21, tzinfo=zone)
    hold = find(DAY, spend(20.0, now - timedelta(hours=20)), now=now)
    assert hold.until == datetime(2026, 3, 8, tzinfo=zone)


def test_a_day_with_23_hours_ends_at_midnight():
    zone = ZoneInfo("America/New_York")
    now = datetime(2026, 3, 8, 12, tzinfo=zone)
    hold = find(DAY, spend(20.0, now), now=now)
    assert hold.until == datetime(2026, 3, 9, tzinfo=zone)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (NOW, datetime(2026, 4, 1, tzinfo=UTC)),
        (datetime(2026, 12, 31, 23, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)),
        (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)),
    ],
)
def test_a_cap_of_the_month_ends_with_it(now, until):
    assert find(MONTH, spend(100.0, now.replace(day=1)), now=now).until == until


def test_the_longest_hold_counts():
    keys = QuotaKeys(per_day=SpendCap(usd=1.0), per_month=SpendCap(usd=1.0))
    assert find(keys, spend(1.0)).until == datetime(2026, 4, 1, tzinfo=UTC)


def test_tokens_can_be_capped():
    keys = QuotaKeys(per_day=SpendCap(tokens=1000))
    assert find(keys, spend(0.0, tokens=999)) is None
    hold = find(keys, spend(0.0, tokens=1000))
    assert hold.words == "cap of the project for today: 1,000 of 1,000 tokens used"


def test_the_spending_of_each_cap_is_described():
    keys = QuotaKeys(per_day=SpendCap(usd=20.0), per_month=SpendCap(tokens=5000))
    ledgers = [spend(3.2, tokens=7), spend(9.0, NOW - timedelta(days=1), tokens=10)]
    described = ["$3.20 of $20 today", "17 of 5,000 tokens this month"]
    assert describe_caps(keys, ledgers, NOW) == described
    assert describe_caps(QuotaKeys(), ledgers, NOW) == []
