"""`rekindle stop`, `restart`: durable commands of the operator."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Protocol

import click

from rekindle import config
from rekindle.cli.options import (
    AgentStore,
    accept_log,
    find_current_folder,
    json_option,
    open_store_of,
    print_note,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust_prompt import (
    ensure_trust,
    print_changes,
    trust_option,
)
from rekindle.config import Project
from rekindle.documents.events import RestartRequested
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import (
    AgentError,
    ConfinedError,
    DocumentError,
    ManifestError,
    ManifestMissingError,
    NewerSchemaError,
    RekindleError,
    StoreError,
    SupervisedError,
    UnknownAgentError,
    UsageError,
)
from rekindle.flows.launches.background_processes import end_all_processes
from rekindle.flows.operator.stop_agent import (
    AgentStopper,
    LockStopper,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import (
    STOP_SECONDS,
    Settings,
)
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervisor_locks import list_held_locks
from rekindle.stores.folders import private_files
from rekindle.stores.folders.private_files import render_path
from rekindle.system import (
    clock,
    host,
)
from rekindle.system.processes import launch_processes
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.thresholds import screens
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import (
    accept_settings,
    has_lost_fleet,
    is_trusted,
    require_no_lost_fleet,
)
from rekindle.wiring.agent_dir_list import require_accepted_dirs
from rekindle.wiring.open_store import open_store
from rekindle.wiring.running_agents import RunningAgents

_Restart = Literal["supervised", "unsupervised", "new", "done"]
"""Whether a supervisor restarts the agent, a later start does, or there is nothing to restart."""
_NOTHING_TO_RESTART: dict[_Restart, str] = {
    "new": "it was never started",
    "done": "its work is done",
}


class PendingStop(Protocol):
    """A stop that was recorded, and the supervisor that has to exit."""

    def has_ended(self) -> bool: ...

    def kill(self) -> None:
        """Kill the supervisor if it is a process of this host."""


@click.command()
@click.argument("agents", nargs=-1)
@click.option(
    "--all", "every", is_flag=True, help="Stop every agent of the manifest, as `down` does."
)
@json_option
def stop(agents: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Stop AGENTS, and keep them stopped: no watchdog starts them until you do.

    A process that does not exit within ten seconds is killed; `rekindle run` continues where it
    was. Without AGENTS, the only agent is stopped, or the only one that runs.
    """
    names = tuple(dict.fromkeys(agents))
    if every and names:
        raise UsageError(
            "`stop` takes agents or --all",
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
            raise  # only the operator knows which agent is meant
        stop_without_manifest((), error, every=True, as_json=as_json)
        return
    except (ManifestError, NewerSchemaError, UnknownAgentError, StoreError) as error:
        stop_without_manifest((agent,) if agent else (), error, as_json=as_json)
        return
    stopping = make_stop(store, name)
    stopping.tell()
    if wait_for_ends({name: stopping}):
        raise AgentError(
            f"{name} is to stop, but its supervisor has not exited yet",
            hint="the stop is recorded: check again with `rekindle status`",
        )
    try:
        end_background(store, name, was_killed=stopping.was_killed)
    finally:
        stopping.require_stop_record()
    if stopping.was_running or not has_lost_fleet(project):
        _print_stopped(name, was_running=stopping.was_running, as_json=as_json)
    if not stopping.was_running:
        _note_above(project, name)
    unnamed = find_unnamed_agents(project) if agent is None and isinstance(store, FileStore) else []
    if unnamed:
        words = f"rekindle.yaml does not name {', '.join(unnamed)}"
        stop_without_manifest(unnamed, ManifestError(words), as_json=as_json)
    require_no_lost_fleet(project, [] if stopping.was_running else [name])


def _print_stopped(name: str, *, was_running: bool, as_json: bool) -> None:
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays stopped'}")


def load_to_stop() -> Project:
    """Return the project whose agents are to stop: the nearest one.

    If nothing runs in the nearest project and the user has not accepted it, an agent may have
    created its manifest in a folder below its own. Then the project above whose agents run is
    returned.

    Raises:
        ManifestMissingError: Agents run in a nearer folder that has lost its manifest.
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
        f"Note: using the project {where}: nothing runs in {to_one_line(nearest.name)}, and you"
        f" have not accepted its {MANIFEST_FILE} on this host",
        err=True,
    )
    if not (meant / MANIFEST_FILE).exists():
        raise ManifestMissingError(where)
    return config.load_project(meant)


def _choose_to_stop(project: Project, agent: str | None) -> str:
    """Return the named agent or the default one; if that is ambiguous, the only one that runs here.

    An agent can edit the manifest: it can add other agents, and change the folder of each.
    """
    try:
        if agent is None:
            require_accepted_dirs(project, find_current_folder())
        return resolve_agent(project, agent)
    except UsageError:
        found = [*list_held_locks(project.path)] or [*RunningAgents().find(project.path)]
        if len(found) != 1:
            raise
        return found[0]


def _store_to_stop(project: Project, name: str) -> AgentStore:
    """Return the store of an agent: the files if it runs on this host, even with `fleet:`."""
    if name in RunningAgents().find(project.path):
        return open_store(project, say=print_note)
    return open_store_of(project)


def _note_above(project: Project, name: str) -> None:
    """Print that an agent of the same name runs in a folder above: the user may have meant it."""
    running = RunningAgents()
    above = next((at for at in project.path.parents if name in running.find(at)), None)
    if above is not None:
        where = to_one_line(render_path(above))
        command = f"cd {shlex.quote(where)} && rekindle stop {name}"
        echo(f"Note: another agent {name} runs in {where}; `{command}` stops it", err=True)


def find_unnamed_agents(project: Project) -> list[str]:
    """Return the agents that run in this folder and are no longer in the manifest."""
    running = RunningAgents().find(project.path)
    return [name for name in running if name not in project.manifest.agents]


def stop_without_manifest(
    agents: Sequence[str], error: RekindleError, *, every: bool = False, as_json: bool
) -> None:
    """Stop agents of this folder whose manifest cannot be read or does not name them.

    Without names, the only agent is stopped; with `every`, all of them.
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
    stops = {name: LockStopper(locks[name], clock.read_clock) for name in meant}
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
            f"has not exited yet: {', '.join(left)}", hint="repeat the command in a moment"
        ) from error
    echo(f"Note: {error}", err=True)


