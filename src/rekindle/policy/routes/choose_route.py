"""Choose the route on which an agent's work continues.

The choice depends only on recorded launches, the operator's request, the holds of the accounts and
the time, so a supervisor that takes over chooses the same route.

A usage limit or an expired login blocks a route at once, an outage only after several failures in a
row. Within a cycle, work stays on its route until that one is blocked. Each cycle begins on the
first route that is not blocked, which is how work returns.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import takewhile

import msgspec

from rekindle.documents.launches.route import Route
from rekindle.policy.exits import restart, stop_reasons
from rekindle.policy.exits.backoff import compute_probe_pause
from rekindle.policy.exits.restart import WaitUntil
from rekindle.policy.exits.stop_reasons import StopReason
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import (
    OUTAGE_SECONDS,
    OUTAGE_TRIES,
    RestartSettings,
)

_LOGIN_EXITS = frozenset({"auth", "billing", "misconfigured"})
"""Exits that only a person can fix. The route is tried again from time to time."""


def needs_login(exit_kind: str) -> bool:
    """Return whether only a person can fix the cause of an exit, such as a login."""
    return exit_kind in _LOGIN_EXITS


def is_first_login_exit(
    last: LaunchRecord, launches: Iterable[LaunchRecord], since: int = 0
) -> bool:
    """Return whether a launch needs a person's login, and the one before it on its route did not.

    Launches before the log position `since` do not count.
    """
    earlier = [
        launch
        for launch in launches
        if launch.route == last.route and since < launch.seq < last.seq
    ]
    before = max(earlier, key=lambda launch: launch.seq, default=None)
    return needs_login(last.exit) and (before is None or not needs_login(before.exit))


class RouteBlock(msgspec.Struct, frozen=True):
    """Why no work can start on a route, and until when."""

    why: StopReason
    until: datetime
    after: int = 0
    """Log position of the launch that was refused; negative if the account is held."""

    @property
    def needs_person(self) -> bool:
        return needs_login(self.why)

    @property
    def is_outage(self) -> bool:
        return stop_reasons.find_reaction(self.why) == "retry"


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
    are the times before which nothing may start on a route. If all routes are blocked, work stays
    where an outage stopped it, and retries there. Otherwise, the result is the one that is free
    first.
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
    last = next((launch.route for launch in reversed(ordered) if launch.cycle == cycle), None)
    if last in blocks and blocks[last].is_outage:
        first = last
    else:
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
    ended = min(last.ended or now, now)
    if last.exit in _LOGIN_EXITS:
        failed = list(takewhile(lambda launch: launch.exit in _LOGIN_EXITS, reversed(own)))
        return ended + timedelta(seconds=compute_probe_pause(len(failed) - 1))
    reaction = stop_reasons.find_reaction(last.exit)
    if reaction == "retry":
        return _find_outage_end(own, ended, limits)
    return restart.find_pause_end(own, own, reaction, now, limits) if reaction == "wait" else None


def _find_outage_end(
    own: Sequence[LaunchRecord], ended: datetime, limits: RestartSettings
) -> datetime | None:
    """Return when to try a route again whose service is down, or None to retry without a move.

    Most outages are short, and a move costs a session, so the work leaves only after several
    failures or minutes.
    """
    failed = 0
    first = ended
    for launch in reversed(own):
        if stop_reasons.find_reaction(launch.exit) != "retry":
            break
        failed, first = failed + 1, launch.ended or first
        if launch.seconds >= limits.healthy_after:
            break
    if failed < OUTAGE_TRIES and (ended - first).total_seconds() < OUTAGE_SECONDS:
        return None
    return ended + timedelta(seconds=compute_probe_pause(failed - OUTAGE_TRIES))
