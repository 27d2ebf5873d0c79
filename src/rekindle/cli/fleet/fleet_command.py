"""`rekindle fleet`: run agents on many hosts."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rekindle import config
from rekindle.cli.fleet.containment_options import containment_options
from rekindle.cli.fleet.deploy_command import (
    accept_worker,
    build_option,
    decider,
    deploy,
)
from rekindle.cli.fleet.fleet_hosts import DurationOption, drain, hosts, status
from rekindle.cli.fleet.fleet_keys import keys
from rekindle.cli.fleet.fleet_team import team
from rekindle.cli.options import (
    Number,
    find_current_folder,
    find_fleet,
    json_option,
    open_fleet,
    print_note,
    require_operator,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.cli.trust_prompt import (
    ensure_trust,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.errors import (
    UsageError,
    translate_os_errors,
)
from rekindle.formats.identifiers import (
    require_agent_name,
    to_one_line,
)
from rekindle.formats.validation import Duration
from rekindle.policy.fleet.team_access import parse_teams
from rekindle.policy.settings.fleet_settings import list_engine_files
from rekindle.policy.settings.metrics_settings import MetricsSettings
from rekindle.policy.settings.runtime_settings import (
    FLEET_SLOTS,
    FleetSettings,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system import host
from rekindle.system.files import durable_files
from rekindle.wiring import credential_setup, host_containment
from rekindle.wiring.access.trust_checks import (
    accept_settings,
)
from rekindle.wiring.open_store import open_store

if TYPE_CHECKING:
    from rekindle.fleet.commands.move_agent import AgentMover

_PORT = Number(1, 65_535)
_USUAL_PORT = int(FleetSettings().address.rpartition(":")[2])


@click.group()
def fleet() -> None:
    """Run agents on many hosts."""


fleet.add_command(decider)
fleet.add_command(deploy)


@fleet.command()
@click.option(
    "--port", type=_PORT, default=_USUAL_PORT, show_default=True, help="Port for the engine."
)
@click.option(
    "--ui-port", type=_PORT, default=8233, show_default=True, help="Port for the engine's web UI."
)
@click.option(
    "--db",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for the engine's state. Default: this project's .rekindle/fleet.db.",
)
@click.option("--memory", is_flag=True, help="Keep the engine's state in memory only.")
@click.option(
    "--namespace",
    metavar="NAME",
    default=FleetSettings().namespace,
    show_default=True,
    help="Namespace to create.",
)
def dev(port: int, ui_port: int, db: Path | None, memory: bool, namespace: str) -> None:
    """Start a development engine on this host, in the foreground.

    The engine includes a web UI and listens only on 127.0.0.1. Press Ctrl-C to stop it. It has no
    access control, so use your own engine for more than one host.
    """
    from rekindle.fleet.engine.dev_server import DevServer, find_server  # noqa: PLC0415 - needs the fleet extra

    if memory and db:
        raise UsageError("--db and --memory cannot be used together", hint="use only one of them")
    database = None if memory else db or _find_database()
    server = DevServer(port, ui_port, database, namespace)
    program = find_server()
    server.require_ports()
    storage = f"state in {database}" if database else "state in memory only"
    echo(f"Engine: 127.0.0.1:{port}, namespace {namespace}; {storage}.")
    echo(f"UI:     http://127.0.0.1:{ui_port}")
    settings = f"address: 127.0.0.1:{port}, namespace: {namespace}"
    echo(f"  → add `fleet: {{{settings}}}` to rekindle.yaml, then run `rekindle fleet worker`")
    sys.stdout.flush()  # The engine replaces this process, so unflushed output would be lost.
    server.become(program, os.environ)


@fleet.command()
@click.option("--pool", metavar="NAME", help="Pool for this host to join. Default: `fleet: pool:`.")
@click.option(
    "--slots",
    type=Number(1),
    default=FLEET_SLOTS,
    show_default=True,
    help="Maximum number of agents to run at the same time.",
)
@click.option(
    "--host",
    "name",
    metavar="NAME",
    help="Name of this host on the fleet. Default: its host name.",
)
@click.option(
    "--root",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the agents on this host. Default: this project's .rekindle/fleet.",
)
@click.option(
    "--metrics",
    "listen",
    metavar="HOST:PORT",
    help="Address where Prometheus can read this host's metrics. Default: `fleet: metrics:`.",
)
@click.option(
    "--health",
    "health_address",
    metavar="HOST:PORT",
    help="Address where /healthz and /readyz report the state of this worker. Default: none.",
)
@click.option(
    "--teams",
    metavar="TEAM,...",
    help="Accept only agents of these teams (`fleet: team:`). Default: all agents.",
)
@click.option("--no-decide", is_flag=True, help="Leave decisions to `rekindle fleet decider`.")
@build_option
@click.option(
    "--drain",
    "drain_for",
    type=DurationOption(),
    help="On SIGTERM, first finish the running cycles, for at most this time.",
)
@containment_options
@click.option(
    "--credentials",
    metavar="PROGRAM",
    help="Program that prints short-lived credentials for each launch on this host. Keys in this "
    "worker's environment are then not passed on. Default: none.",
)
@trust_option
def worker(
    *,
    pool: str | None,
    slots: int,
    name: str | None,
    root: Path | None,
    listen: str | None,
    health_address: str | None,
    teams: str | None,
    no_decide: bool,
    build: str,
    drain_for: Duration | None,
    sandbox: str,
    memory: int | None,
    processes: int | None,
    cpu: float | None,
    credentials: str | None,
    trust: bool,
) -> None:
    """Run the fleet's agents on this host until you stop the worker.

    When the worker stops, its agents continue on another host. Agents get their environment,
    including the model's API key, from the host that runs them. With --credentials, they get no
    key from it.
    """
    project, fleet_settings = accept_worker(trust=trust)
    floor = host_containment.find_host_floor(
        sandbox,
        slots,
        secrets=[str(project.path / file) for file in list_engine_files(fleet_settings)],
        memory=memory,
        processes=processes,
        cpu=cpu,
    )
    if note := host_containment.find_missing_limit(floor):
        echo(note)
    home = RekindleFolder(project.path)
    place = (root or home.path / "fleet").resolve()
    helper = credential_setup.require_helper(credentials, place) if credentials else ""
    allowed = parse_teams(teams) if teams is not None else frozenset[str]()
    from rekindle.fleet.engine.connect import connect_when_up  # noqa: PLC0415 - needs the fleet extra
    from rekindle.fleet.engine.telemetry import make_runtime  # noqa: PLC0415 - as above
    from rekindle.fleet.hosts.health_server import WorkerHealth, serve_health  # noqa: PLC0415 - as above
    from rekindle.fleet.hosts.worker import run_host  # noqa: PLC0415 - as above

    if root is None:
        home.make()
    host_name = name or f"{os.uname().nodename}-{host.identify_host()[:8]}"
    pool = pool or fleet_settings.pool
    metrics = MetricsSettings(prometheus=listen) if listen else fleet_settings.metrics
    runtime = make_runtime(metrics, {"host": host_name, "pool": pool})

    async def run_worker() -> None:
        health = WorkerHealth()
        async with serve_health(health_address, health):
            await run_host(
                await connect_when_up(fleet_settings, project.path, os.environ, echo, runtime),
                host=host_name,
                pool=pool,
                slots=slots,
                root=place,
                say=echo,
                teams=allowed,
                floor=floor,
                credentials=helper,
                heartbeat_seconds=float(fleet_settings.heartbeat_timeout),
                build=build,
                decides=not no_decide,
                health=health,
                drain_seconds=float(drain_for or 0),
            )

    asyncio.run(run_worker())


@fleet.command("import")
@click.argument("agents", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Import every agent in rekindle.yaml.")
@trust_option
@json_option
def import_agents(agents: tuple[str, ...], every: bool, trust: bool, as_json: bool) -> None:
    """Move AGENTS from this folder to the fleet, with their history.

    Each agent keeps its relay, loops, counters and spending. An agent that should be running
    continues on the fleet. Rekindle keeps the files in this folder but no longer writes to them.
    Rekindle pushes the current state of each agent's folder to the branch rekindle/AGENT/work on
    the folder's git remote.
    """
    project, fleet_settings = find_fleet()
    require_operator(project)
    names = [project.require_agent(name) for name in agents]
    if bool(names) == every:
        raise UsageError("`fleet import` needs agent names or --all", hint="use only one of them")
    names = names or project.declared_agents
    ensure_trust(project, trust=trust)
    for name in names:
        print_changes(name, accept_settings(project, name))
    mover = _make_mover(project, fleet_settings)
    rows = []
    for name in names:
        is_new = mover.send(name)
        rows.append({"agent": name, "imported": is_new})
        if not as_json:
            did = "moved to the fleet" if is_new else "is already on the fleet"
            echo(f"✓ {name}: {did}; `rekindle status {name}` shows its state")
    if as_json:
        print_json({"agents": rows})


@fleet.command()
@click.argument("agents", nargs=-1, required=True)
@json_option
def remove(agents: tuple[str, ...], as_json: bool) -> None:
    """Move AGENTS back to this folder, with their history.

    First stop the agents with `rekindle stop`. Otherwise, a running cycle is stopped immediately,
    and any work that it has not pushed stays on its host.
    """
    project, fleet_settings = find_fleet()
    require_operator(project)
    mover = _make_mover(project, fleet_settings)
    rows = []
    for name in agents:
        state = mover.fetch(require_agent_name(name))
        projection = state.projection
        branch = (
            make_work_ref(name).removeprefix("refs/heads/") if state.definition.remote else None
        )
        rows.append(
            {"agent": name, "cycle": projection.cycle, "events": projection.seq, "branch": branch}
        )
        if as_json:
            continue
        echo(f"✓ {name}: moved back here with its relay and loops, after cycle {projection.cycle}")
        if projection.unpushed is not None:
            words = to_one_line(projection.unpushed.words)
            where = f"is only on host {projection.moved.host}"
            print_styled(
                f"  ! its last work could not be pushed, and {where}: {words}", fg="yellow"
            )
        if branch:
            echo(f"  its work is on branch {branch} of its git remote; fetch it from there")
        else:
            echo("  its work is on the host that ran it last, because it has no git remote")
    if as_json:
        print_json({"agents": rows})
    else:
        echo("Next: remove `fleet:` from rekindle.yaml; then `rekindle run` continues here.")


@fleet.command(short_help="Print a new key that encrypts the fleet's data.")
def key() -> None:
    """Print a new key for `fleet: codec:`, which encrypts the data that the engine stores.

    The key is the only output on stdout. Every host in the fleet needs it. If you lose the key, the
    data that it encrypted cannot be recovered. To change keys, add the new key at the end of the
    list on every host, then move it to the front on every host. `rekindle fleet keys` shows when to
    remove the old key.
    """
    from rekindle.fleet.engine import encryption_keys  # noqa: PLC0415 - needs the fleet extra

    echo(encryption_keys.generate_key())
    echo("Store it with your other secrets, and set it in a variable on each host:", err=True)
    echo("  → rekindle.yaml: `fleet: {codec: {keys: [$REKINDLE_FLEET_KEY]}}`", err=True)
    echo("  → or in a file with mode 0600: `fleet: {codec: {key_files: [FILE]}}`", err=True)


fleet.add_command(keys)
fleet.add_command(team)
fleet.add_command(hosts)
fleet.add_command(status)
fleet.add_command(drain)


def _make_mover(project: Project, fleet: FleetSettings) -> "AgentMover":
    store = open_fleet(project, fleet)
    from rekindle.fleet.commands.move_agent import AgentMover  # noqa: PLC0415 - needs the fleet extra

    return AgentMover(project, fleet, open_store(project, say=print_note), store)


def _find_database() -> Path | None:
    project = config.find_project(find_current_folder())
    if project is None:
        return None
    root = RekindleFolder(project)
    root.make()
    database = root.path / "fleet.db"
    # Refuse a symbolic link, because the server would follow it. If the file is missing, the server
    # creates it.
    with translate_os_errors(database), suppress(FileNotFoundError):
        durable_files.close_descriptor(durable_files.open_plain(database, os.O_RDWR))
    return database
