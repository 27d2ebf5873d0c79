"""Which relays of the log the audit trail lacks."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.commits.audit_commit import AuditRevision
from rekindle.documents.events import AgentReceived, Heartbeat, RelayCommitted
from rekindle.policy.relay.audit_lag import AuditLag, find_audit_lag

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)


def relay(seq, gen=0, sha256=""):
    digest = sha256 or f"{seq:064x}"
    return RelayCommitted(ts=NOW, seq=seq, gen=gen, sha256=digest, path="x", by="agent")


def tip(seq, gen=0):
    return AuditRevision(seq, gen, f"{seq:064x}")


def beat(seq, gen=0):
    return Heartbeat(ts=NOW, seq=seq, gen=gen)


def received(seq, gen=0):
    return AgentReceived(ts=NOW, seq=seq, gen=gen, known={})


@pytest.mark.parametrize(
    ("trail", "events", "confirmed", "missing"),
    [
        (None, [], 0, []),
        (None, [relay(1), beat(2), relay(3)], 3, [1, 3]),
        (None, [relay(1), relay(2), relay(3)], 2, [1, 2]),
        (tip(3), [relay(1), relay(3)], 3, []),
        (tip(1), [relay(1), beat(2), relay(3), relay(4)], 9, [3, 4]),
        (tip(3, 1), [relay(3, 1), relay(4, 0), relay(5, 1)], 9, [5]),
        (tip(3, 1), [relay(3, 1), relay(4, 2), relay(5, 1), relay(6, 2)], 9, [4, 6]),
        (None, [relay(1, 2), relay(2, 1), relay(3, 2)], 9, [1, 3]),
        (tip(3), [received(5), relay(6), relay(7)], 9, [6, 7]),
        (tip(6), [received(5), relay(6), relay(7)], 9, [7]),
        (None, [received(5), relay(6)], 9, [6]),
    ],
)
def test_what_a_trail_lacks(trail, events, confirmed, missing):
    """Oldest first, up to the confirmed event, without events of a host that lost the agent."""
    found = find_audit_lag(trail, reversed(events), confirmed)
    assert found.is_ours
    assert [event.seq for event in found.missing] == missing


@pytest.mark.parametrize(
    ("trail", "events"),
    [
        (tip(2), [relay(1), relay(3)]),
        (tip(3), [relay(1), relay(2)]),
        (tip(3), [relay(3, sha256="0" * 64)]),
        (tip(3, 1), [relay(3, 2)]),
        (tip(3), []),
        (tip(6), [received(5), relay(7)]),
        (tip(3, 2), [received(5, 1), relay(6, 1)]),
    ],
)
def test_a_trail_whose_last_commit_is_not_in_the_log_is_another_one(trail, events):
    assert find_audit_lag(trail, reversed(events), 9) == AuditLag(is_ours=False)


def test_the_log_is_read_back_only_to_the_last_commit():
    """If that commit is missing, an older event of its generation ends the search."""
    for trail in (tip(3), tip(4)):
        unread = iter([relay(5), relay(3), beat(2), relay(1)])
        find_audit_lag(trail, unread, 9)
        assert next(unread).seq in {1, 2}
    unread = iter([relay(5, 1), relay(2, 0), relay(1, 1), beat(0)])
    assert not find_audit_lag(tip(3, 1), unread, 9).is_ours
    assert next(unread).seq == 0
