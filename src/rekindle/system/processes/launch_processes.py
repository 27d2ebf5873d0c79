"""Find, identify and end the processes that a launch started and did not end.

A killed program leaves its tools running: they have their own sessions, so a signal to the
program's group does not reach them, and they would keep writing alongside the next launch. They are
found

- below the supervisor, which adopts every orphan of its launches (Linux);
- by the mark inherited in their environment, regardless of their current parent;
- by the control group of the launch, if the host delegates one to the supervisor (Linux);
- if the supervisor was killed, by its record of processes that have cleared their environment;
- below any of these.

Only processes of our own user are ended. Those that match a `keep:` pattern are spared, with
everything below them.
"""

import os
import signal
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

import msgspec

from rekindle.documents.launches.launch_types import (
    FOLDER,
    LAUNCH_VARIABLE,
    BackgroundProcess,
    ProcessVitals,
    SweptProcesses,
)
from rekindle.errors import AgentError
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.system.processes import process_api
from rekindle.system.processes.process_tree import (
    ProcessIdentity,
    ProcessTable,
    find_descendants,
)
from rekindle.thresholds.supervision import ORPHAN_ROUNDS

_FACTS_OF_BIRTH = 3
"""Number of facts that, with a pid, identify a process: start time, boot and namespace."""
_ABOVE = 2
"""Number of folder levels between an agent's folder and its project's folder."""


UNRELATED_CHILDREN: set[int] = set()
"""Pids of children that this process runs for its own queries; they do not belong to the agent."""
START_LOCK = Lock()
"""Lock that keeps a sweep from ending a child before it is added to `UNRELATED_CHILDREN`."""


def _list_table() -> ProcessTable:
    with START_LOCK:
        return process_api.here.table()


class LaunchProcesses(msgspec.Struct, frozen=True):
    """The criteria that identify the processes of a launch."""

    mark: str
    uptime: float
    """The host's uptime in seconds when the launch began; older processes do not belong to it."""
    before: frozenset[ProcessIdentity] | None = None
    """Descendants of this process when the launch began; None if another process started the
    launch.
    """
    recorded: Sequence[str] = ()
    keep: Sequence[str] = ()
    program: str = ""
    """Identity of the agent's own program, which is never spared: its arguments may contain the
    prompt, and the prompt may match a `keep` pattern.
    """

    def find(self, table: ProcessTable) -> set[int]:
        """Return the live processes of the launch, including those to keep."""
        pids = {pid for pid in table if process_api.here.has_mark(pid, self.mark, self.uptime)}
        pids |= {pid for name in self.recorded if (pid := _find_pid(name, table))}
        own_pid = os.getpid()
        pids.discard(own_pid)
        pids |= find_descendants(
            pids, table, but={(own_pid, table[own_pid].born)} if own_pid in table else ()
        )
        if self.before is not None:
            beside = {(pid, table[pid].born) for pid in UNRELATED_CHILDREN if pid in table}
            pids |= find_descendants({own_pid}, table, but=self.before | beside)
        return pids

    def kept(self, pids: Collection[int], table: ProcessTable) -> set[int]:
        """Return the processes in `pids` that match a `keep` pattern, without their descendants."""
        if not self.keep:
            return set()
        return {
            pid
            for pid in pids
            if _make_name(pid, table) != self.program
            and _matches_any(process_api.here.command(pid), self.keep)
        }


def list_descendants() -> frozenset[ProcessIdentity]:
    """Return all current descendants of this process."""
    table = _list_table()
    return frozenset((pid, table[pid].born) for pid in find_descendants({os.getpid()}, table))


def identify_boot() -> str:
    """Return an identifier for the current boot; empty if it is not available."""
    return process_api.here.this_boot()


def read_uptime() -> float:
    """Return the number of seconds since boot, including time asleep."""
    return process_api.here.uptime()


def end_launch(of: LaunchProcesses, *, boot: str, patience: float) -> SweptProcesses:
    """End every process of a launch that is not kept, and return the processes found.

    Each process is sent SIGTERM, and SIGKILL if it has not exited within `patience` seconds. The
    search is repeated until nothing is found, because a process that is being ended may still fork.
    Only the first round sends SIGTERM: if a process reacted to each SIGTERM by starting another
    process, the search would never end.
    """
    if boot != identify_boot():
        return SweptProcesses()  # the host has rebooted since: no process can be left

    def to_end(table: ProcessTable) -> set[int]:
        pids = of.find(table)
        kept = of.kept(pids, table)
        return pids - kept - find_descendants(kept, table)

    return _end_matching(to_end, patience, f"launch {of.mark}")


class LivingLaunch(msgspec.Struct, frozen=True):
    """A launch of which at least one process is still running."""

    project: Path
    """The project's path as seen from this process; the launch may have another root, as in a
    container.
    """
    agent: str
    mark: str


def find_launches() -> list[LivingLaunch]:
    """Return the launches that still have processes, according to the processes' environments.

    No file in a workspace is read, because an agent can rewrite the log that names its launches.
    """
    launches = []
    for pid in _list_table():
        environment = process_api.here.environment(pid)
        mark, folder = environment.get(LAUNCH_VARIABLE), Path(environment.get(FOLDER, ""))
        is_deep = folder.is_absolute() and len(folder.parents) > _ABOVE
        if mark and is_deep and AGENT_NAME.match(folder.name):
            project = process_api.here.locate(pid, folder.parents[_ABOVE])
            launches.append(LivingLaunch(project, folder.name, mark))
    return launches


def find_marks(project: Path, agent: str) -> set[str]:
    """Return the marks of an agent's launches that still have processes."""
    return {
        launch.mark
        for launch in find_launches()
        if launch.agent == agent and is_of(launch, project)
    }


