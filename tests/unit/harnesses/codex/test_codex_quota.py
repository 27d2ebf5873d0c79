"""Codex writes its quota windows to its rollout."""

import json
from datetime import UTC, datetime

import pytest

from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.harnesses.codex.codex_harness import quota

RESET = 1794795213
AT = datetime.fromtimestamp(RESET, UTC)
PRIMARY = {"used_percent": 42.5, "window_minutes": 300, "resets_at": RESET}
SECONDARY = {"used_percent": 17, "window_minutes": 10080, "resets_at": RESET}


def line(kind="token_count", **limits):
    payload = {"type": kind, "info": None, "rate_limits": {"limit_id": "codex", **limits}}
    return json.dumps({"type": "event_msg", "payload": payload}).encode()


def test_both_windows_are_read():
    assert quota(line(primary=PRIMARY, secondary=SECONDARY)) == QuotaReport(
        (QuotaWindow("5 hours", 42.5, AT, 300), QuotaWindow("7 days", 17.0, AT, 10080))
    )


def test_a_window_without_a_length_keeps_its_name():
    report = quota(line(primary={"used_percent": 3}))
    assert report == QuotaReport((QuotaWindow("primary", 3.0),))


@pytest.mark.parametrize(
    "text",
    [
        line(primary=None, secondary=None),
        line("task_complete", primary=PRIMARY),
        line(primary=PRIMARY, limit_id="codex_other"),
        b'{"rate_limits"',
        b"{}",
    ],
)
def test_a_line_without_windows_is_ignored(text):
    assert quota(text) is None


def test_a_report_has_the_time_of_its_line():
    timed = line(primary=PRIMARY).replace(b"{", b'{"timestamp": "2026-11-18T12:00:00.5Z", ', 1)
    assert quota(timed).at == datetime(2026, 11, 18, 12, 0, 0, 500000, tzinfo=UTC)
    for wrong in (b'"x"', b"3", b'"2026-11-18"', b"null"):
        assert quota(timed.replace(b'"2026-11-18T12:00:00.5Z"', wrong)).at is None
