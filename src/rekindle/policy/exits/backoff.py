"""Exponential backoff, with the same formula for every kind of retry."""

from rekindle.policy.settings.runtime_settings import (
    LIMIT_PROBE_SECONDS,
    MAX_LIMIT_PROBE_SECONDS,
    RestartSettings,
)
from rekindle.thresholds.login_limits import LOGIN_RETRY_SECONDS, MAX_LOGIN_RETRY_SECONDS

_MOST_DOUBLINGS = 60
"""Maximum number of doublings.

A higher number would overflow a float, and the count can come from files that an agent wrote.
"""


def compute_backoff(limits: RestartSettings, doublings: int) -> float:
    """Return the pause after a failure, in seconds: the cooldown, doubled `doublings` times."""
    return double_pause(limits.cooldown, doublings, limits.max_cooldown)


def compute_probe_pause(doublings: int) -> float:
    """Return the pause before the next probe, in seconds, for a limit whose end is unknown."""
    return double_pause(LIMIT_PROBE_SECONDS, doublings, MAX_LIMIT_PROBE_SECONDS)


def compute_login_pause(doublings: int) -> float:
    """Return the pause before an agent whose login failed is started again, in seconds."""
    return double_pause(LOGIN_RETRY_SECONDS, doublings, MAX_LOGIN_RETRY_SECONDS)


def double_pause(first: float, doublings: int, most: float) -> float:
    """Return `first` doubled `doublings` times, limited to `most`. All values are in seconds."""
    return min(first * 2.0 ** min(max(doublings, 0), _MOST_DOUBLINGS), most)
