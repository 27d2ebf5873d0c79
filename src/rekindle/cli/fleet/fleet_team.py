"""`rekindle fleet team`: show the teams that share a fleet, and set their caps."""

from typing import Any

import click

from rekindle.cli.options import find_fleet, json_option, open_fleet, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.errors import UsageError
from rekindle.policy.fleet import team_permits
from rekindle.policy.fleet.team_access import require_team_name
from rekindle.policy.fleet.team_permits import TeamCaps, TeamState
from rekindle.system import clock


@click.command(short_help="Show the teams with caps, or set a team's caps.")
@click.argument("name", required=False)
@click.option("--agents", metavar="NUMBER", help="Maximum number of running agents, or `none`.")
@click.option(
    "--money-per-day", "money", metavar="DOLLARS", help="Maximum spending per UTC day, or `none`."
)
@json_option
def team(name: str | None, agents: str | None, money: str | None, as_json: bool) -> None:
    """Show all teams with caps, or the team NAME. With an option, set a cap of that team.

    The agents of a team at its cap wait, and start when another agent of the team has finished a
    cycle or when the next day begins. A new cap applies to each agent from its next cycle on.
    """
    is_set = agents is not None or money is not None
    if is_set and name is None:
        raise UsageError(
            "--agents and --money-per-day need a team", hint="use `rekindle fleet team NAME ...`"
        )
    project, fleet = find_fleet()
    if is_set:
        require_operator(project)
    names = [] if name is None else [require_team_name(name)]
    store = open_fleet(project, fleet)
    from rekindle.fleet.teams.team_client import TeamClient  # noqa: PLC0415 - needs the fleet extra

    client = TeamClient(store.agents.client)
    for changed in names if is_set else []:
        known = store.wait_for(client.find(changed))
        caps = team_permits.change_caps(known.caps if known else TeamCaps(), agents, money)
        store.wait_for(client.set_caps(changed, caps))
    teams = [store.wait_for(client.read(one)) for one in names]
    teams = teams if names else store.wait_for(client.list_teams())
    if as_json:
        print_json({"teams": [_make_json(found) for found in teams]})
        return
    if not teams:
        echo("No team has caps. Next: `rekindle fleet team NAME --agents NUMBER` sets one.")
    for found in teams:
        echo(_render_team(found))


def _make_json(found: TeamState) -> dict[str, Any]:
    return {
        "team": found.name,
        "running": len(found.held),
        "waiting": len(found.waiting),
        "agents": found.caps.agents,
        "usd_today": found.spent_on(clock.read_clock()),
        "usd_per_day": found.caps.usd_per_day,
    }


def _render_team(found: TeamState) -> str:
    caps, spent = found.caps, found.spent_on(clock.read_clock())
    agents = "no limit" if caps.agents is None else f"at most {caps.agents}"
    money = "no limit" if caps.usd_per_day is None else f"at most ${caps.usd_per_day:.2f}"
    return (
        f"{found.name}  {len(found.held)} running ({agents}), {len(found.waiting)} waiting, "
        f"${spent:.2f} spent today ({money})"
    )
