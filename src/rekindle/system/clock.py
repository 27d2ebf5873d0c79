"""The one place that asks what time it is."""

from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)
