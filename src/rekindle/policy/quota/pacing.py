"""Decide when agents that share an account may work, so that they do not reach its limits.

Three rules apply to quota windows:

- **Reserve.** Agents stop before the usage reaches the reserve, which stays for the person.
- **Pace.** If several agents share the account, usage should grow with time. If it grows faster, an
  agent waits if it has used more than its own share. An agent that has used less may go ahead.
- **Last part.** The more of its share an agent has used, the more of the window it leaves to
  others, for example to those whose work arrives late. At the end, it may use a part of that.

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
    PACE_KEPT_MOST,
    PACE_MEMORY_HOURS,
    PACE_RELEASE,
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
    """Return the hold of the longest window's last part, which is for agents that have used less.

    Without this rule, the cycles in progress would use it up. Half of it is for all when the window
    is about to end; the other half stays for work that arrives even later.
    """
    longest = max(
        (each for each in windows if _is_paced(each, now)),
        key=lambda each: each.minutes or 0,
        default=None,
    )
    if longest is None or longest.resets_at is None:
        return None
    free = 1.0 - longest.used_percent / max(find_budget(reserve), 1.0)
    if free > PACE_KEPT_MOST / 2:
        return None
    share = _measure_share(longest, own, others, now)
    if not share:
        return None
    kept = _find_kept(share) / 2
    left = PACE_RELEASE * free / kept if free > kept / 2 else 0.0
    until = longest.resets_at - timedelta(minutes=longest.minutes or 0) * left
    if free >= kept or until <= now:
        return None
    words = f"{longest.name} {longest.used_percent:.0f} % used; the rest is for other agents"
    return QuotaHold(until, words, is_turn=True)


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
        kept = _find_kept(share) + PACE_YIELD * _has_needier(window, own, others, now)
        # The agent may work once the account, or the agent alone, is not ahead of the line.
        level = window.used_percent * min(1.0, share) / max(find_budget(reserve), 1.0)
        length = timedelta(minutes=window.minutes or 0)
        start = _find_begin(window) + length * _find_passed(level, kept)
        words = f"{window.name} {window.used_percent:.0f} % used; other agents go first"
        if start > now:
            return QuotaHold(min(start, window.resets_at or start), words, is_turn=True)
        if share < 1.0:
            return None
    return None


def find_budget(reserve: float, working: int = 0) -> float:
    """Return the usage in percent up to which agents may start a turn."""
    return max(0.0, 100.0 - reserve - working * TURN_PERCENT)


def _find_kept(share: float) -> float:
    """Return the part of a budget that an agent leaves to others until the window ends."""
    return min(PACE_KEPT * share, PACE_KEPT_MOST)


def _find_passed(level: float, kept: float) -> float:
    """Return the part of a window's time after which a part of the budget may be used.

    The line begins with the head start, stays below the part that is kept for others, and reaches
    the budget at the end of the window.
    """
    bend = (1.0 - kept) * (PACE_HEAD_START + (1.0 - PACE_HEAD_START) * (1.0 - PACE_RELEASE))
    if level > bend:
        return 1.0 - PACE_RELEASE * (1.0 - level) / (1.0 - bend)
    return (level / (1.0 - kept) - PACE_HEAD_START) / (1.0 - PACE_HEAD_START)


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
