"""The store operations that most actions need, and the choice between files and a fleet."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from rekindle.config import Project
from rekindle.documents.events import Event
from rekindle.errors import AuditError, NotOnFleetError
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.stores.log.event_log import LogEntry
from rekindle.stores.log.view import AgentView
from rekindle.wiring.open_store import open_store

if TYPE_CHECKING:
    from rekindle.fleet.commands.fleet_store import FleetStore
    from rekindle.stores.files.writer import Writer


class AgentStore(Protocol):
    """Store operations that most actions need, for agents on this host or on a fleet."""

    redaction: Redaction

    def exists(self, agent: str) -> bool: ...

    def create(self, agent: str) -> None: ...

    def read(self, agent: str) -> AgentView: ...

    def submit(self, agent: str, *records: Event, take_over: bool = False) -> bool: ...

    def is_supervised(self, agent: str) -> bool: ...

    def document(self, agent: str, name: str) -> bytes | None: ...

    def adopt_edits(self, agent: str) -> None: ...

    def prepare_start(self, agent: str, *, fresh: bool = False) -> None: ...

    def newest_entries(self, agent: str) -> Iterator[LogEntry]: ...

    def entries_since(self, agent: str, offset: int) -> Iterator[LogEntry]: ...


@runtime_checkable
class WritableStore(Protocol):
    """A store that this host can write to. On a fleet, the engine writes instead."""

    def writer(self, agent: str) -> AbstractContextManager["Writer"]: ...


def open_agent_store(
    project: Project, note: Callable[[AuditError], None], warn: Callable[[str], None]
) -> AgentStore:
    """Return a project's store: the files on this host, or the fleet.

    Raises:
        UntrustedError: The agents are on a fleet, and the folder was not accepted.
        UnacceptedError: The fleet differs from the accepted one.
    """
    if project.settings.fleet is None:
        return open_store(project, say=note)
    return open_fleet_store(project, project.settings.fleet, warn)


def open_fleet_store(
    project: Project, fleet: FleetSettings, warn: Callable[[str], None]
) -> "FleetStore":
    """Return the fleet's store. Close it after use."""
    from rekindle.fleet.commands.fleet_store import FleetStore  # noqa: PLC0415 - needs the fleet extra
    from rekindle.wiring.access.trust_checks import require_fleet  # noqa: PLC0415 - only fleets need it

    # The manifest contains the engine's address and the variable with its API key, so the user must
    # trust the manifest before Rekindle connects.
    require_fleet(project)
    return FleetStore(project, fleet, os.environ, say=warn)


def read_known(store: AgentStore, agent: str) -> Projection:
    """Return an agent's projection, or an empty one if the agent has no log yet."""
    try:
        return store.read(agent).projection if store.exists(agent) else Projection(agent)
    except NotOnFleetError:
        return Projection(agent)
