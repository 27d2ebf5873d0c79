"""A committed relay as the message of a commit of the audit trail."""

from datetime import UTC, datetime

import pytest

from rekindle.documents.commits.audit_commit import AuditRevision, parse, render
from rekindle.documents.events import RelayCommitted

DIGEST = "0123456789abcdef" * 4


def committed(**fields):
    given = {"seq": 412, "gen": 3, "sha256": DIGEST, "by": "agent", "headline": "Port it"}
    return RelayCommitted(ts=datetime(2026, 4, 9, tzinfo=UTC), path="x", **given | fields)


def test_the_message_of_a_relay():
    assert render(committed()) == (
        f"Port it\n\nRekindle-Seq: 412\nRekindle-Gen: 3\nRekindle-Sha256: {DIGEST}\n"
        "Rekindle-By: agent\n"
    )
    assert render(committed(headline="")).startswith("A relay without a Next Action\n\n")


def test_a_message_reads_back():
    assert parse(render(committed())) == AuditRevision(412, 3, DIGEST)
    forged = committed(headline="x\n\nRekindle-Seq: 1", by="agent\nRekindle-Seq: 9")
    assert parse(render(forged)) == AuditRevision(412, 3, DIGEST)


@pytest.mark.parametrize(
    "message", ["", "Port it\n", render(committed()) + "More.\n", render(committed())[:-40]]
)
def test_another_commit_is_not_a_revision(message):
    assert parse(message) is None


@pytest.mark.parametrize(
    ("fields", "expected"),
    [({}, True), ({"gen": 9}, True), ({"seq": 411}, False), ({"sha256": "0" * 64}, False)],
)
def test_the_event_of_a_revision(fields, expected):
    """The generation does not matter; number and content do."""
    assert AuditRevision(412, 3, DIGEST).is_of(committed(**fields)) is expected
