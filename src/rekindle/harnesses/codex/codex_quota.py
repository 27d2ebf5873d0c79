"""Read the quota windows that Codex writes to its rollout after each model call."""

from rekindle.documents.launches.quota_windows import QuotaReport, QuotaWindow, name_window
from rekindle.harnesses.untrusted_json import (
    parse_object,
    parse_time,
    to_count,
    to_mapping,
    to_percent,
    to_time,
)


def quota(line: bytes) -> QuotaReport | None:
    """Return the windows in a line of a rollout, or None if it reports none."""
    if b'"rate_limits"' not in line:
        return None
    found = parse_object(line)
    payload = to_mapping(found.get("payload"))
    limits = to_mapping(payload.get("rate_limits"))
    # Codex also reports separate limits of some models, under other ids.
    if payload.get("type") != "token_count" or limits.get("limit_id") not in {None, "codex"}:
        return None
    windows = []
    for name in ("primary", "secondary"):
        window = to_mapping(limits.get(name))
        used, minutes = (
            to_percent(window.get("used_percent")),
            to_count(window.get("window_minutes")),
        )
        if used is not None:
            shown = name_window(minutes) if minutes else name
            windows.append(QuotaWindow(shown, used, to_time(window.get("resets_at")), minutes))
    at = parse_time(found.get("timestamp"))
    return QuotaReport(tuple(windows), at) if windows else None