def _open_default_store(folder: Path) -> FileStore:
    """Open the store of a project without its manifest, to find what an agent left running."""
    own = private_files.find_private_project(folder)
    return FileStore(
        folder, host=host.identify_host(), settings=Settings(), clock=clock.read_clock, private=own
    )


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--fresh", is_flag=True, help="Start a fresh session instead of resuming.")
@trust_option
@json_option
def restart(agents: tuple[str, ...], fresh: bool, trust: bool, as_json: bool) -> None:
    """Start AGENTS again now: from safe mode, from a wait, or from their current work.

    The spending of an agent stays counted; if its run was over, a new run starts at zero. An agent
    that was never started, or whose work is done, is started by `run` or `up`.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    named = [project.require_agent(name) for name in dict.fromkeys(agents)]
    names = named or [resolve_agent(project, None)]
    ensure_trust(project, trust=trust)
    restarted: dict[str, _Restart] = {}
    failed = []
    for name in names:
        try:
            restarted[name] = _restart(project, name, fresh=fresh)
        except RekindleError as error:
            failed.append(error)
    _print_restarted(restarted, as_json=as_json, is_list=len(names) > 1, fresh=fresh)
    for other in failed[1:]:
        echo(f"Error: {other}", err=True)
    if failed:
        raise failed[0]


def _restart(project: Project, name: str, *, fresh: bool) -> _Restart:
    """Request a restart of an agent that was started before; return who starts it."""
    if project.settings.fleet is not None:  # the connection itself uses accepted settings
        print_changes(name, accept_settings(project, name))
    store = open_store_of(project)
    accept_log(store, name)
    idle = _find_nothing_to_restart(store, name) if isinstance(store, FileStore) else None
    if not idle:
        store.create(name)
    if isinstance(store, FileStore):
        from rekindle.wiring.supervisor_setup import check_settings  # noqa: PLC0415 - `stop` must start fast

        check_settings(project, store, name)
    print_changes(name, accept_settings(project, name))
    if idle:
        return idle
    store.prepare_start(name, fresh=fresh)
    now, run = clock.read_clock(), store.read(name).projection.run
    store.submit(
        name, RestartRequested(ts=now, fresh=fresh), policy.make_desired_event(run, "running", now)
    )
    return "supervised" if store.is_supervised(name) else "unsupervised"


def _find_nothing_to_restart(store: FileStore, name: str) -> Literal["new", "done"] | None:
    """Return why there is nothing to restart, or None if there is something."""
    if store.is_supervised(name):
        return None
    known = store.read(name).projection if store.exists(name) else None
    if known is None or (known.run.said is None and not known.attempts):
        return "new"
    return "done" if policy.is_done(known.run) else None


def _print_restarted(
    restarted: Mapping[str, _Restart], *, as_json: bool, is_list: bool, fresh: bool
) -> None:
    """Print what happens to each agent next, which depends on whether it has a supervisor."""
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


class _FleetStop:
    """The stop of an agent on a fleet: the engine records and delivers it."""

    def __init__(self, store: AgentStore, agent: str) -> None:
        self._store, self._agent = store, agent
        self.was_running = False
        self.was_killed = False

    def tell(self) -> None:
        self.was_running = self._store.is_supervised(self._agent)
        self._store.create(self._agent)
        run = self._store.read(self._agent).projection.run
        self._store.submit(
            self._agent, policy.make_desired_event(run, "stopped", clock.read_clock())
        )

    def has_ended(self) -> bool:
        return not self._store.is_supervised(self._agent)

    def kill(self) -> None:
        """Wait longer: the host of the agent ends it, and needs time to receive the stop."""
        wait_until(self.has_ended, screens.STOP_WAIT_SECONDS - screens.STOP_SUPERVISOR_SECONDS)

    def require_stop_record(self) -> None:
        """Do nothing: the engine has confirmed the stop."""


def end_background(store: AgentStore, name: str, *, was_killed: bool = False) -> None:
    """End the processes that a killed supervisor left; on a fleet, each host does so itself."""
    patience = screens.STOP_KILLED_SECONDS if was_killed else STOP_SECONDS
    if not isinstance(store, FileStore):
        return
    try:
        with suppress(SupervisedError), store.supervising(name):
            _end_background(store, name, patience)
    except (ConfinedError, StoreError):
        # If the disk refuses us the lock, no other supervisor can hold it either.
        if not store.is_supervised(name):
            with suppress(ConfinedError, StoreError):
                _end_background(store, name, patience)


def _end_background(store: FileStore, name: str, patience: float) -> None:
    processes, project, attempts = HostProcesses(), store.root.project, {}
    with suppress(DocumentError):  # the agent may have damaged its log; other records remain
        attempts = store.read(name).projection.attempts
    end_all_processes(project, name, processes, attempts, patience=patience)
    for mark in launch_processes.find_marks(project, name):
        processes.end_launch_processes(mark, boot=processes.boot(), uptime=0.0, patience=patience)


def make_stop(store: AgentStore, agent: str) -> "AgentStopper | _FleetStop":
    """Return the stop of an agent on this host or on a fleet."""
    if isinstance(store, FileStore):
        return AgentStopper(store, agent, clock.read_clock)
    return _FleetStop(store, agent)


def wait_for_ends(stops: Mapping[str, PendingStop]) -> list[str]:
    """Wait until the supervisors exit, and kill late ones; return the agents that still run."""

    def find_left() -> list[str]:
        return [name for name, stopping in stops.items() if not stopping.has_ended()]

    if wait_until(lambda: not find_left(), screens.STOP_SUPERVISOR_SECONDS):
        return []
    for name in find_left():
        stops[name].kill()
    wait_until(lambda: not find_left(), screens.STOP_KILLED_SECONDS)
    return find_left()


def wait_until(has_ended: Callable[[], bool], seconds: float = screens.STOP_WAIT_SECONDS) -> bool:
    """Return whether a supervisor has exited within this time."""
    deadline = time.monotonic() + seconds
    while not has_ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(screens.STOP_POLL_SECONDS)
    return True