def is_of(launch: LivingLaunch, project: Path) -> bool:
    """Return whether a launch belongs to this project."""
    try:
        return launch.project.samefile(project)
    except OSError:
        return False  # its process has exited, or its project was removed


def end_processes(names: Collection[str], *, patience: float) -> SweptProcesses:
    """End these processes and all their descendants, and return the processes found."""

    def to_end(table: ProcessTable) -> set[int]:
        pids = {pid for name in names if (pid := _find_pid(name, table))}
        return pids | find_descendants(pids, table)

    return _end_matching(to_end, patience, "the agent")


def _end_matching(
    to_end: Callable[[ProcessTable], set[int]], patience: float, whose: str
) -> SweptProcesses:
    commands: tuple[str, ...] = ()
    ended: set[ProcessIdentity] = set()
    remaining: list[int] = []
    for number in range(ORPHAN_ROUNDS):
        table = _list_table()
        remaining = sorted(to_end(table), key=lambda pid: (table[pid].born, pid))
        if number == 0:
            tops = [pid for pid in remaining if table[pid].parent not in remaining]
            commands = tuple(filter(None, map(process_api.here.command, tops)))
        holds = [(pid, process_api.here.hold(pid, table[pid].born)) for pid in remaining]
        held = {pid: handle for pid, handle in holds if handle is not None}
        if not held:
            return SweptProcesses(len(ended), commands if ended else ())
        ended |= {(pid, table[pid].born) for pid in held}
        process_api.here.end(held, patience if number == 0 else None)
    raise AgentError(
        f"processes of {whose} could not be ended: {remaining}",
        hint="check these processes (ps) and end them by hand, then run the command again",
    )


def list_background(of: LaunchProcesses) -> tuple[BackgroundProcess, ...]:
    """Return the processes of a launch that are kept, or that do not have the launch's mark."""
    table = _list_table()
    pids = of.find(table)
    kept = of.kept(pids, table)
    spared = find_descendants(kept, table)
    return tuple(
        BackgroundProcess(_make_name(pid, table), process_api.here.command(pid), pid in kept)
        for pid in sorted(pids - spared, key=lambda pid: (table[pid].born, pid))
        if pid in kept or not process_api.here.has_mark(pid, of.mark, of.uptime)
    )


def signal_group(group: int, number: signal.Signals, keep: Sequence[str]) -> None:
    """Signal the members of a process group, except those that are kept."""
    if not keep:
        os.killpg(group, number)
        return
    table = _list_table()
    members = {pid for pid, row in table.items() if row.group == group}
    kept = {pid for pid in members - {group} if _matches_any(process_api.here.command(pid), keep)}
    for pid in members - kept - find_descendants(kept, table):
        process_api.here.send(pid, table[pid].born, number)


def reap_adopted(but: int = 0) -> None:
    """Reap adopted orphans that have exited, except `but`, which the caller reaps itself.

    All other children of this process must be in `UNRELATED_CHILDREN` when this is called.
    """
    flags = os.WEXITED | os.WNOHANG
    with START_LOCK, suppress(ChildProcessError):  # there may be no child
        others = {but, *UNRELATED_CHILDREN}
        while (ended := os.waitid(os.P_ALL, 0, flags | os.WNOWAIT)) and ended.si_pid not in others:
            os.waitid(os.P_PID, ended.si_pid, flags)


def measure_launch(pid: int, mark: str, *, boot: str, uptime: float) -> ProcessVitals | None:
    """Return the state of a launch's process and its other processes; None if it has exited."""
    return process_api.here.vitals(pid, mark, uptime) if boot == identify_boot() else None


def list_ancestors() -> list[int]:
    """Return this process and its ancestors, as far up as they are visible."""
    ancestors: list[int] = []
    pid = os.getpid()
    while pid > 0 and pid not in ancestors:
        ancestors.append(pid)
        pid = process_api.here.parent(pid)
    return ancestors


def identify(pid: int) -> str | None:
    """Return an identity that stays unique if the pid is reused, or None if the process exited."""
    born = process_api.here.born(pid)
    return None if born is None else _make_identity(pid, born)


def identify_self() -> str:
    """Return this process's identity, in the format of `identify`."""
    return identify(os.getpid()) or str(os.getpid())


def is_alive(process: str) -> bool:
    """Return whether a process is running: its pid and, if known, its start and boot must match.

    A process in another namespace, as in a container, cannot be checked and counts as running.
    """
    pid, *born = process.split(".")
    if not pid.isdecimal():
        return False
    if not born:
        return _is_process(int(pid))
    if len(born) != _FACTS_OF_BIRTH or born[1] != identify_boot():
        return False
    return born[2] != process_api.here.read_namespace() or identify(int(pid)) == process


def is_here(process: str) -> bool:
    """Return whether the process with this identity is running in this namespace."""
    pid = process.partition(".")[0]
    return pid.isdecimal() and identify(int(pid)) == process


def _is_process(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _make_identity(pid: int, born: int) -> str:
    return f"{pid}.{born}.{identify_boot()}.{process_api.here.read_namespace()}"


def _make_name(pid: int, table: ProcessTable) -> str:
    return _make_identity(pid, table[pid].born)


def _find_pid(name: str, table: ProcessTable) -> int | None:
    """Return the pid of the process with this identity, or None if it is no longer running."""
    number = name.partition(".")[0]
    pid = int(number) if number.isdecimal() else 0
    return pid if pid in table and _make_name(pid, table) == name else None


def _matches_any(command: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(command, pattern) for pattern in patterns)
