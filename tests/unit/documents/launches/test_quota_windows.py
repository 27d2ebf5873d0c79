"""Quota windows have names for people, and are invalid after their reset."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.launches.quota_windows import QuotaWindow, name_window

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(300, "5 hours"), (10080, "7 days"), (60, "1 hour"), (1440, "1 day"), (90, "90 minutes")],
)
def test_a_window_is_named_by_its_length(minutes, name):
    assert name_window(minutes) == name


def test_a_number_is_invalid_from_its_reset_on():
    window = QuotaWindow("5 hours", 40.0, NOW)
    assert window.is_valid(NOW - timedelta(seconds=1))
    assert not window.is_valid(NOW)


def test_a_number_without_a_reset_stays_valid():
    assert QuotaWindow("5 hours", 40.0).is_valid(NOW)
