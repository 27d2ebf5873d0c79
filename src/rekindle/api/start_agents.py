"""Start agents in the background, or on a fleet."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rekindle.errors import AgentError
from rekindle.policy.settings.runtime_settings import find_cycle_limit
from rekindle.wiring.starting.bring_up import AgentStarter, StartResult
from rekindle.wiring.supervisor_setup import check_agent, check_notify

if TYPE_CHECKING:
    from rekindle.api.home import Home


def start_agent(home: "Home", name: str, cycles: int | None) -> str:
    """Start one agent, and return its state in words."""
    if home.project.settings.fleet is not None:
        home.operator.accept_settings(home.project, name)
        entry, store = home.project.manifest.agents[name], home.store
        limit = find_cycle_limit(entry) if cycles is None else cycles
        fleet_store: Any = store
        fleet_store.run(name, limit)
        return "is running on the fleet"
    [result] = start_on_host(home, [name], cycles=cycles)
    if result.error:
        raise AgentError(f"{name} was not started: {result.error}", hint=result.hint)
    return result.state


def start_on_host(
    home: "Home",
    names: Sequence[str],
    *,
    cycles: int | None = None,
    tmux: bool = False,
    unbounded: bool = False,
) -> list[StartResult]:
    """Start agents on this host, each with its own supervisor."""
    project, operator, store = home.project, home.operator, home.require_files("up")
    check_notify(project, store)

    def accept_agent(name: str) -> None:
        operator.accept_log(store, name)
        check_agent(project, store, name)
        operator.accept_settings(project, name)

    starter = AgentStarter(
        project, store, accept_agent, tmux=tmux, unbounded=unbounded, cycles=cycles
    )
    return starter.bring_up(names)
