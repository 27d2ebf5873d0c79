"""`rekindle run` and `rekindle brief` for agents that run on a fleet."""

from rekindle.cli.options import open_fleet
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.config import Project
from rekindle.errors import AgentError
from rekindle.policy.settings.runtime_settings import (
    FleetSettings,
    find_cycle_limit,
)
from rekindle.thresholds.fleet_limits import FLEET_BRIEF_WAIT_SECONDS


def run_on_fleet(
    project: Project,
    fleet: FleetSettings,
    name: str,
    cycles: int | None,
    *,
    unbounded: bool,
) -> None:
    """Start an agent on the fleet."""
    store = open_fleet(project, fleet)
    limit = find_cycle_limit(project.manifest.agents[name]) if cycles is None else cycles
    before = store.run(name, limit, unbounded=unbounded)
    did = "is now on the fleet, which will run it" if before is None else "is running on the fleet"
    pool = f"a host of pool {fleet.pool}"
    where = f"on {pool}" if store.has_host() else f"as soon as {pool} has a free slot"
    print_styled(f"✓ {name}: {did}, {where}", fg="green")
    echo(f"Next: `rekindle status {name}` shows its state, `rekindle stop {name}` stops it.")


def write_fleet_brief(project: Project, fleet: FleetSettings, name: str, *, as_json: bool) -> None:
    """Ask the agent's host to write a brief, and print the brief."""
    store = open_fleet(project, fleet)
    text = store.write_brief(name, FLEET_BRIEF_WAIT_SECONDS)
    brief = text or store.document(name, "brief")
    if brief is None:
        raise AgentError(
            f"no brief for {name} has been written yet",
            hint=(
                f"`rekindle status {name}` shows its host; see run/output.log there for the reason"
            ),
        )
    if as_json:
        print_json({"agent": name, "new": text is not None, "text": brief.decode()})
        return
    echo(brief.decode(), nl=False)
    if text is None:
        echo("Note: no new brief was written; this is the previous one.", err=True)
