"""`rekindle restart`: restart agents now."""

from collections.abc import Mapping

import click

from rekindle import config
from rekindle.api.restart_agents import RestartResult, request_restart
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_store_of,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust_prompt import (
    make_operator,
    trust_option,
)
from rekindle.errors import (
    RekindleError,
)

_NOTHING_TO_RESTART: dict[RestartResult, str] = {
    "new": "it was never started",
    "done": "its work is done",
    "stopped": "you stopped it",
}


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--fresh", is_flag=True, help="Start a fresh session instead of resuming.")
@trust_option
@json_option
def restart(agents: tuple[str, ...], fresh: bool, trust: bool, as_json: bool) -> None:
    """Restart AGENTS now, whether they are in safe mode, waiting or working.

    The run's earlier spending still counts toward its budget. If the run was over, a new run starts
    with its spending at zero. If an agent is stopped or its work is done, use `run` or `up`
    instead.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    named = [project.require_agent(name) for name in dict.fromkeys(agents)]
    names = named or [resolve_agent(project, None)]
    operator = make_operator(trust=trust)
    operator.ensure_trust(project)
    restarted: dict[str, RestartResult] = {}
    failed = []
    for name in names:
        try:
            restarted[name] = request_restart(
                project, lambda: open_store_of(project), name, operator, fresh=fresh
            )
        except RekindleError as error:
            failed.append(error)
    _print_restarted(restarted, as_json=as_json, is_list=len(names) > 1, fresh=fresh)
    for other in failed[1:]:
        echo(f"Error: {other}", err=True)
    if failed:
        raise failed[0]


def _print_restarted(
    restarted: Mapping[str, RestartResult], *, as_json: bool, is_list: bool, fresh: bool
) -> None:
    """Print what will happen to each agent."""
    if as_json:
        rows = [
            {
                "agent": name,
                "desired": None if state in _NOTHING_TO_RESTART else "running",
                "supervised": state == "supervised",
            }
            for name, state in restarted.items()
        ]
        for row in [{"agents": rows}] if is_list else rows:
            print_json(row)
        return
    how = " in a fresh session" if fresh else ""
    for name, state in restarted.items():
        if state == "supervised":
            echo(f"✓ {name}: will be started again{how}")
            continue
        if state in _NOTHING_TO_RESTART:
            echo(f"· {name}: nothing is running: {_NOTHING_TO_RESTART[state]}")
        else:
            echo(f"✓ {name}: nothing is running; a watchdog may start it again{how}")
        echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to run it in the background.")
