"""The quota of an account, as one line."""

from datetime import UTC, datetime, timedelta, timezone

from rekindle.documents.account_quota import AccountQuota
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.documents.screens.quota_lines import render_quota

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHORT = QuotaWindow("5 hours", 42.4, NOW + timedelta(hours=3), 300)


def render(*windows, seen=NOW, zone=UTC):
    return render_quota(AccountQuota("codex", "/f", seen, windows), NOW, zone)


def test_a_line_tells_how_full_each_window_is_and_when_it_resets():
    long = QuotaWindow("7 days", 17.0, datetime(2026, 3, 5, 9, tzinfo=UTC), 10080)
    assert render(SHORT, long, seen=NOW - timedelta(minutes=3)) == (
        "5 hours 42 % used, resets 2026-03-01 15:00;"
        " 7 days 17 % used, resets 2026-03-05 09:00 (reported 3 min ago)"
    )


def test_times_are_shown_in_the_zone_of_the_host():
    assert "resets 2026-03-01 17:00" in render(SHORT, zone=timezone(timedelta(hours=2)))


def test_a_window_without_a_reset_is_shown_without_a_time():
    assert render(QuotaWindow("5 hours", 3.0)) == "5 hours 3 % used (reported now)"


def test_a_window_that_has_reset_is_unknown():
    past = QuotaWindow("5 hours", 42.0, NOW - timedelta(hours=1), 300)
    assert render(past).startswith("5 hours unknown since its reset at 2026-03-01 11:00")


def test_an_account_without_a_report_is_unknown():
    assert render(seen=None) == "unknown: codex has not reported any"
