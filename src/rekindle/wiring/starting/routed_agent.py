"""Open an agent on each of its routes, from the project as the operator last accepted it."""

import os
from collections.abc import Callable, Iterator

import msgspec

from rekindle.config import Project
from rekindle.documents.launches.route import Route
from rekindle.errors import RekindleError, UsageError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorReport, TroubleReport
from rekindle.stores.files import FileStore
from rekindle.wiring.agent_routes import (
    find_config_folders,
    find_routes,
    list_route_harnesses,
    with_route,
)
from rekindle.wiring.make_agent import make_agent
from rekindle.wiring.starting.start_checks import find_obstacles


def find_unusable_routes(
    project: Project, name: str, *, on_this_host: bool = True
) -> Iterator[tuple[Route, RekindleError]]:
    """Yield each later route that the agent cannot use, and the first reason.

    `start_checks` refuses an agent whose first route cannot be used.
    """
    for route in find_routes(project, name)[1:]:
        if project.settings.fleet is not None:
            hint = "remove it, or run the agent without a fleet"
            yield (
                route,
                UsageError("on a fleet, an agent keeps its first CLI and account", hint=hint),
            )
            continue
        routed = with_route(project, name, route)
        for error in find_obstacles(routed, name, on_this_host=on_this_host):
            yield route, error
            break


class RoutedAgent:
    """An agent that can run on several routes, on one of them at a time."""

    def __init__(
        self,
        project: Project,
        store: FileStore,
        name: str,
        tell: Callable[[SupervisorReport], None],
        *,
        cycles: int | None = None,
        program: tuple[str, ...] = (),
        on_this_host: bool = False,
    ) -> None:
        """Open the agent on its first route.

        `program` replaces that route's program, and the agent then has no other route. With
        `on_this_host`, refuse the agent if that route cannot be used on this host. `tell` reports
        the other routes that cannot be used.
        """
        self._tell = tell
        self._store, self._name, self._cycles, self._program = store, name, cycles, program
        self.accepted = self.project = project
        """The project as last accepted, and with the current route as the agent's only one."""
        self.unusable: dict[Route, RekindleError] = {}
        """Routes that are not used, with the reason."""
        self.agent = self.accept(project, on_this_host=on_this_host)

    def accept(self, project: Project, *, on_this_host: bool = False) -> AgentSpec:
        """Return the agent as the manifest describes it, on its first route."""
        first = find_routes(project, self._name)[0]
        routed = with_route(project, self._name, first)
        # Checks all routes, which `routed` no longer has.
        agent = make_agent(
            project,
            self._store,
            self._name,
            self._program,
            self._cycles,
            on_this_host=on_this_host,
        )
        self.unusable = {}
        for route, error in find_unusable_routes(project, self._name):
            self._leave_out(route, error)
        self.accepted, self.project = project, routed
        self.agent = self._add_routes(agent)
        return self.agent

    def open(self, route: Route) -> AgentSpec:
        """Return the agent on a route. If that fails, the agent stays where it is, without it."""
        routed = with_route(self.accepted, self._name, route)
        try:
            agent = make_agent(routed, self._store, self._name, (), self._cycles)
        except RekindleError as error:
            self._leave_out(route, error)
            self.agent = self._add_routes(self.agent)
            return self.agent
        self.project = routed
        self.agent = self._add_routes(agent)
        return self.agent

    def _leave_out(self, route: Route, error: RekindleError) -> None:
        self.unusable[route] = error
        hint = f" (→ {error.hint})" if error.hint else ""
        self._tell(TroubleReport(f"the route {route} is not used: {error}{hint}"))

    def _add_routes(self, agent: AgentSpec) -> AgentSpec:
        project, name = self.accepted, self._name
        routes = [one for one in find_routes(project, name) if one not in self.unusable]
        if self._program or len(routes) == 1:
            return msgspec.structs.replace(agent, routes=())
        return msgspec.structs.replace(
            agent,
            routes=tuple(routes),
            harnesses=list_route_harnesses(project, name),
            config_folders=find_config_folders(project, name, agent.harness, os.environ),
        )
