"""Choose the route on which an agent's work continues.

The choice depends only on recorded launches, the operator's request, the holds of the accounts and
the time, so a supervisor that takes over chooses the same route.

A usage limit, an outage or an expired login blocks a route. Within a cycle, work stays on its route
until that one is blocked. Each cycle begins on the first route that is not blocked, which is how
work returns.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from rekindle.documents.launches.route import Route
from rekindle.policy.exits import restart, stop_reasons
from rekindle.policy.exits.backoff import compute_probe_pause
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import RestartSettings

_LOGIN_EXITS = frozenset({"auth", "billing"})
"""Exits that only a person can fix. The route is tried again from time to time."""


def needs_login(exit_kind: str) -> bool:
    """Return whether only a person can fix the cause of an exit, by logging in or paying."""
    return exit_kind in _LOGIN_EXITS


class RouteBlock(msgspec.Struct, frozen=True):
    """Why no work can start on a route, and until when."""

    why: StopReason
    until: datetime
    after: int = 0
    """Log position of the launch that was refused; negative if the account is held."""

    @property
    def needs_person(self) -> bool:
        return needs_login(self.why)


class RouteChoice(msgspec.Struct, frozen=True):
    route: Route
    wait: WaitUntil | None = None
    """Wait before anything may start on the route; None if it can start now."""
    blocks: Mapping[Route, RouteBlock] = {}
    """Blocked routes."""

    @property
    def is_stuck(self) -> bool:
        """Return whether only a person can free the chosen route."""
        return self.route in self.blocks and self.blocks[self.route].needs_person


class RouteRequest(msgspec.Struct, frozen=True, order=True):
    """The operator's request to continue on a route, and its log position."""

    seq: int = 0
    to: str = ""


def choose_route(
    routes: Sequence[Route],
    launches: Iterable[LaunchRecord],
    *,
    cycle: int,
    now: datetime,
    limits: RestartSettings,
    since: int = 0,
    asked: RouteRequest = RouteRequest(),  # noqa: B008 - frozen
    holds: Mapping[Route, datetime] = {},
) -> RouteChoice:
    """Return the route for the next launch in `cycle`.

    Refusals before the log position `since`, the operator's last restart, no longer count. `holds`
    are the times before which nothing may start on a route. If all routes are blocked, the result
    is the one that is free first.
    """
    ordered = sorted(launches, key=lambda launch: launch.seq)
    blocks = {
        route: block
        for route in routes
        if (block := find_block(route, ordered, now, limits, since=since, held=holds.get(route)))
    }
    wanted = order_routes(routes, ordered, cycle, asked)
    free = next((route for route in wanted if route not in blocks), None)
    if free is not None:
        return RouteChoice(free, None, blocks)
    first = min(wanted, key=lambda route: (blocks[route].needs_person, blocks[route].until))
    block = blocks[first]
    return RouteChoice(first, WaitUntil(block.until, block.why, block.after), blocks)


def order_routes(
    routes: Sequence[Route], ordered: Sequence[LaunchRecord], cycle: int, asked: RouteRequest
) -> list[Route]:
    """Return the routes in the order in which the cycle tries them.

    The operator's request counts until the cycle ends. Otherwise, the cycle's last route is first.
    """
    here = [launch for launch in ordered if launch.cycle == cycle]
    before = max((launch.seq for launch in ordered if launch.cycle < cycle), default=0)
    first = here[-1].route if here else None
    if asked.to and asked.seq > before:
        named = next((route for route in routes if asked.to in {str(route), route.harness}), None)
        is_done = any(launch.seq > asked.seq and launch.route == named for launch in here)
        if named is not None and not is_done:
            first = named
    return sorted(routes, key=lambda route: route != first)


def find_block(
    route: Route,
    ordered: Sequence[LaunchRecord],
    now: datetime,
    limits: RestartSettings,
    *,
    since: int = 0,
    held: datetime | None = None,
) -> RouteBlock | None:
    """Return what blocks a route, or None. `ordered` are the launches on all routes, in order."""
    own = [launch for launch in ordered if launch.route == route and launch.seq > since]
    blocks = []
    if held is not None and held > now:
        # No launch caused the hold, so its end identifies the wait.
        blocks.append(RouteBlock("quota", held, -int(held.timestamp())))
    if own and own[-1].exit:
        last = own[-1]
        until = _find_end(own, now, limits)
        if until is not None and until > now:
            reason = stop_reasons.parse_reason(last.exit)
            blocks.append(RouteBlock(reason, until, last.seq))
    return max(blocks, key=lambda block: block.until, default=None)


def _find_end(
    own: Sequence[LaunchRecord], now: datetime, limits: RestartSettings
) -> datetime | None:
    """Return when a route may be tried again after its last launch, or None for now."""
    last = own[-1]
    if last.exit in _LOGIN_EXITS:
        in_a_row = 0
        for launch in reversed(own):
            if launch.exit not in _LOGIN_EXITS:
                break
            in_a_row += 1
        pause = timedelta(seconds=compute_probe_pause(in_a_row - 1))
        return min(last.ended or now, now) + pause
    reaction = stop_reasons.find_reaction(last.exit)
    if reaction not in {"wait", "retry"}:
        return None
    return restart.find_pause_end(own, own, reaction, now, limits)
