"""Stop agents on this host or on a fleet, and end the processes that they left running."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from rekindle.api.agent_store import AgentStore
from rekindle.errors import (
    AgentError,
    ConfinedError,
    DocumentError,
    StoreError,
    SupervisedError,
)
from rekindle.flows.launches.background_processes import end_all_processes
from rekindle.flows.operator.stop_agent import (
    AgentStopper,
)
from rekindle.policy.settings.runtime_settings import (
    STOP_SECONDS,
)
from rekindle.policy.supervision import run_moves as policy
from rekindle.stores.files import FileStore
from rekindle.system import (
    clock,
)
from rekindle.system.processes import launch_processes
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.thresholds import screens


class PendingStop(Protocol):
    """A recorded stop, and the supervisor that must exit because of it."""

    def has_ended(self) -> bool: ...

    def kill(self) -> None:
        """Kill the supervisor if it is running on this host."""


class _FleetStop:
    """A stop for an agent on a fleet. The engine records it and sends it to the agent's host."""

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
        """Wait longer, because the agent's host may not have received the command yet."""
        wait_until(self.has_ended, screens.STOP_WAIT_SECONDS - screens.STOP_SUPERVISOR_SECONDS)

    def require_stop_record(self) -> None:
        """Do nothing, because the engine has already confirmed the stop."""


def end_background(store: AgentStore, name: str, *, was_killed: bool = False) -> None:
    """End the processes that a killed supervisor left running.

    On a fleet, each host does this itself.
    """
    patience = screens.STOP_KILLED_SECONDS if was_killed else STOP_SECONDS
    if not isinstance(store, FileStore):
        return
    try:
        with suppress(SupervisedError), store.supervising(name):
            _end_background(store, name, patience)
    except (ConfinedError, StoreError):
        # A disk error that keeps this process from taking the lock also stops any other supervisor.
        if not store.is_supervised(name):
            with suppress(ConfinedError, StoreError):
                _end_background(store, name, patience)


def _end_background(store: FileStore, name: str, patience: float) -> None:
    processes, project, attempts = HostProcesses(), store.root.project, {}
    # The agent may have damaged its log, but other records still exist.
    with suppress(DocumentError):
        attempts = store.read(name).projection.attempts
    end_all_processes(project, name, processes, attempts, patience=patience)
    for mark in launch_processes.find_marks(project, name):
        processes.end_launch_processes(mark, boot=processes.boot(), uptime=0.0, patience=patience)


def make_stop(store: AgentStore, agent: str) -> "AgentStopper | _FleetStop":
    """Return an object that stops the agent on this host or on a fleet."""
    if isinstance(store, FileStore):
        return AgentStopper(store, agent, clock.read_clock)
    return _FleetStop(store, agent)


def stop_agent(store: AgentStore, name: str) -> bool:
    """Stop an agent and keep it stopped. Return whether it was running.

    Raises:
        AgentError: Its supervisor has not exited yet, although the stop is recorded.
    """
    stopping = make_stop(store, name)
    stopping.tell()
    if wait_for_ends({name: stopping}):
        raise AgentError(
            f"{name} is stopping, but its supervisor has not exited yet",
            hint="the stop is recorded; check again with `rekindle status`",
        )
    try:
        end_background(store, name, was_killed=stopping.was_killed)
    finally:
        stopping.require_stop_record()
    return stopping.was_running


def wait_for_ends(stops: Mapping[str, PendingStop]) -> list[str]:
    """Wait for supervisors to exit, kill late ones, and return the agents still running."""

    def find_left() -> list[str]:
        return [name for name, stopping in stops.items() if not stopping.has_ended()]

    if wait_until(lambda: not find_left(), screens.STOP_SUPERVISOR_SECONDS):
        return []
    for name in find_left():
        stops[name].kill()
    wait_until(lambda: not find_left(), screens.STOP_KILLED_SECONDS)
    return find_left()


def wait_until(has_ended: Callable[[], bool], seconds: float = screens.STOP_WAIT_SECONDS) -> bool:
    """Wait until a supervisor has exited. Return False after `seconds`."""
    deadline = time.monotonic() + seconds
    while not has_ended():
        if time.monotonic() > deadline:
            return False
        time.sleep(screens.STOP_POLL_SECONDS)
    return True
