"""`rekindle up` and `rekindle down`: run agents in the background, and stop them."""

from collections.abc import Callable, Sequence
from functools import partial

import click

from rekindle.api.start_agents import start_on_host
from rekindle.api.stop_agents import (
    end_background,
    make_stop,
    wait_for_ends,
)
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    budget_option,
    json_option,
    open_home,
    print_note,
    require_operator,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.running.stop_command import (
    find_unnamed_agents,
    load_to_stop,
    stop_without_manifest,
)
from rekindle.cli.trust_prompt import (
    trust_option,
)
from rekindle.errors import (
    AgentError,
    ManifestError,
    NewerSchemaError,
    RekindleError,
    StoreError,
    UnknownAgentError,
)
from rekindle.wiring.access.trust_checks import (
    has_lost_fleet,
    require_no_lost_fleet,
)
from rekindle.wiring.open_store import open_store
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.starting import background_start
from rekindle.wiring.starting.bring_up import (
    StartResult,
)


@click.command()
@click.argument("agents", nargs=-1)
@click.option(
    "--tmux", is_flag=True, help="Open a window for each agent in the tmux session `rekindle`."
)
@budget_option
@trust_option
@json_option
def up(agents: tuple[str, ...], tmux: bool, budget: str | None, trust: bool, as_json: bool) -> None:
    """Run AGENTS (by default, every agent in rekindle.yaml) in the background.

    Each agent has its own supervisor, which keeps running after you log out. `rekindle daemon`
    restarts supervisors that die, and `rekindle service install` starts the daemon at boot.
    """
    home = open_home(trust=trust)
    refuse_fleet(home.project)
    require_operator(home.project)
    names = [home.project.require_agent(name) for name in agents] or home.project.declared_agents
    home.operator.ensure_trust(home.project)
    rows = start_on_host(home, names, tmux=tmux, unbounded=budget == "none")
    if as_json:
        print_json({"agents": rows})
    else:
        for row in rows:
            echo(render_start_result(row))
        if tmux and names:
            echo(f"Next: {background_start.render_attach_hint()}")
    failed = [row.agent for row in rows if row.error]
    if failed:
        raise AgentError(
            f"not started: {', '.join(failed)}", hint="`rekindle doctor` checks each agent"
        )


def render_start_result(row: StartResult) -> str:
    """Return the result for one agent. All lines of a message except the first are indented."""
    sign = "✗" if row.error else "✓"
    words = (row.error or row.state).replace("\n", "\n  ")
    hint = f"\n  → {row.hint}" if row.hint else ""
    return f"{sign} {row.agent}: {words}{hint}"


def _collect_failures(actions: Sequence[Callable[[], None]]) -> list[RekindleError]:
    """Call every action, even if an earlier one fails, and return the errors."""
    failures: list[RekindleError] = []
    for act in actions:
        try:
            act()
        except RekindleError as error:
            failures.append(error)
    return failures


@click.command()
@click.argument("agents", nargs=-1)
@json_option
def down(agents: tuple[str, ...], as_json: bool) -> None:
    """Stop AGENTS, or every agent in rekindle.yaml, and keep them stopped."""
    stop_agents(agents, as_json=as_json)


def stop_agents(agents: Sequence[str], *, as_json: bool) -> None:
    """Stop the named agents, or all agents in the manifest, and print the results."""
    try:
        project = load_to_stop()
        named = [project.require_agent(name) for name in agents]
        running_here = RunningAgents().find(project.path)
        of_host = [name for name in named or running_here if name in running_here]
        if not of_host:
            refuse_fleet(project)  # Agents running on this host can be stopped even with `fleet:`.
        store = open_store(project, say=print_note)
    except (ManifestError, NewerSchemaError, UnknownAgentError, StoreError) as error:
        stop_without_manifest(agents, error, every=True, as_json=as_json)
        return
    require_operator(project)
    names = named or [*project.declared_agents, *find_unnamed_agents(project)]
    if project.settings.fleet is not None:
        names = of_host
    stops = {name: make_stop(store, name) for name in names}
    failed = _collect_failures([stopping.tell for stopping in stops.values()])
    running = [name for name, stopping in stops.items() if stopping.was_running]
    left = wait_for_ends({name: stops[name] for name in running})
    failed += _collect_failures(
        [
            partial(end_background, store, name, was_killed=stopping.was_killed)
            for name, stopping in stops.items()
        ]
    )
    failed += _collect_failures(
        [stops[name].require_stop_record for name in names if name not in left]
    )
    elsewhere = [name for name in names if name not in running]
    is_lost = has_lost_fleet(project)
    failed += _collect_failures([partial(require_no_lost_fleet, project, elsewhere)])
    if as_json:
        unsure = elsewhere if is_lost else []
        stopped = [name for name in names if name not in {*left, *unsure}]
        print_json({"stopped": stopped, "were_running": running, "still_ending": left})
    else:
        for name in names:
            if name in left:
                echo(f"✗ {name}: has not exited yet")
            else:
                stays = (
                    ("is not running on this host")
                    if is_lost
                    else "is not running, and stays stopped"
                )
                echo(f"✓ {name}: {'stopped' if name in running else stays}")
    if failed:
        for other in failed[1:]:
            echo(f"Error: {other}", err=True)
        raise failed[0]
    if left:
        raise AgentError(
            f"these agents have not exited yet: {', '.join(left)}",
            hint="the stop is recorded; check again with `rekindle status`",
        )
