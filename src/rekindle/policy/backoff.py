"""Pauses that double: the one formula for retries of any kind."""

from rekindle.policy.settings import LIMIT_PROBE_SECONDS, MAX_LIMIT_PROBE_SECONDS, Restart

_MOST_DOUBLINGS = 60
"""Enough for any pause; more would overflow, and counts can come from files that an agent wrote."""


def backoff(limits: Restart, doublings: int) -> float:
    """Return the seconds to pause after a failure: the cooldown, doubled so often."""
    return double(limits.cooldown, doublings, limits.max_cooldown)


def probe_pause(doublings: int) -> float:
    """Return the seconds before the next probe of something whose end is unknown."""
    return double(LIMIT_PROBE_SECONDS, doublings, MAX_LIMIT_PROBE_SECONDS)


def double(first: float, doublings: int, most: float) -> float:
    """Return a pause, doubled so often, but at most so long."""
    return min(first * 2.0 ** min(max(doublings, 0), _MOST_DOUBLINGS), most)
