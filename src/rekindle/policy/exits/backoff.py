"""Compute doubling pauses: the one formula for retries of any kind."""

from rekindle.policy.settings.runtime_settings import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    RestartSettings,
)

_MOST_DOUBLINGS = 60
"""Enough for any pause. More would overflow, and counts can come from files that an agent wrote."""


def compute_backoff(limits: RestartSettings, doublings: int) -> float:
    """Return the seconds to pause after a failure: the cooldown, doubled `doublings` times."""
    return double_pause(limits.cooldown, doublings, limits.max_cooldown)


def compute_probe_pause(doublings: int) -> float:
    """Return the seconds before the next probe of a condition whose end is unknown."""
    return double_pause(LIMIT_PROBE_SECONDS, doublings, MAX_LIMIT_PROBE_SECONDS)


def double_pause(first: float, doublings: int, most: float) -> float:
    """Return the pause `first`, doubled `doublings` times, but at most `most`."""
    return min(first * 2.0 ** min(max(doublings, 0), _MOST_DOUBLINGS), most)
