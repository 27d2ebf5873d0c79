"""The newest numbers of an account are kept, and only changes of a percent are recorded."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.policy.quota.account_windows import add_windows, has_changed

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=3)
SHORT = QuotaWindow("5 hours", 40.0, LATER, 300)
LONG = QuotaWindow("7 days", 17.0, NOW + timedelta(days=3), 10080)


@pytest.mark.parametrize(
    ("reported", "changed"),
    [
        ([SHORT], False),
        ([QuotaWindow("5 hours", 40.9, LATER, 300)], False),
        ([QuotaWindow("5 hours", 41.0, LATER, 300)], True),
        ([QuotaWindow("5 hours", 39.0, LATER, 300)], True),
        ([QuotaWindow("5 hours", 40.0, LATER + timedelta(hours=5), 300)], True),
        ([SHORT, LONG], True),
        ([], False),
    ],
)
def test_a_report_counts_if_a_number_changed_by_a_percent(reported, changed):
    assert has_changed([SHORT], reported) is changed


def test_a_report_replaces_the_windows_that_it_names():
    newer = QuotaWindow("5 hours", 55.0, LATER, 300)
    assert add_windows([SHORT, LONG], [newer], NOW) == (newer, LONG)


def test_a_window_that_has_reset_is_dropped():
    assert add_windows([SHORT, LONG], [], LATER) == (LONG,)
