"""`rekindle run` and `rekindle brief` for agents that a fleet runs."""

from rekindle.cli.options import open_fleet
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.config import Project
from rekindle.errors import AgentError, OwnershipError
from rekindle.policy.settings.runtime_settings import (
    FleetSettings,
    find_cycle_limit,
)
from rekindle.thresholds.fleet_limits import FLEET_BRIEF_WAIT_SECONDS
from rekindle.wiring.open_store import open_store


def run_on_fleet(
    project: Project,
    fleet: FleetSettings,
    name: str,
    cycles: int | None,
    *,
    unbounded: bool,
) -> None:
    """Have the fleet run an agent; refuse an agent that has a history only in this folder."""
    there = open_fleet(project, fleet)
    if not there.exists(name) and open_store(project).has_history(name):
        raise OwnershipError(
            f"agent {name} lives in this folder, and the fleet does not know it",
            hint=f"`rekindle fleet import {name}` brings it there with all that is known of it",
        )
    many = find_cycle_limit(project.manifest.agents[name]) if cycles is None else cycles
    before = there.run(name, many, unbounded=unbounded)
    did = "the fleet has it now, and runs it" if before is None else "the fleet runs it"
    pool = f"a host of pool {fleet.pool}"
    where = f"on {pool}" if there.has_host() else f"as soon as {pool} is up, and has room"
    print_styled(f"✓ {name}: {did}, {where}", fg="green")
    echo(f"Next: `rekindle status {name}` tells how it is, `rekindle stop {name}` stops it.")


def write_fleet_brief(project: Project, fleet: FleetSettings, name: str, *, as_json: bool) -> None:
    """Have the agent's host write a brief, and print it."""
    there = open_fleet(project, fleet)
    text = there.write_brief(name, FLEET_BRIEF_WAIT_SECONDS)
    standing = text or there.document(name, "brief")
    if standing is None:
        raise AgentError(
            f"no brief of {name} was written",
            hint=f"`rekindle status {name}` names its host, where run/output.log says why",
        )
    if as_json:
        print_json({"agent": name, "new": text is not None, "text": standing.decode()})
        return
    echo(standing.decode(), nl=False)
    if text is None:
        echo("Note: nothing newer was written: this is the last one.", err=True)
