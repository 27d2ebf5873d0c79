"""The stored quota of an account keeps its keys."""

from datetime import UTC, datetime

import msgspec

from rekindle.documents.account_quota import AccountQuota
from rekindle.documents.launches.quota_windows import QuotaWindow


def test_a_stored_quota_is_read_unchanged():
    now = datetime(2026, 3, 1, tzinfo=UTC)
    quota = AccountQuota(
        "codex", "/home/user/.codex", now, (QuotaWindow("5 hours", 1.5, now, 300),)
    )
    stored = msgspec.json.encode(quota)
    assert msgspec.json.decode(stored, type=AccountQuota) == quota
    assert list(msgspec.json.decode(stored)) == ["harness", "folder", "seen_at", "windows", "v"]
