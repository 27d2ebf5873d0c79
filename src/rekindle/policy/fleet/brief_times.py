"""Decide when an agent on a fleet needs its daily brief.

All agents of a fleet may have the same brief hour. Each agent gets its own moment in a window after
that hour. The window grows with the fleet, so that briefs are a small part of the engine's load.
"""

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.briefs.brief_schedule import NEVER, find_due_brief, resolve_time_of_day
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import BriefSettings
from rekindle.thresholds.fleet_limits import (
    FLEET_BRIEF_AGENT_SECONDS,
    FLEET_BRIEF_WINDOW_SECONDS,
)


def find_brief_window(agents: int) -> timedelta:
    """Return the time over which a fleet of this many agents spreads its briefs."""
    seconds = min(agents * FLEET_BRIEF_AGENT_SECONDS, FLEET_BRIEF_WINDOW_SECONDS)
    return timedelta(seconds=seconds)


def find_brief_delay(name: str, agents: int) -> timedelta:
    """Return how long after the brief hour an agent's brief is written: always the same time."""
    digest = hash_bytes(name.encode())
    place = float.fromhex(f"0x0.{digest}")
    return find_brief_window(agents) * place


def find_due_morning(registered: RegisteredAgent, name: str, now: datetime) -> str:
    """Return the morning whose brief must be written now, or "" if there is none.

    The result depends on the agent's log only, so no brief is lost if its workflow starts over.
    """
    limits = registered.definition.limits.runtime.brief
    if limits.at == NEVER or registered.definition.worker is not None:
        return ""
    morning = _find_closing_morning(registered.projection, limits, now)
    if not morning:
        return ""
    due = resolve_time_of_day(date.fromisoformat(morning), limits.at, find_zone(limits))
    delay = find_brief_delay(name, registered.fleet_agents)
    return morning if due + delay <= now else ""


def find_next_time(registered: RegisteredAgent, name: str, now: datetime) -> datetime | None:
    """Return when to look for a due brief again, or None if the agent must first do some work."""
    limits = registered.definition.limits.runtime.brief
    if limits.at == NEVER or registered.definition.worker is not None:
        return None
    zone, delay = find_zone(limits), find_brief_delay(name, registered.fleet_agents)
    today = now.astimezone(zone).date()
    for ahead in (-1, 0, 1, 2):
        moment = resolve_time_of_day(today + timedelta(days=ahead), limits.at, zone) + delay
        if moment > now:
            is_needed = _find_closing_morning(registered.projection, limits, moment)
            return moment if is_needed else None
    return None


def find_zone(limits: BriefSettings) -> tzinfo:
    """Return the time zone of the brief hour: UTC if none is set, because a fleet has none."""
    try:
        return ZoneInfo(limits.zone) if limits.zone else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):  # this host does not know the zone
        return UTC


def _find_closing_morning(projection: Projection, limits: BriefSettings, now: datetime) -> str:
    brief = find_due_brief(
        now,
        find_zone(limits),
        limits,
        projection.briefed,
        lives=projection.lives,
        attempts=projection.attempts,
        last_active=projection.last_active,
    )
    return brief.morning if brief is not None and brief.closes else ""
