"""The caps of a team, and the permits that its agents hold and wait for.

An agent of a team with caps needs a permit for each cycle. All functions are pure, because the
engine calls them again when it replays its history.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Literal, TypeVar

import msgspec

from rekindle.errors import UsageError

NO_CAP = "none"
"""Value of an option that removes a cap."""
_CHANGE = msgspec.structs.replace
T = TypeVar("T", int, float)


class TeamCaps(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a team. None means no limit."""

    agents: int | None = None
    """Maximum number of agents that run at the same time."""
    usd_per_day: float | None = None
    """Maximum spending in dollars per day in UTC, after which no cycle begins."""


def change_caps(caps: TeamCaps, agents: str | None, money: str | None) -> TeamCaps:
    """Return the caps with new limits from the command line. None means no change."""
    if agents is not None:
        caps = _CHANGE(caps, agents=_parse_cap("--agents", agents, int))
    if money is not None:
        caps = _CHANGE(caps, usd_per_day=_parse_cap("--money-per-day", money, float))
    return caps


def _parse_cap(option: str, text: str, kind: Callable[[str], T]) -> T | None:
    if text == NO_CAP:
        return None
    try:
        number = kind(text)
    except ValueError:
        number = None
    if number is None or not 0 <= number < inf:
        raise UsageError(
            f"{text!r} is not a valid value for {option}",
            hint=f"use a number, 0 to start no agents, or `{NO_CAP}` for no limit",
        )
    return number


class PermitRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's request for a permit, or its report about one."""

    workflow: str
    """Id of the agent's workflow."""
    number: int
    """Number of the permit. An agent numbers its permits, starting at 1."""
    usd: float = 0.0
    """What the agent's run has spent so far, in dollars."""


class HeldPermit(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    usd: float
    """What the agent's run had spent when it last reported."""
    since: datetime


class TeamState(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's record of a team."""

    name: str
    caps: TeamCaps = TeamCaps()
    held: dict[str, HeldPermit] = {}
    """Permits of running agents, by workflow."""
    waiting: tuple[PermitRequest, ...] = ()
    """Agents that wait for a permit, in the order in which they asked."""
    day: str = ""
    """Day of the last report, in UTC."""
    usd: float = 0.0
    """Spending on that day, in dollars."""

    def spent_on(self, now: datetime) -> float:
        return self.usd if self.day == _find_day(now) else 0.0


class AgentPermit(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's view of its permit."""

    team: str = ""
    number: int = 0
    state: Literal["none", "asked", "held"] = "none"


def record_request(team: TeamState, request: PermitRequest, now: datetime) -> TeamState:
    """Let an agent wait for a permit. Its earlier permit ends.

    A repeated request keeps its place. If its permit was granted, it stays granted, because the
    agent may already be using it.
    """
    team = record_spending(team, request, now)
    held = team.held.get(request.workflow)
    if held is not None and held.number == request.number:
        return team
    is_new = all(waiting.workflow != request.workflow for waiting in team.waiting)
    waiting = [request if old.workflow == request.workflow else old for old in team.waiting]
    team = _drop_held(team, request.workflow)
    return _CHANGE(team, waiting=(*waiting, *([request] if is_new else [])))


def record_spending(team: TeamState, report: PermitRequest, now: datetime) -> TeamState:
    """Add what an agent with a permit has spent since its last report to this day's spending."""
    held = team.held.get(report.workflow)
    if held is None:
        return team
    # A new run starts at zero.
    new = report.usd - held.usd if report.usd >= held.usd else report.usd
    return _CHANGE(
        team,
        held=team.held | {report.workflow: _CHANGE(held, usd=report.usd)},
        usd=team.spent_on(now) + new,
        day=_find_day(now),
    )


def end_permit(team: TeamState, report: PermitRequest, now: datetime) -> TeamState:
    """Take back the agent's permit or request with this number, with its last spending.

    The agent may have asked again meanwhile, with a higher number.
    """
    team = record_spending(team, report, now)
    held = team.held.get(report.workflow)
    if held is not None and held.number == report.number:
        team = _drop_held(team, report.workflow)
    is_ended = (report.workflow, report.number)
    waiting = tuple(one for one in team.waiting if (one.workflow, one.number) != is_ended)
    return _CHANGE(team, waiting=waiting)


def drop_agent(team: TeamState, workflow: str) -> TeamState:
    """Forget an agent that is not on the fleet anymore."""
    waiting = tuple(request for request in team.waiting if request.workflow != workflow)
    return _CHANGE(_drop_held(team, workflow), waiting=waiting)


def grant_permits(team: TeamState, now: datetime) -> tuple[TeamState, list[PermitRequest]]:
    """Grant permits to waiting agents while the caps allow it, and return the granted ones."""
    granted = []
    while team.waiting and not explain_cap(team, now):
        request = team.waiting[0]
        permit = HeldPermit(number=request.number, usd=request.usd, since=now)
        held = team.held | {request.workflow: permit}
        team = _CHANGE(team, held=held, waiting=team.waiting[1:])
        granted.append(request)
    return team, granted


def explain_cap(team: TeamState, now: datetime) -> str:
    """Return which cap of the team is reached, or "" if another agent may run."""
    caps, spent = team.caps, team.spent_on(now)
    if caps.agents is not None and len(team.held) >= caps.agents:
        return f"{len(team.held)} of {caps.agents} agents are running"
    if caps.usd_per_day is not None and spent >= caps.usd_per_day:
        return f"${spent:.2f} of ${caps.usd_per_day:.2f} are spent today (UTC)"
    return ""


def find_next_day(now: datetime) -> datetime:
    """Return when the spending of a day starts at zero again."""
    return (now.astimezone(UTC) + timedelta(days=1)).replace(
        hour=0, minute=0, second=0, microsecond=0
    )


def _find_day(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%d")


def _drop_held(team: TeamState, workflow: str) -> TeamState:
    return _CHANGE(team, held={key: held for key, held in team.held.items() if key != workflow})
