"""Remove the folders of pipeline workers that are no longer on the fleet."""

import asyncio
import contextlib
from pathlib import Path

from rekindle.errors import RekindleError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.hosts.host_folder import HostFolder
from rekindle.system.files import durable_files
from rekindle.system.remove_folder import remove_folder
from rekindle.thresholds.fleet_limits import FLEET_CLEAN_SECONDS

_REMOVED = ".removed~"


async def keep_clean(agents: AgentClient, root: Path, host: str) -> None:
    """Remove unused folders at intervals until the task is cancelled."""
    while True:
        with contextlib.suppress(RekindleError, OSError):  # retried later
            await remove_unused_folders(agents, root, host)
        await asyncio.sleep(FLEET_CLEAN_SECONDS)


async def remove_unused_folders(agents: AgentClient, root: Path, host: str) -> list[str]:
    """Remove the folders of removed workers, and return the workers' names."""
    removed = []
    start = agents.workflow("").replace("/", "~")
    for path in await asyncio.to_thread(lambda: sorted(root.iterdir())):
        if path.name.startswith(_REMOVED):  # the host exited while removing this folder
            await asyncio.to_thread(remove_folder, path)
        if not path.name.startswith(start):
            continue
        place = HostFolder(path, path.name.removeprefix(start), host)
        definition = await asyncio.to_thread(place.definition)
        if definition is None or definition.worker is None or await agents.is_there(place.agent):
            continue
        if await asyncio.to_thread(_remove, place):
            removed.append(place.agent)
    return removed


def _remove(place: HostFolder) -> bool:
    """Remove a worker's folder, unless one of its processes is still running here."""
    with place.supervising(0) as is_alone:
        if not is_alone:
            return False
        place.end_leftover_processes()
        unused = place.path.with_name(f"{_REMOVED}{place.path.name}")
        durable_files.rename_durably(place.path, unused)
    remove_folder(unused)
    return True
