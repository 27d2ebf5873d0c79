"""Find the running processes of an agent CLI, and ask them to exit."""

import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from rekindle.system.processes import launch_processes, process_api
from rekindle.system.processes.process_tree import (
    ProcessIdentity,
    ProcessRow,
    find_descendants,
)

_INTERPRETERS = frozenset({"node", "bun"})


def list_cli_processes(
    programs: Collection[str], folder: Path, server: str
) -> Iterator[tuple[int, ProcessRow, bool]]:
    """Yield our user's processes of a CLI in a folder, and its background servers anywhere.

    The last value tells whether a process is a server, which has the argument `server`.
    """
    here = process_api.here
    for pid, row in here.table().items():
        words = here.command(pid).split(" ")
        names = [Path(word).name for word in words[:2]]
        name = names[1] if names[0] in _INTERPRETERS and len(names) > 1 else names[0]
        if name not in programs or pid == os.getpid():
            continue
        place = here.working_folder(pid)
        is_server = bool(server) and server in words
        if place and (is_server or place == str(folder)):
            yield pid, row, is_server


def find_start_time(born: int) -> float:
    """Return a process's start time in seconds since 1970, from its `born`."""
    if sys.platform != "linux":
        return born / 1_000_000  # it is in microseconds there
    since_boot = born / os.sysconf("SC_CLK_TCK")
    return time.time() - process_api.here.uptime() + since_boot


def list_open_files(pid: int) -> list[str]:
    return process_api.here.open_files(pid)


def has_child_since(processes: Collection[ProcessIdentity], since: float) -> bool:
    """Return whether processes have descendants that started later than `since`.

    `since` is in seconds since 1970.
    """
    table = process_api.here.table()
    own = {pid for pid, _ in processes}
    children = find_descendants(own, table) - own
    return any(find_start_time(table[pid].born) > since for pid in children)


def is_ancestor(process: ProcessIdentity) -> bool:
    """Return whether this process descends from another one."""
    return process[0] in launch_processes.list_ancestors()


def is_running(process: ProcessIdentity) -> bool:
    pid, born = process
    return process_api.here.born(pid) == born


def ask_to_exit(processes: Collection[ProcessIdentity]) -> None:
    """Send SIGTERM to processes. A process that has reused a pid is never signalled."""
    for pid, born in processes:
        if process_api.here.working_folder(pid):  # only our user's processes, even for root
            process_api.here.send(pid, born, signal.SIGTERM)
