"""Read the quota windows that Claude Code reports after model calls, unless it uses an API key."""

from typing import Any

from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow, name_window
from rekindle.harnesses.untrusted_json import to_mapping, to_percent, to_time, to_word

_MINUTES = {"five_hour": 300, "seven_day": 10080}
_PARTIAL = "seven_day_"
"""Start of the names of windows that limit only one model, such as `seven_day_opus`."""


def read_quota(limit: dict[str, Any]) -> tuple[QuotaReport, ...]:
    """Return the windows in a `rate_limit_info`. Older versions report only one of them."""
    listed = to_mapping(limit.get("unifiedWindows")) or {to_word(limit.get("rateLimitType")): limit}
    windows = [_read_window(name, to_mapping(window)) for name, window in listed.items()]
    known = tuple(window for window in windows if window is not None)
    return (QuotaReport(known),) if known else ()


def _read_window(name: str, window: dict[str, Any]) -> QuotaWindow | None:
    share = to_percent(window.get("utilization"))
    if share is None:
        return None
    minutes = _MINUTES.get(name)
    if minutes is not None:
        shown = name_window(minutes)
    elif name.startswith(_PARTIAL):
        shown = f"{name_window(_MINUTES['seven_day'])} {name.removeprefix(_PARTIAL)}"
    else:
        return None
    return QuotaWindow(shown, round(share * 100, 2), to_time(window.get("resetsAt")), minutes)
