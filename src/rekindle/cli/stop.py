"""`rekindle stop`, `restart`: the operator's word, durable and above every marker."""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import click

from rekindle import config
from rekindle.cli.options import (
    Store,
    accept_log,
    agent_of,
    as_json,
    here,
    open_store_of,
    print_note,
    require_operator,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.documents.event import RestartAsked
from rekindle.documents.identity import one_line
from rekindle.documents.manifest import FILE
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
from rekindle.flows.background import end_everything
from rekindle.flows.stop_agent import StopAgent, StopLock
from rekindle.policy import run as policy
from rekindle.policy.settings import STOP_SECONDS, Settings
from rekindle.stores import private
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervision import outer_locks_held
from rekindle.stores.private import render_path
from rekindle.system import clock, host, orphans
from rekindle.system.processes import Processes
from rekindle.thresholds import screens
from rekindle.wiring.caller import refuse_agent_of
from rekindle.wiring.running import RunningAgents
from rekindle.wiring.store import open_store
from rekindle.wiring.trust import (
    accept_settings,
    has_lost_fleet,
    is_trusted,
    require_no_lost_fleet,
)

_PATIENCE_SECONDS = 2 * STOP_SECONDS + 5


class Stopping(Protocol):
    """A stop that was given, and the supervisor that has to end."""

    def has_ended(self) -> bool: ...

    def kill(self) -> None:
        """Kill the supervisor if it is a process of this host."""


@click.command()
@click.argument("agent", required=False)
@click.option("--all", "every", is_flag=True, help="Every agent of the manifest, as `down` does.")
@as_json
def stop(agent: str | None, every: bool, as_json: bool) -> None:
    """Stop AGENT, and have it stay stopped: nobody starts it until you say so.

    It is asked to end, and killed when it has not within ten seconds; `rekindle run` continues
    where it was.
    """
    if every:
        if agent:
            raise UsageError(
                "`stop` takes an agent or --all", hint=f"`rekindle stop {agent}` or `stop --all`"
            )
        from rekindle.cli.up import stop_agents  # noqa: PLC0415 - it needs this module

        stop_agents((), as_json=as_json)
        return
    project: Project | None = None
    try:
        project = load_to_stop()
        require_operator(project)
        name = _choose_to_stop(project, agent)
        store = _store_to_stop(project, name)
    except UsageError as error:
        if project is None or not running_unnamed(project):
            raise  # which of several is meant, only the operator can tell
        stop_without_manifest((), error, every=True, as_json=as_json)
        return
    except (ManifestError, NewerSchemaError, UnknownAgentError, StoreError) as error:
        stop_without_manifest((agent,) if agent else (), error, as_json=as_json)
        return
    stopping = stopping_of(store, name)
    stopping.tell()
    if wait_for_ends({name: stopping}):
        raise AgentError(
            f"{name} is to stop, and its supervisor has not ended yet",
            hint="the stop is kept: look again with `rekindle status`",
        )
    try:
        end_background(store, name, was_killed=stopping.was_killed)
    finally:
        stopping.require_record()
    if stopping.was_running or not has_lost_fleet(project):
        _say_stopped(name, was_running=stopping.was_running, as_json=as_json)
    if not stopping.was_running:
        _note_above(project, name)
    unnamed = running_unnamed(project) if agent is None and isinstance(store, FileStore) else []
    if unnamed:
        words = f"rekindle.yaml does not name {', '.join(unnamed)}"
        stop_without_manifest(unnamed, ManifestError(words), as_json=as_json)
    require_no_lost_fleet(project, [] if stopping.was_running else [name])


def _say_stopped(name: str, *, was_running: bool, as_json: bool) -> None:
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays so'}")


def load_to_stop() -> Project:
    """Return the project whose agents are to stop: the nearest one.

    If nothing runs in it and the user has not accepted it, an agent may have put its manifest into
    a folder below its own: then the project above whose agents run here is meant.

    Raises:
        ManifestMissingError: Agents run in a nearer folder that has lost its manifest.
    """
    start = here()
    nearest, meant = config.find(start), RunningAgents().find_nearest(start)
    if nearest is None or meant is None or meant == nearest:
        return config.load(start)
    where = one_line(render_path(meant))
    if meant.is_relative_to(nearest):
        raise ManifestMissingError(where)
    if is_trusted(nearest):
        return config.load(start)
    echo(
        f"Note: {where} is meant: nothing runs in {one_line(nearest.name)}, and you have not"
        f" accepted its {FILE} on this host",
        err=True,
    )
    if not (meant / FILE).exists():
        raise ManifestMissingError(where)
    return config.load(meant)


def _choose_to_stop(project: Project, agent: str | None) -> str:
    """Return the agent that is meant; if it is unclear, the only one that runs here.

    An agent can add others to the manifest.
    """
    try:
        return agent_of(project, agent)
    except UsageError:
        found = [*outer_locks_held(project.path)] or [*RunningAgents().find(project.path)]
        if len(found) != 1:
            raise
        return found[0]


def _store_to_stop(project: Project, name: str) -> Store:
    """Return what keeps the agent; the files, if it runs on this host whatever `fleet:` says."""
    if name in RunningAgents().find(project.path):
        return open_store(project, say=print_note)
    return open_store_of(project)


def _note_above(project: Project, name: str) -> None:
    """Name an agent of the same name that runs in a folder above: it may be the one meant."""
    running = RunningAgents()
    above = next((at for at in project.path.parents if name in running.find(at)), None)
    if above is not None:
        where = one_line(render_path(above))
        command = f"cd {shlex.quote(where)} && rekindle stop {name}"
        echo(f"Note: another agent {name} runs in {where}; `{command}` stops it", err=True)


def running_unnamed(project: Project) -> list[str]:
    """Return agents that run in this folder and that the manifest does not name any more."""
    running = RunningAgents().find(project.path)
    return [name for name in running if name not in project.manifest.agents]


def stop_without_manifest(
    agents: Sequence[str], error: RekindleError, *, every: bool = False, as_json: bool
) -> None:
    """Stop agents of this folder whose manifest cannot be read or does not name them.

    Without a name the only one is meant; `every`: all of them.
    """
    running = RunningAgents()
    folder = running.find_nearest(here()) or here()
    locks = running.find(folder)
    refuse_agent_of(folder, locks, "rekindle stop")
    meant = [name for name in locks if not agents or name in agents]
    if len(meant) > 1 and not (agents or every):
        error.hint = f"running: {', '.join(meant)}; `rekindle stop NAME` or `rekindle down`"
        raise error
    if not meant:
        raise error
    stops = {name: StopLock(locks[name], clock.now) for name in meant}
    for stopping in stops.values():
        stopping.tell()
    left = wait_for_ends(stops)
    for name, stopping in stops.items():
        if stopping.was_killed or not stopping.was_running:
            end_background(_open_default_store(folder), name, was_killed=stopping.was_killed)
        if name not in left:
            _say_stopped(name, was_running=True, as_json=as_json)
    if left:
        raise AgentError(
            f"still ending: {', '.join(left)}", hint="repeat the command in a moment"
        ) from error
    echo(f"Note: {error}", err=True)


def _open_default_store(folder: Path) -> FileStore:
    """Open the store of a project without its manifest, to read what an agent left behind."""
    own = private.of_project(folder)
    return FileStore(
        folder, host=host.identify(), settings=Settings(), clock=clock.now, private=own
    )


@click.command()
@click.argument("agent", required=False)
@click.option("--fresh", is_flag=True, help="In a fresh session, not in the one there is.")
@trust_option
@as_json
def restart(agent: str | None, fresh: bool, trust: bool, as_json: bool) -> None:
    """Start AGENT again now: out of safe mode, out of a wait, or out of what it is doing.

    What it spent stays counted, unless its run was over: then a new one begins.
    """
    project = config.load(here())
    require_operator(project)
    name = agent_of(project, agent)
    ensure_trust(project, trust=trust)
    if project.settings.fleet is not None:  # before it is connected to
        print_changes(name, accept_settings(project, name))
    store = open_store_of(project)
    accept_log(store, name)
    store.create(name)
    if isinstance(store, FileStore):
        from rekindle.wiring.run import check_settings  # noqa: PLC0415 - `stop` must start fast

        check_settings(project, store, name)
    print_changes(name, accept_settings(project, name))
    store.clear_the_way(name, fresh=fresh)
    now, run = clock.now(), store.read(name).projection.run
    store.submit(name, RestartAsked(ts=now, fresh=fresh), policy.say(run, "running", now))
    is_supervised = store.is_supervised(name)
    if as_json:
        print_json({"agent": name, "desired": "running", "supervised": is_supervised})
        return
    how = " in a fresh session" if fresh else ""
    if is_supervised:
        echo(f"✓ {name}: will be started again{how}")
        return
    echo(f"✓ {name}: nothing is running; it may start again{how}")
    echo(f"Next: `rekindle run {name}`, or `rekindle up {name}` to have it in the background.")


class _FleetStop:
    """The stop of an agent that a fleet runs: the engine records and delivers it."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store, self._agent = store, agent
        self.was_running = False
        self.was_killed = False

    def tell(self) -> None:
        self.was_running = self._store.is_supervised(self._agent)
        self._store.create(self._agent)
        run = self._store.read(self._agent).projection.run
        self._store.submit(self._agent, policy.say(run, "stopped", clock.now()))

    def has_ended(self) -> bool:
        return not self._store.is_supervised(self._agent)

    def kill(self) -> None:
        """Wait longer instead: the host that runs the agent ends it, and needs time to hear."""
        wait_until(self.has_ended, _PATIENCE_SECONDS - screens.STOP_SUPERVISOR_SECONDS)

    def require_record(self) -> None:
        """Do nothing: the engine has confirmed it."""


def end_background(store: Store, name: str, *, was_killed: bool = False) -> None:
    """End what a supervisor that was killed could not end; on a fleet each host does so itself."""
    patience = screens.STOP_KILLED_SECONDS if was_killed else STOP_SECONDS
    if not isinstance(store, FileStore):
        return
    try:
        with suppress(SupervisedError), store.supervising(name):
            _end_background(store, name, patience)
    except (ConfinedError, StoreError):
        # A disk that takes no lock from us takes none from another supervisor either.
        if not store.is_supervised(name):
            with suppress(ConfinedError, StoreError):
                _end_background(store, name, patience)


def _end_background(store: FileStore, name: str, patience: float) -> None:
    processes, project, attempts = Processes(), store.root.project, {}
    with suppress(DocumentError):  # the agent can damage its log; what was recorded outside counts
        attempts = store.read(name).projection.attempts
    end_everything(project, name, processes, attempts, patience=patience)
    for mark in orphans.find_marks(project, name):
        processes.end_marked(mark, boot=processes.boot(), uptime=0.0, patience=patience)


def stopping_of(store: Store, agent: str) -> "StopAgent | _FleetStop":
    """Return the stop of an agent, wherever it is kept."""
    if isinstance(store, FileStore):
        return StopAgent(store, agent, clock.now)
    return _FleetStop(store, agent)


def wait_for_ends(stops: Mapping[str, Stopping]) -> list[str]:
    """Wait until the supervisors have ended, and kill late ones; return the agents left."""

    def find_left() -> list[str]:
        return [name for name, stopping in stops.items() if not stopping.has_ended()]

    if wait_until(lambda: not find_left(), screens.STOP_SUPERVISOR_SECONDS):
        return []
    for name in find_left():
        stops[name].kill()
    wait_until(lambda: not find_left(), screens.STOP_KILLED_SECONDS)
    return find_left()


def wait_until(has_ended: Callable[[], bool], seconds: float = _PATIENCE_SECONDS) -> bool:
    """Return whether a supervisor has ended within this time."""
    deadline = time.monotonic() + seconds
    while not has_ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(screens.STOP_POLL_SECONDS)
    return True
