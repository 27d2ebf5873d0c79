"""Describe the quota of an account in one line."""

from collections.abc import Iterable
from datetime import datetime, tzinfo

from rekindle.documents.account_quota import AccountQuota
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.documents.screens.status_table import render_age


def render_quota(quota: AccountQuota, now: datetime, zone: tzinfo) -> str:
    """Return how full each window is, when it resets and how old the numbers are, or `unknown`."""
    if quota.seen_at is None or not quota.windows:
        return f"unknown: {quota.harness} has not reported any"
    age = render_age(quota.seen_at, now)
    seen = "now" if age == "now" else f"{age} ago"
    return f"{render_windows(quota.windows, now, zone)} (reported {seen})"


def render_windows(windows: Iterable[QuotaWindow], now: datetime, zone: tzinfo) -> str:
    """Return how full each window is and when it resets."""
    return "; ".join(_render_window(window, now, zone) for window in windows)


def _render_window(window: QuotaWindow, now: datetime, zone: tzinfo) -> str:
    at = f"{window.resets_at.astimezone(zone):%Y-%m-%d %H:%M}" if window.resets_at else ""
    if not window.is_valid(now):
        return f"{window.name} unknown since its reset at {at}"
    resets = f", resets {at}" if at else ""
    return f"{window.name} {window.used_percent:.0f} % used{resets}"
