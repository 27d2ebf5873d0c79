"""Claude Code reports its quota windows in `rate_limit_event` lines."""

import json
from datetime import UTC, datetime

import pytest

from rekindle.documents.launches.launch_types import LimitReport
from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow
from rekindle.harnesses.claude_code.claude_stream import read_stream

RESET = 1794795171
AT = datetime.fromtimestamp(RESET, UTC)
BOTH = {
    "five_hour": {"utilization": 0.93, "resetsAt": RESET, "status": "allowed_warning"},
    "seven_day": {"utilization": 0.17, "resetsAt": RESET, "status": "allowed"},
}


def read(**limit):
    return read_stream(json.dumps({"type": "rate_limit_event", "rate_limit_info": limit}).encode())


def test_both_windows_are_read_in_percent():
    assert read(status="allowed", unifiedWindows=BOTH) == (
        QuotaReport(
            (QuotaWindow("5 hours", 93.0, AT, 300), QuotaWindow("7 days", 17.0, AT, 10080))
        ),
    )


def test_a_single_window_is_read_if_the_others_are_not_reported():
    [report] = read(status="allowed", rateLimitType="seven_day", utilization=0.5, resetsAt=RESET)
    assert report == QuotaReport((QuotaWindow("7 days", 50.0, AT, 10080),))


def test_a_window_of_one_model_has_no_length():
    """An agent with another model must not wait for it."""
    [report] = read(unifiedWindows={"seven_day_opus": {"utilization": 1, "resetsAt": RESET}})
    assert report == QuotaReport((QuotaWindow("7 days opus", 100.0, AT, None),))


def test_a_refusal_is_reported_after_the_windows():
    quota, refusal = read(status="rejected", resetsAt=RESET, unifiedWindows=BOTH)
    assert isinstance(quota, QuotaReport)
    assert refusal == LimitReport(RESET)


@pytest.mark.parametrize(
    "limit",
    [
        {},
        {"rateLimitType": "overage", "utilization": 0.2},
        {"rateLimitType": "five_hour"},
        {"unifiedWindows": {"five_hour": {"utilization": "much"}, "seven_day": None}},
        {"unifiedWindows": {"five_hour": {"utilization": True}}},
        {"unifiedWindows": {"five_hour": {"utilization": -1}}},
    ],
)
def test_a_report_without_a_share_is_ignored(limit):
    assert read(**limit) == ()


def test_a_time_out_of_range_is_left_out():
    [report] = read(unifiedWindows={"five_hour": {"utilization": 0.1, "resetsAt": 10**15}})
    assert report.windows[0].resets_at is None
