"""An agent's ledger keeps its keys."""

from datetime import UTC, datetime

import msgspec

from rekindle.documents.agent_ledger import AgentLedger, HourSpending


def test_a_stored_ledger_is_read_unchanged():
    asked = datetime(2026, 3, 1, tzinfo=UTC)
    ledger = AgentLedger("/p", "a", "high", asked, hours={492_000: HourSpending(0.5, 1000)})
    stored = msgspec.json.encode(ledger)
    assert msgspec.json.decode(stored, type=AgentLedger) == ledger
