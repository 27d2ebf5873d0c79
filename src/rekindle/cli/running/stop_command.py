"""`rekindle stop`: stop agents and keep them stopped."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from rekindle import config
from rekindle.api.agent_store import AgentStore
from rekindle.api.stop_agents import (
    end_background,
    stop_agent,
    wait_for_ends,
)
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    open_store_of,
    print_note,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.config import Project
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import (
    AgentError,
    ManifestError,
    ManifestMissingError,
    NewerSchemaError,
    RekindleError,
    StoreError,
    UnknownAgentError,
    UsageError,
)
from rekindle.flows.operator.stop_agent import (
    LockStopper,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import (
    Settings,
)
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervisor_locks import OuterLock, list_held_locks
from rekindle.stores.folders import private_files
from rekindle.stores.folders.private_files import render_path
from rekindle.system import (
    clock,
    host,
)
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import (
    has_lost_fleet,
    is_trusted,
    require_no_lost_fleet,
)
from rekindle.wiring.agent_dir_list import require_accepted_dirs
from rekindle.wiring.open_store import open_store
from rekindle.wiring.running_agents import RunningAgents


@click.command()
@click.argument("agents", nargs=-1)
@click.option(
    "--all", "every", is_flag=True, help="Stop every agent in rekindle.yaml, like `down`."
)
@json_option
def stop(agents: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Stop AGENTS and keep them stopped until you start them again.

    A process that does not exit within ten seconds is killed. `rekindle run` continues where it
    left off. Without AGENTS, the command stops the only agent, or the only one that is running.
    """
    names = tuple(dict.fromkeys(agents))
    if every and names:
        raise UsageError(
            "`stop` needs agent names or --all",
            hint=f"`rekindle stop {' '.join(names)}` or `rekindle stop --all`",
        )
    if every or len(names) > 1:
        from rekindle.cli.running.up_command import stop_agents  # noqa: PLC0415 - it imports this module

        stop_agents(names, as_json=as_json)
    else:
        _stop_one(names[0] if names else None, as_json=as_json)


def _stop_one(agent: str | None, *, as_json: bool) -> None:
    project: Project | None = None
    try:
        project = load_to_stop()
        require_operator(project)
        name = _choose_to_stop(project, agent)
        store = _store_to_stop(project, name)
    except UsageError as error:
        if project is None or not find_unnamed_agents(project):
            raise  # Only the operator knows which agent to stop.
        stop_without_manifest((), error, every=True, as_json=as_json)
        return
    except (ManifestError, NewerSchemaError, UnknownAgentError, StoreError) as error:
        stop_without_manifest((agent,) if agent else (), error, as_json=as_json)
        return
    was_running = stop_agent(store, name)
    if was_running or not has_lost_fleet(project):
        _print_stopped(name, was_running=was_running, as_json=as_json)
    if not was_running:
        _note_above(project, name)
    unnamed = find_unnamed_agents(project) if agent is None and isinstance(store, FileStore) else []
    if unnamed:
        words = f"rekindle.yaml does not name {', '.join(unnamed)}"
        stop_without_manifest(unnamed, ManifestError(words), as_json=as_json)
    require_no_lost_fleet(project, [] if was_running else [name])


def _print_stopped(name: str, *, was_running: bool, as_json: bool) -> None:
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays stopped'}")


def load_to_stop() -> Project:
    """Return the project in which to stop agents, normally the nearest one.

    An agent may have created a manifest in a subfolder. If nothing is running in the nearest
    project and the user has not accepted it, return the nearest parent project with running agents.

    Raises:
        ManifestMissingError: Agents are running in a nearer folder whose manifest is missing.
    """
    start = find_current_folder()
    nearest, meant = config.find_project(start), RunningAgents().find_nearest(start)
    if nearest is None or meant is None or meant == nearest:
        return config.load_project(start)
    where = to_one_line(render_path(meant))
    if meant.is_relative_to(nearest):
        raise ManifestMissingError(where)
    if is_trusted(nearest):
        return config.load_project(start)
    echo(
        f"Note: using the project {where}: nothing is running in {to_one_line(nearest.name)}, and "
        f"you have not accepted its {MANIFEST_FILE} on this host",
        err=True,
    )
    if not (meant / MANIFEST_FILE).exists():
        raise ManifestMissingError(where)
    return config.load_project(meant)


