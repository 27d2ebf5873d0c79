"""`rekindle stop`, `restart`: the operator's word, durable and above every marker."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress

import click

from rekindle.cli.options import Store, accept_log, as_json, here, open_agent
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.documents.event import RestartAsked
from rekindle.errors import (
    AgentError,
    ConfinedError,
    ManifestError,
    RekindleError,
    StoreError,
    SupervisedError,
    UnknownAgentError,
)
from rekindle.flows.background import end_everything
from rekindle.flows.stop_agent import StopAgent, StopLock
from rekindle.policy import run as policy
from rekindle.policy.settings import STOP_SECONDS
from rekindle.stores.files import FileStore
from rekindle.stores.files.supervision import outer_locks_held
from rekindle.system import clock
from rekindle.system.processes import Processes
from rekindle.thresholds.screens import STOP_POLL_SECONDS
from rekindle.wiring.caller import refuse_agent_of
from rekindle.wiring.trust import accept_settings

_PATIENCE_SECONDS = 2 * STOP_SECONDS + 5


@click.command()
@click.argument("agent", required=False)
@as_json
def stop(agent: str | None, as_json: bool) -> None:
    """Stop AGENT, and have it stay stopped: nobody starts it until you say so.

    It is asked to end, and killed when it has not within ten seconds; `rekindle run` goes on where
    it was.
    """
    try:
        project, store, name = open_agent(agent, operator=True)
    except (ManifestError, UnknownAgentError, StoreError) as error:
        stop_without_manifest((agent,) if agent else (), error, as_json=as_json)
        return
    stopping = stopping_of(store, name)
    stopping.tell()
    if not wait_until(stopping.has_ended):
        raise AgentError(
            f"{name} is to stop, and its supervisor has not ended yet",
            hint="the stop is kept: look again with `rekindle status`",
        )
    try:
        end_background(store, name)
    finally:
        stopping.require_record()
    _say_stopped(name, was_running=stopping.was_running, as_json=as_json)
    unnamed = running_unnamed(project) if agent is None and isinstance(store, FileStore) else []
    if unnamed:
        words = f"rekindle.yaml does not name {', '.join(unnamed)}"
        stop_without_manifest(unnamed, ManifestError(words), as_json=as_json)


def _say_stopped(name: str, *, was_running: bool, as_json: bool) -> None:
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays so'}")


def running_unnamed(project: Project) -> list[str]:
    """Return agents that run in this folder and that the manifest does not name any more."""
    return [name for name in outer_locks_held(project.path) if name not in project.manifest.agents]


def stop_without_manifest(
    agents: Sequence[str], error: RekindleError, *, every: bool = False, as_json: bool
) -> None:
    """Stop supervisors of this folder whose manifest cannot be read or does not name them.

    Without a name the only one is meant; `every`: all of them.
    """
    start = here()
    places = ((at, outer_locks_held(at)) for at in (start, *start.parents))
    folder, held = next(((at, found) for at, found in places if found), (start, {}))
    refuse_agent_of(folder, held, "rekindle stop")
    meant = [name for name in held if not agents or name in agents]
    if len(meant) > 1 and not (agents or every):
        error.hint = f"running: {', '.join(meant)}; `rekindle stop NAME` or `rekindle down`"
        raise error
    if not meant:
        raise error
    stops = {name: StopLock(held[name], clock.now) for name in meant}
    for stopping in stops.values():
        stopping.tell()
    for name, stopping in stops.items():
        if not wait_until(stopping.has_ended):
            raise AgentError(
                f"{name} is to stop, and its supervisor has not ended yet",
                hint="repeat the command in a moment",
            ) from error
        _say_stopped(name, was_running=True, as_json=as_json)
    echo(f"Note: {error}", err=True)


@click.command()
@click.argument("agent", required=False)
@click.option("--fresh", is_flag=True, help="In a fresh session, not in the one there is.")
@trust_option
@as_json
def restart(agent: str | None, fresh: bool, trust: bool, as_json: bool) -> None:
    """Start AGENT again now: out of safe mode, out of a wait, or out of what it is doing.

    What it spent stays counted, unless its run was over: then a new one begins.
    """
    project, store, name = open_agent(agent, operator=True)
    ensure_trust(project, trust=trust)
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
    echo(f"✓ {name}: will be started again{' in a fresh session' if fresh else ''}")
    if not is_supervised:
        echo(f"Next: `rekindle run {name}`, or `rekindle up` to have it kept in the background.")


class _FleetStop:
    """The stop of an agent that a fleet runs: the engine records and delivers it."""

    def __init__(self, store: Store, agent: str) -> None:
        self._store, self._agent = store, agent
        self.was_running = False

    def tell(self) -> None:
        self.was_running = self._store.is_supervised(self._agent)
        self._store.create(self._agent)
        run = self._store.read(self._agent).projection.run
        self._store.submit(self._agent, policy.say(run, "stopped", clock.now()))

    def has_ended(self) -> bool:
        return not self._store.is_supervised(self._agent)

    def require_record(self) -> None:
        """Do nothing: the engine has confirmed it."""


def end_background(store: Store, name: str) -> None:
    """End what a supervisor that was killed could not end; on a fleet each host does so itself."""
    if not isinstance(store, FileStore):
        return
    try:
        with suppress(SupervisedError), store.supervising(name):
            _end_background(store, name)
    except (ConfinedError, StoreError):
        # A disk that takes no lock from us takes none from another supervisor either.
        if not store.is_supervised(name):
            with suppress(ConfinedError, StoreError):
                _end_background(store, name)


def _end_background(store: FileStore, name: str) -> None:
    attempts = store.read(name).projection.attempts
    end_everything(store.root.project, name, Processes(), attempts, patience=STOP_SECONDS)


def stopping_of(store: Store, agent: str) -> "StopAgent | _FleetStop":
    """Return the stop of an agent, wherever it is kept."""
    if isinstance(store, FileStore):
        return StopAgent(store, agent, clock.now)
    return _FleetStop(store, agent)


def wait_until(has_ended: Callable[[], bool]) -> bool:
    """Whether a supervisor has ended within a reasonable time."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not has_ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(STOP_POLL_SECONDS)
    return True
