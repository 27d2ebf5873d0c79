"""Decide when agents that share an account may work, so that they do not reach its limits.

Three rules apply to quota windows:

- **Reserve.** Agents stop before the usage reaches the reserve, which stays for the person.
- **Pace.** If several agents share the account, usage should grow with time. If it grows faster, an
  agent waits if it has used more than its own share. An agent that has used less may go ahead.
- **Last part.** The last part of the longest window is for agents that have used less than their
  share, for example because their work arrived late.

An agent's share depends on its priority. Its usage is estimated from its spending, because a CLI
reports only the usage of the whole account.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.policy.quota.ledger_entries import measure_cost
from rekindle.thresholds.quota_limits import (
    PACE_HEAD_START,
    PACE_KEPT,
    PACE_MEMORY_HOURS,
    PACE_YIELD,
    TURN_PERCENT,
    WEIGHT_HIGH,
    WEIGHT_LOW,
    WORKING_SECONDS,
)

_WEIGHTS = {"high": WEIGHT_HIGH, "normal": 1.0, "low": WEIGHT_LOW}


class QuotaHold(msgspec.Struct, frozen=True):
    """Decision that an agent must not use an account before a given time."""

    until: datetime
    words: str
    is_turn: bool = False
    """Whether the agent waits only because other agents go first."""


def find_reserve_hold(
    windows: Sequence[QuotaWindow], reserve: float, others: Sequence[AgentLedger], now: datetime
) -> QuotaHold | None:
    """Return the hold of a window that agents have used up to its reserve, or None.

    The agent and the others that work at the moment finish their turn, so the line is lower if
    there are many.
    """
    used = max((each.used_percent for each in windows if _is_paced(each, now)), default=0.0)
    if used < find_budget(reserve, 1 + len(others)):
        return None
    line = find_budget(reserve, 1 + sum(_is_working(each, now) for each in others))
    full = [
        QuotaHold(window.resets_at, f"{window.name} {window.used_percent:.0f} % used")
        for window in windows
        if window.resets_at and _is_paced(window, now) and window.used_percent >= line
    ]
    hold = max(full, key=lambda each: each.until, default=None)
    if hold is None:
        return None
    return QuotaHold(hold.until, f"{hold.words}; the rest is kept in reserve ({reserve:g} %)")


def find_last_part_hold(
    windows: Sequence[QuotaWindow],
    reserve: float,
    own: AgentLedger,
    others: Sequence[AgentLedger],
    now: datetime,
) -> QuotaHold | None:
    """Return the hold of the longest window's last part, which is for agents that must catch up.

    Without this rule, the cycles in progress would use it up.
    """
    longest = max(
        (each for each in windows if _is_paced(each, now)),
        key=lambda each: each.minutes or 0,
        default=None,
    )
    line = find_budget(reserve) * (1.0 - PACE_KEPT / 2)
    if longest is None or longest.resets_at is None or longest.used_percent < line:
        return None
    share = _measure_share(longest, own, others, now)
    if share is None or share < 1.0:
        return None
    words = f"{longest.name} {longest.used_percent:.0f} % used; the rest is for other agents"
    return QuotaHold(longest.resets_at, words)


def find_pace_hold(
    windows: Sequence[QuotaWindow],
    reserve: float,
    own: AgentLedger,
    others: Sequence[AgentLedger],
    now: datetime,
) -> QuotaHold | None:
    """Return the hold of an agent that is ahead of its share of a window, or None.

    `others` are the other agents with this account. Agents that were idle for long do not count.
    """
    paced = [each for each in windows if _is_paced(each, now)]
    # An agent that is behind in the longest window may catch up, whatever a shorter one says.
    for window in sorted(paced, key=lambda each: -(each.minutes or 0)):
        share = _measure_share(window, own, others, now)
        if share is None:
            continue
        is_behind = share < 1.0
        budget = find_budget(reserve) * (1.0 if is_behind else 1.0 - PACE_KEPT)
        if _has_needier(window, own, others, now):
            budget *= 1.0 - PACE_YIELD
        # The agent may work once the account, or the agent alone, is not ahead of the line, which
        # begins with the head start and reaches the budget at the end of the window.
        ahead = window.used_percent * min(1.0, share) / budget if budget else 0.0
        passed = (ahead - PACE_HEAD_START) / (1.0 - PACE_HEAD_START)
        length = timedelta(minutes=window.minutes or 0)
        start = _find_begin(window) + length * passed
        words = f"{window.name} {window.used_percent:.0f} % used; other agents go first"
        if start > now:
            return QuotaHold(min(start, window.resets_at or start), words, is_turn=True)
        if is_behind:
            return None
    return None


def find_budget(reserve: float, working: int = 0) -> float:
    """Return the usage in percent up to which agents may start a turn."""
    return max(0.0, 100.0 - reserve - working * TURN_PERCENT)


def _measure_share(
    window: QuotaWindow, own: AgentLedger, others: Sequence[AgentLedger], now: datetime
) -> float | None:
    """Return the agent's part of the agents' usage, divided by the part that is its share.

    Return None if no other agent is active, or if nothing was spent.
    """
    since = _find_begin(window)
    active = _select_active(window, others, now)
    cost = measure_cost(own, since)
    total = cost + sum(measure_cost(each, since) for each in active)
    if not active or not total:
        return None
    weights = sum(_WEIGHTS[each.priority] for each in (own, *active))
    return cost / total * weights / _WEIGHTS[own.priority]


def _has_needier(
    window: QuotaWindow, own: AgentLedger, others: Sequence[AgentLedger], now: datetime
) -> bool:
    """Return whether an agent that has work has used less of its share than this one."""
    since, recent = _find_begin(window), now - timedelta(seconds=WORKING_SECONDS)
    busy = [
        each
        for each in others
        if (each.waits or each.is_working) and each.asked_at and each.asked_at >= recent
    ]
    served = measure_cost(own, since) / _WEIGHTS[own.priority]
    return any(measure_cost(each, since) / _WEIGHTS[each.priority] < served for each in busy)


def _select_active(
    window: QuotaWindow, others: Sequence[AgentLedger], now: datetime
) -> list[AgentLedger]:
    """Return the agents that worked or waited in this window and not long ago."""
    since = max(_find_begin(window), now - timedelta(hours=PACE_MEMORY_HOURS))
    return [each for each in others if each.asked_at and each.asked_at >= since]


def _find_begin(window: QuotaWindow) -> datetime:
    if window.resets_at is None or not window.minutes:
        raise ValueError("only windows with a length and a reset are paced")
    return window.resets_at - timedelta(minutes=window.minutes)


def _is_paced(window: QuotaWindow, now: datetime) -> bool:
    return bool(window.minutes and window.resets_at) and window.is_valid(now)


def _is_working(agent: AgentLedger, now: datetime) -> bool:
    at = agent.asked_at
    return agent.is_working and at is not None and now - at < timedelta(seconds=WORKING_SECONDS)
