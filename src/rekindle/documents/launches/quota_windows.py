"""Quota windows: how much of an account's usage limits is used, and when they reset."""

from datetime import datetime

import msgspec

from rekindle.formats.counts import render_count

_DAY, _HOUR = 1440, 60


class QuotaWindow(msgspec.Struct, frozen=True):
    """One usage limit of an account, such as the limit for each five hours."""

    name: str
    """Name for people, such as `5 hours`."""
    used_percent: float
    """Usage in percent."""
    resets_at: datetime | None = None
    """When the window resets. The percentage is invalid after that time."""
    minutes: int | None = None
    """Length of the window; None if it is unknown, or if the window limits only some models."""

    def is_valid(self, now: datetime) -> bool:
        """Return whether the window has not reset since it was reported."""
        return self.resets_at is None or now < self.resets_at


class QuotaReport(msgspec.Struct, frozen=True):
    """A CLI's report of its account's quota windows."""

    windows: tuple[QuotaWindow, ...]
    at: datetime | None = None
    """When the model reported it; None for now."""


def name_window(minutes: int) -> str:
    """Return the name of a window of this length, such as `5 hours` or `7 days`."""
    for unit, noun in ((_DAY, "day"), (_HOUR, "hour")):
        if minutes % unit == 0 and minutes:
            return render_count(minutes // unit, noun)
    return render_count(minutes, "minute")
