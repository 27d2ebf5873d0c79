"""Decide when a host may push to a git remote again.

A host may push a few times without waiting, up to half of its limit. After that, it waits between
pushes, so that it never exceeds the limit within any minute. If the remote still refuses a push
because of its own limit, the host waits longer after each refusal.
"""

import re

import msgspec

from rekindle.policy.exits.backoff import double_pause
from rekindle.thresholds.storage import (
    MAX_PUSH_PAUSE_SECONDS,
    PUSH_PAUSE_SECONDS,
    PUSH_PERIOD_SECONDS,
)

_LIMIT_ANSWER = re.compile(
    r"(http|error|status)\W{0,3}429\b|429 too many|too many (requests|pushes)|rate.?limit"
    r"|(push|request)\w* limit exceeded|slow down",
    re.IGNORECASE,
)


class PushRate(msgspec.Struct, frozen=True):
    """A host's recent pushes to one remote. Times are in seconds since 1970."""

    unused: float = 0.0
    """Number of pushes that may start without waiting, at the time `at`."""
    at: float = 0.0
    until: float = 0.0
    """Time before which the host does not push, because the remote refused a push."""
    refusals: int = 0
    """Number of consecutive pushes that the remote refused because of its limit."""


def find_wait(rate: PushRate, now: float, per_minute: int) -> float:
    """Return how many seconds to wait before the next push."""
    missing = 1.0 - _count_unused(rate, now, per_minute)
    paused = min(rate.until - now, MAX_PUSH_PAUSE_SECONDS)  # the clock may have been set back
    return max(missing / _find_speed(per_minute), paused, 0.0)


def start_push(rate: PushRate, now: float, per_minute: int) -> PushRate:
    """Return the rate after a push was started."""
    unused = max(_count_unused(rate, now, per_minute) - 1.0, 0.0)
    return msgspec.structs.replace(rate, unused=unused, at=now)


def accept_push(rate: PushRate) -> PushRate:
    return msgspec.structs.replace(rate, until=0.0, refusals=0)


def refuse_push(rate: PushRate, now: float) -> PushRate:
    """Return the rate after the remote refused a push because of its limit."""
    pause = double_pause(PUSH_PAUSE_SECONDS, rate.refusals, MAX_PUSH_PAUSE_SECONDS)
    return PushRate(unused=0.0, at=now, until=now + pause, refusals=rate.refusals + 1)


def is_limit_answer(complaint: str) -> bool:
    """Return whether a remote refused a push only because there were too many."""
    return bool(_LIMIT_ANSWER.search(complaint))


def _count_unused(rate: PushRate, now: float, per_minute: int) -> float:
    most = _find_most(per_minute)
    if not rate.at:
        return most
    passed = max(now - rate.at, 0.0)
    return min(rate.unused + passed * _find_speed(per_minute), most)


def _find_most(per_minute: int) -> float:
    return float(max(per_minute // 2, 1))


def _find_speed(per_minute: int) -> float:
    """Return the number of pushes that become possible each second."""
    return (per_minute - _find_most(per_minute) + 1.0) / PUSH_PERIOD_SECONDS
