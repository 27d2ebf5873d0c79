"""Compare and combine the quota windows that CLIs report for one account."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.thresholds.quota_limits import QUOTA_STEP_PERCENT


def has_changed(before: Sequence[QuotaWindow], now: Sequence[QuotaWindow]) -> bool:
    """Return whether a window is new, has reset, or changed by a percent or more."""
    known = {window.name: window for window in before}
    return any(
        window.name not in known or _is_different(known[window.name], window) for window in now
    )


def _is_different(before: QuotaWindow, now: QuotaWindow) -> bool:
    step = abs(now.used_percent - before.used_percent)
    return step >= QUOTA_STEP_PERCENT or before.resets_at != now.resets_at


def add_windows(
    before: Iterable[QuotaWindow], reported: Iterable[QuotaWindow], now: datetime
) -> tuple[QuotaWindow, ...]:
    """Return the reported windows and those that a report left out, if they have not reset."""
    windows = {window.name: window for window in (*before, *reported) if window.is_valid(now)}
    return tuple(windows.values())
