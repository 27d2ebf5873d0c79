"""Find the agents that are running on this host, without reading a manifest.

The manifest is not used, because an agent can edit it. An agent counts as running if its supervisor
holds its lock, or if it has processes without a supervisor. Such processes have a launch's mark, or
are in the record of the last supervisor.
"""

from pathlib import Path

from rekindle.stores.files.supervisor_locks import (
    OuterLock,
    find_outer_lock,
    list_held_locks,
)
from rekindle.stores.folders import (
    background_file,
    private_files,
)
from rekindle.system.processes import launch_processes
from rekindle.wiring.access.trust_checks import is_trusted


class RunningAgents:
    """The agents running on this host. The process list is read only once."""

    def __init__(self) -> None:
        self._launches = launch_processes.find_launches()

    def find(self, project: Path) -> dict[str, OuterLock]:
        """Return the agents running in a folder, each with its lock, even if the lock is free."""
        running = list_held_locks(project)
        names = {
            launch.agent for launch in self._launches if launch_processes.is_of(launch, project)
        }
        names |= {
            name
            for name in private_files.find_private_project(project).agents()
            if _has_live_process(project, name)
        }
        for name in sorted(names - running.keys()):
            if (lock := find_outer_lock(project, name)) is not None:
                running[name] = lock
        return running

    def find_nearest(self, start: Path) -> Path | None:
        """Return the nearest folder in which agents are running, from `start` upwards, or None.

        A process can claim any folder as its project in its environment. A folder with only such
        processes is returned if the user trusts it, or if there is no other.
        """
        places = [at for at in (start, *start.parents) if self.find(at)]
        sure = (at for at in places if list_held_locks(at) or is_trusted(at))
        return next(sure, places[0] if places else None)


def _has_live_process(project: Path, agent: str) -> bool:
    """Return whether a process that the agent's last supervisor recorded is still running."""
    recorded = background_file.read_background(project, agent).processes
    return any(launch_processes.is_here(launch.process) for launch in recorded)
