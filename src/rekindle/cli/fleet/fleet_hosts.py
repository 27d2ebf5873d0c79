"""`rekindle fleet hosts`, `fleet status` and `fleet drain`: see and empty a fleet's hosts."""

from typing import TYPE_CHECKING

import click
import msgspec

from rekindle.cli.options import find_fleet, json_option, open_fleet, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.errors import UsageError
from rekindle.formats.counts import render_count
from rekindle.formats.validation import Duration, parse_duration
from rekindle.thresholds.host_limits import FLEET_DRAIN_HOURS
from rekindle.thresholds.screens import AGENTS_NAMED

if TYPE_CHECKING:
    from rekindle.fleet.engine.host_list import ListedHost

_USUAL_DRAIN = f"{FLEET_DRAIN_HOURS}h"


class DurationOption(click.ParamType[Duration]):
    """A duration such as 2h or 90s."""

    name = "DURATION"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Duration:
        try:
            return value if isinstance(value, Duration) else parse_duration(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command(short_help="List the hosts of the fleet.")
@json_option
def hosts(as_json: bool) -> None:
    """List the hosts whose workers are running, with the agents that they run."""
    project, fleet = find_fleet()
    store = open_fleet(project, fleet)
    from rekindle.fleet.engine.host_list import list_hosts  # noqa: PLC0415 - needs the fleet extra

    found = store.wait_for(list_hosts(store.agents.client))
    if as_json:
        print_json({"hosts": msgspec.to_builtins(found)})
        return
    for host in found:
        echo(_render_host(host))
    if not found:
        echo("No worker is running.")
        echo("Next: start one on a host with `rekindle fleet worker`.")


@click.command(short_help="Show how busy the fleet is.")
@json_option
def status(as_json: bool) -> None:
    """Show the number of hosts, the slots in use and the agents in each state.

    `rekindle status` shows the agents of this project.
    """
    project, fleet = find_fleet()
    store = open_fleet(project, fleet)
    from rekindle.fleet.engine.host_list import count_agents, list_hosts  # noqa: PLC0415 - needs the fleet extra

    client = store.agents.client
    found = store.wait_for(list_hosts(client))
    states = store.wait_for(count_agents(client))
    slots, used = sum(host.slots for host in found), sum(len(host.agents) for host in found)
    builds = sorted({host.build for host in found})
    if as_json:
        summary = {"hosts": len(found), "slots": slots, "used": used, "builds": builds}
        print_json({**summary, "agents": states})
        return
    versions = f", version {', '.join(builds)}" if builds else ""
    echo(f"Hosts:  {len(found)}, with {used} of {render_count(slots, 'slot')} in use{versions}")
    named = ", ".join(f"{count} {state}" for state, count in states.items())
    echo(f"Agents: {sum(states.values())}{f' ({named})' if named else ''}")
    if not found:
        echo("Next: start a worker on a host with `rekindle fleet worker`.")


@click.command(short_help="Let a host finish its cycles, and stop it.")
@click.argument("host")
@click.option(
    "--within",
    type=DurationOption(),
    default=_USUAL_DRAIN,
    show_default=True,
    help="Longest time to wait for running cycles. After that, their sessions are stopped.",
)
@json_option
def drain(host: str, within: Duration, as_json: bool) -> None:
    """Let HOST finish its running cycles, take no new ones, and exit.

    Each agent continues on another host in the pool after its cycle. To do the same for a worker
    that receives SIGTERM, start it with `rekindle fleet worker --drain DURATION`.
    """
    if within <= 0:
        raise UsageError("--within must be positive", hint="for example `--within 2h`")
    project, fleet = find_fleet()
    require_operator(project)
    store = open_fleet(project, fleet)
    from rekindle.fleet.engine.host_list import drain_host  # noqa: PLC0415 - needs the fleet extra

    store.wait_for(drain_host(store.agents.client, host, float(within)))
    if as_json:
        print_json({"host": host, "seconds": float(within)})
        return
    echo(f"✓ {host} finishes its cycles and then exits; its agents continue on other hosts")
    echo("Next: `rekindle fleet hosts` shows what it still runs.")


def _render_host(host: "ListedHost") -> str:
    named = ", ".join(host.agents[:AGENTS_NAMED])
    more = ", …" if len(host.agents) > AGENTS_NAMED else ""
    agents = f": {named}{more}" if named else ""
    state = "  draining" if host.draining else ""
    used = f"{len(host.agents)} of {render_count(host.slots, 'slot')} in use"
    heard = f"heard {host.seconds:.0f} s ago"
    about = f"pool {host.pool}, version {host.build}, {heard}"
    sandbox = f", {host.sandbox}" if host.sandbox else ""
    return f"{host.host}  {about}{sandbox}, {used}{agents}{state}"
