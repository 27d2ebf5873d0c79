"""Check whether a command was run by one of this project's agents.

An agent must not be able to start an agent that the operator has stopped. A process belongs to an
agent if it or one of its ancestors

- has a launch's mark in its environment;
- holds the lock of a supervisor, which on Linux is the parent of all its agent's orphans;
- has cleared its environment, but was recorded by a supervisor that has exited since.

Some processes are not detected: one that an agent starts through cron, at or systemd-run is not a
descendant, and one in its own PID namespace does not see its supervisor. Only a sandbox protects
against these.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from rekindle.config import Project
from rekindle.documents.launches.launch_types import (
    FOLDER,
    LAUNCH_VARIABLE,
)
from rekindle.errors import CalledByAgentError, RekindleError
from rekindle.stores.files import ownership
from rekindle.stores.folders import background_file
from rekindle.stores.folders.agent_folder import (
    AgentFolder,
    RekindleFolder,
)
from rekindle.system.processes import (
    launch_processes,
    process_api,
)

_OF_SUPERVISOR = ("run", "supervisor")


def refuse_agent(project: Project, command: str) -> None:
    """Refuse an operator command if one of this project's agents runs it.

    Raises:
      CalledByAgentError: An agent runs it and does not have `may_control: true`.
    """
    agents = project.manifest.agents
    refuse_agent_of(project.path, agents, command, has_fleet=project.settings.fleet is not None)


def refuse_agent_of(
    project: Path, agents: Collection[str], command: str, *, has_fleet: bool = False
) -> None:
    """Refuse an operator command like `refuse_agent`, even without a manifest."""
    for folder in _find_callers(project, agents, has_fleet=has_fleet):
        if not background_file.read_background(folder.parents[2], folder.name).may_control:
            raise CalledByAgentError(command, folder.name)


def refuse_any_agent(command: str) -> None:
    """Refuse a command for the whole host if an agent of any project runs it.

    Raises:
      CalledByAgentError: An agent runs it.
    """
    for folder in filter(None, map(_find_launched, launch_processes.list_ancestors())):
        raise CalledByAgentError(command, folder.name)


def find_launched_agent() -> Path | None:
    """Return the folder of the agent whose launch started this process, or None.

    This process's own environment does not count, because a file in the workspace may set it.
    """
    parents = launch_processes.list_ancestors()[1:]
    return next(filter(None, map(_find_launched, parents)), None)


def _find_callers(project: Path, agents: Collection[str], *, has_fleet: bool) -> Iterator[Path]:
    """Yield the folder of each of this project's agents that started this process."""
    lineage = launch_processes.list_ancestors()
    folders = [*map(_find_launched, lineage)]
    # Skip this process itself, because a supervisor is not an agent.
    folders += [folder for pid in lineage[1:] for folder in _find_supervised(pid)]
    for folder in dict.fromkeys(filter(None, folders)):
        if _is_below(project, folder) or (
            has_fleet and folder.name in agents and _is_of_fleet(folder)
        ):
            yield folder
    named = {launch_processes.identify(pid) for pid in lineage}
    for name in agents:
        record = background_file.read_background(project, name)
        if named & {record.program, *(identity.process for identity in record.processes)}:
            yield RekindleFolder(project).agent(name).path


def _find_launched(pid: int) -> Path | None:
    environment = process_api.here.environment(pid)
    return Path(environment[FOLDER]) if environment.keys() >= {LAUNCH_VARIABLE, FOLDER} else None


def _find_supervised(pid: int) -> Iterator[Path]:
    for name in process_api.here.open_files(pid):
        path = Path(name)
        if path.parts[-2:] == _OF_SUPERVISOR:
            yield path.parents[1]


def _is_below(project: Path, folder: Path) -> bool:
    """Return whether an agent's folder belongs to this project."""
    try:
        return folder.parent.samefile(RekindleFolder(project).agents)
    except OSError:
        return folder.parent == RekindleFolder(project).agents  # both folders are gone


def _is_of_fleet(folder: Path) -> bool:
    """Return whether an agent's folder is a copy on a fleet host."""
    try:
        owner = ownership.read_owner(AgentFolder(folder))
    except RekindleError:
        return False
    return owner is not None and owner.host.startswith(ownership.FLEET_PREFIX)