def _choose_to_stop(project: Project, agent: str | None) -> str:
    """Return the named or default agent, or the only one that is running here.

    The manifest alone cannot decide, because an agent can edit it to add other agents or change
    their folders.
    """
    try:
        if agent is None:
            require_accepted_dirs(project, find_current_folder())
        return resolve_agent(project, agent)
    except UsageError:
        running = [*list_held_locks(project.path)] or [*RunningAgents().find(project.path)]
        if len(running) != 1:
            raise
        return running[0]


def _store_to_stop(project: Project, name: str) -> AgentStore:
    """Return the agent's store.

    If the agent is running on this host, return the store for its local files, even with `fleet:`.
    """
    if name in RunningAgents().find(project.path):
        return open_store(project, say=print_note)
    return open_store_of(project)


def _note_above(project: Project, name: str) -> None:
    """Tell the user if an agent with the same name is running in a parent folder."""
    running = RunningAgents()
    above = next((at for at in project.path.parents if name in running.find(at)), None)
    if above is not None:
        where = to_one_line(render_path(above))
        command = f"cd {shlex.quote(where)} && rekindle stop {name}"
        echo(f"Note: another agent {name} is running in {where}; `{command}` stops it", err=True)


def find_unnamed_agents(project: Project) -> list[str]:
    """Return the agents that are running in this folder but are no longer in the manifest."""
    running = RunningAgents().find(project.path)
    return [name for name in running if name not in project.manifest.agents]


def stop_without_manifest(
    agents: Sequence[str], error: RekindleError, *, every: bool = False, as_json: bool
) -> None:
    """Stop agents in this folder whose manifest cannot be read or does not name them.

    Without names, the only agent is stopped. With `every`, all agents are stopped.
    """
    running = RunningAgents()
    folder = running.find_nearest(find_current_folder()) or find_current_folder()
    locks = running.find(folder)
    refuse_agent_of(folder, locks, "rekindle stop")
    meant = [name for name in locks if not agents or name in agents]
    if len(meant) > 1 and not (agents or every):
        error.hint = (
            f"running agents: {', '.join(meant)}; use `rekindle stop NAME` or `rekindle down`"
        )
        raise error
    if not meant:
        raise error
    stop_by_locks(folder, {name: locks[name] for name in meant}, error, as_json=as_json)


def stop_by_locks(
    folder: Path, locks: Mapping[str, OuterLock], error: RekindleError, *, as_json: bool
) -> None:
    """Stop the agents that hold these locks. `error` explains why the manifest is not used."""
    stops = {name: LockStopper(lock, clock.read_clock) for name, lock in locks.items()}
    for stopping in stops.values():
        stopping.tell()
    left = wait_for_ends(stops)
    for name, stopping in stops.items():
        if stopping.was_killed or not stopping.was_running:
            end_background(_open_default_store(folder), name, was_killed=stopping.was_killed)
        if name not in left:
            _print_stopped(name, was_running=True, as_json=as_json)
    if left:
        raise AgentError(
            f"these agents have not exited yet: {', '.join(left)}",
            hint="repeat the command in a moment",
        ) from error
    echo(f"Note: {error}", err=True)


def _open_default_store(folder: Path) -> FileStore:
    """Open a project's store without its manifest, to find processes that an agent left running."""
    own = private_files.find_private_project(folder)
    return FileStore(
        folder, host=host.identify_host(), settings=Settings(), clock=clock.read_clock, private=own
    )
