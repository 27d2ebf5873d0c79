"""Events of a night for tests, numbered and a minute apart."""

from datetime import UTC, datetime, timedelta

BEGAN = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)


def at(minutes):
    return BEGAN + timedelta(minutes=minutes)


def log(*made):
    """Return events from (kind, fields): the first has number 1 and happens at 01:00."""
    return [
        kind(**{"ts": at(place), "seq": place + 1, **fields})
        for place, (kind, fields) in enumerate(made)
    ]
