"""Ask for a handoff to a fresh session."""

import msgspec

from rekindle.api.agent_store import AgentStore
from rekindle.config import Project
from rekindle.documents.events import HandoffRequested
from rekindle.documents.launches.route import Route
from rekindle.errors import AgentError, UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.plugins import ALIASES
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.routes.explain_route import explain_block
from rekindle.policy.supervision.next_move import AgentLimits, choose_agent_route
from rekindle.system import clock
from rekindle.wiring.agent_quota import AgentQuota
from rekindle.wiring.agent_routes import find_routes
from rekindle.wiring.open_store import HARNESSES, find_harness
from rekindle.wiring.starting.routed_agent import find_unusable_routes


class AcceptedHandoff(msgspec.Struct, frozen=True):
    """A handoff that the supervisor will make."""

    to: str
    """Route on which the work continues; empty if none was named."""
    is_working: bool
    """Whether a session works now, and stops first."""


def request_handoff(
    project: Project, store: AgentStore, name: str, to: str = ""
) -> AcceptedHandoff:
    """Let an agent's session stop between two turns, and a fresh one continue.

    With `to`, it continues on that route, such as `codex` or `claude-code/work`, also if the agent
    waits between two sessions.

    Raises:
        AgentError: The agent is not running, its CLI cannot be stopped between two turns, or the
            route is blocked.
        UsageError: The agent has no such route.
    """
    route = find_route(project, name, to) if to else None
    projection = store.read(name).projection
    if route is not None:
        _refuse_blocked(project, name, projection, route)
    newest = sessions.find_newest_launch(projection.attempts)
    is_running = newest is not None and not newest.exit
    if route is not None and not is_running and store.is_supervised(name):
        # It waits, for example for a limit: the supervisor moves the work at once.
        store.submit(name, HandoffRequested(ts=clock.read_clock(), to=str(route)))
        return AcceptedHandoff(str(route), is_working=False)
    if not store.is_supervised(name) or newest is None or newest.exit:
        raise AgentError(
            f"{name} is not running, so there is nothing to hand off",
            hint=f"`rekindle status {name}` shows why it is not running, and how to continue",
        )
    if newest.route == route:
        raise AgentError(
            f"{name} already works on {route}",
            hint=f"`rekindle handoff {name}` continues there in a fresh session",
        )
    stays = project.manifest.agents[name].mode == "stay"
    launch = next(mark for mark, attempt in projection.attempts.items() if attempt is newest)
    is_heard = bool(sessions.find_launched_session(projection.lives, launch))
    declared = find_harness(project, name)  # the next session needs it, whatever runs now
    harness = HARNESSES.get(newest.harness, declared)
    if harness.brake(interactive=stays) is None or not is_heard:
        where = " in a terminal" if stays else ""
        reason = (
            "" if is_heard else ": none of its hooks has reported yet (`rekindle hooks install`)"
        )
        raise AgentError(
            f"{harness.NAME} cannot be stopped between two turns{where}{reason}",
            hint=f"`rekindle restart --fresh {name}` stops it now and starts a fresh session",
        )
    store.submit(name, HandoffRequested(ts=clock.read_clock(), to=str(route or "")))
    return AcceptedHandoff(str(route or ""), is_working=True)


def _refuse_blocked(project: Project, name: str, projection: Projection, route: Route) -> None:
    """Refuse a route on which nothing can start now, because the work would go to another one."""
    routes, now = find_routes(project, name), clock.read_clock()
    limits = AgentLimits(runtime=project.settings.runtime, routes=routes)
    hold = AgentQuota(lambda: project, name).find_hold(route)
    choice = choose_agent_route(projection, limits, now, {route: hold.until} if hold else {})
    block = choice.blocks.get(route) if choice else None
    if block is not None:
        raise AgentError(
            f"{route} {explain_block(block, now.astimezone())}",
            hint=f"try again later, or name another route; `rekindle restart {name}` tries it again"
            if block.after > 0
            else "try again later, or name another route",
        )


def find_route(project: Project, name: str, to: str) -> Route:
    """Return the agent's route with this name. The name of a CLI means its first account.

    Raises:
        UsageError: The agent has no such route.
        RekindleError: The route cannot be used, for example because its CLI is not installed.
    """
    routes = find_routes(project, name)
    named = ALIASES.get(to, to)
    route = next((one for one in routes if named in {str(one), one.harness}), None)
    if route is None:
        others = ", ".join(map(str, routes))
        raise UsageError(
            f"{name} has no route named {to_one_line(to)!r}",
            hint=f"use one of: {others}; `harness:` and `accounts:` in rekindle.yaml list them",
        )
    for unusable, error in find_unusable_routes(project, name):
        if unusable == route:
            raise error
    return route
