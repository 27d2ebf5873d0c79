"""Find, identify and end the processes that a launch left running.

A killed program leaves its tools running: they have their own sessions, so a signal to the
program's group does not reach them, and they would keep writing alongside the next launch. These
processes belong to a launch:

- descendants of the supervisor, which adopts every orphan of its launches (Linux);
- processes that inherited the launch's mark in their environment, whatever their parent is;
- processes in the launch's control group, if the host delegates one to the supervisor (Linux);
- if the supervisor was killed, processes that it recorded because they cleared their environment;
- descendants of any of these.

Only processes of the current user are ended. Those that match a `keep:` pattern are spared, along
with their descendants.
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
"""Number of values that, with the pid, identify a process: start time, boot and namespace."""
_ABOVE = 2
"""Number of levels from an agent's folder up to its project's folder."""


UNRELATED_CHILDREN: set[int] = set()
"""Pids of children that this process runs for itself rather than for the agent."""
START_LOCK = Lock()
"""Lock held while a child is started and added to `UNRELATED_CHILDREN`."""


def _list_table() -> ProcessTable:
    with START_LOCK:
        return process_api.here.table()


class LaunchProcesses(msgspec.Struct, frozen=True):
    """Identifies the processes of a launch."""

    mark: str
    uptime: float
    """Host uptime in seconds when the launch began. Older processes are not part of the launch."""
    before: frozenset[ProcessIdentity] | None = None
    """Our descendants when the launch began; None if another process started it."""
    recorded: Sequence[str] = ()
    keep: Sequence[str] = ()
    program: str = ""
    """Identity of the agent's own program, which `keep` never spares. Its arguments may contain the
    prompt, which could match a pattern.
    """

    def find(self, table: ProcessTable) -> set[int]:
        """Return the launch's running processes, including those to keep."""
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
        """Return the processes that match a `keep` pattern, without their descendants."""
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
    """Return an id for the current boot; empty if unavailable."""
    return process_api.here.this_boot()


def read_uptime() -> float:
    """Return the seconds since boot, including sleep."""
    return process_api.here.uptime()


def end_launch(of: LaunchProcesses, *, boot: str, patience: float) -> SweptProcesses:
    """End all processes of a launch except those to keep, and return the processes found.

    Each process gets SIGTERM, and SIGKILL after `patience` seconds. The search is repeated until
    nothing is found, because a process may fork while it is being ended. Only the first round sends
    SIGTERM, because a process that starts another one on SIGTERM would keep the search going
    forever.
    """
    if boot != identify_boot():
        return SweptProcesses()  # no process survives a reboot

    def to_end(table: ProcessTable) -> set[int]:
        pids = of.find(table)
        kept_pids = of.kept(pids, table)
        return pids - kept_pids - find_descendants(kept_pids, table)

    return _end_matching(to_end, patience, f"launch {of.mark}")


class LivingLaunch(msgspec.Struct, frozen=True):
    """A launch that still has running processes."""

    project: Path
    """The project's path as seen from this process. In a container, the launch has another root."""
    agent: str
    mark: str


def find_launches() -> list[LivingLaunch]:
    """Return the launches that still have processes, based on the processes' environments.

    Files in a workspace are not used, because an agent can rewrite its log.
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
        return False  # the process has exited, or the project was removed


def end_processes(names: Collection[str], *, patience: float) -> SweptProcesses:
    """End processes and their descendants, and return the processes found."""

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
    """Return the processes of a launch that are kept or do not have its mark."""
    table = _list_table()
    pids = of.find(table)
    kept_pids = of.kept(pids, table)
    spared = find_descendants(kept_pids, table)
    return tuple(
        BackgroundProcess(_make_name(pid, table), process_api.here.command(pid), pid in kept_pids)
        for pid in sorted(pids - spared, key=lambda pid: (table[pid].born, pid))
        if pid in kept_pids or not process_api.here.has_mark(pid, of.mark, of.uptime)
    )


def signal_group(group: int, number: signal.Signals, keep: Sequence[str]) -> None:
    """Signal the members of a process group, except those to keep.

    In a sandbox, the program has its own group and gets SIGTERM directly: bubblewrap would exit
    immediately, and the kernel would kill the program.
    """
    *around, program = process_api.here.list_enclosing(group)
    is_enclosed = bool(around) and number == signal.SIGTERM
    if not keep and not is_enclosed:
        os.killpg(group, number)
        return
    table = _list_table()
    if is_enclosed and program in table:
        group = table[program].group
    members = {pid for pid, row in table.items() if row.group == group} - {*around}
    kept_pids = {
        pid for pid in members - {group} if _matches_any(process_api.here.command(pid), keep)
    }
    for pid in members - kept_pids - find_descendants(kept_pids, table):
        process_api.here.send(pid, table[pid].born, number)


def reap_adopted(but: int = 0) -> None:
    """Reap adopted orphans that have exited, except `but`, which is left to the caller.

    All our other children must be in `UNRELATED_CHILDREN`.
    """
    flags = os.WEXITED | os.WNOHANG
    with START_LOCK, suppress(ChildProcessError):  # there may be no children
        others = {but, *UNRELATED_CHILDREN}
        while (ended := os.waitid(os.P_ALL, 0, flags | os.WNOWAIT)) and ended.si_pid not in others:
            os.waitid(os.P_PID, ended.si_pid, flags)


def measure_launch(pid: int, mark: str, *, boot: str, uptime: float) -> ProcessVitals | None:
    """Return the state of a launch's processes, or None if its main process has exited."""
    return process_api.here.vitals(pid, mark, uptime) if boot == identify_boot() else None


def list_ancestors() -> list[int]:
    """Return this process and its visible ancestors."""
    ancestors: list[int] = []
    pid = os.getpid()
    while pid > 0 and pid not in ancestors:
        ancestors.append(pid)
        pid = process_api.here.parent(pid)
    return ancestors


def identify(pid: int) -> str | None:
    """Return an identity that stays unique even if the pid is reused, or None."""
    born = process_api.here.born(pid)
    return None if born is None else _make_identity(pid, born)


def identify_self() -> str:
    """Return the identity of this process."""
    return identify(os.getpid()) or str(os.getpid())


def is_alive(process: str) -> bool:
    """Return whether a process is running. Its start time and boot must match, if known.

    A process in an inner namespace, such as a sandbox or a container, is found by its pid there. A
    process in an outer namespace cannot be checked and counts as running.
    """
    pid, *born = process.split(".")
    if not pid.isdecimal():
        return False
    if not born:
        return _is_process(int(pid))
    if len(born) != _FACTS_OF_BIRTH or born[1] != identify_boot():
        return False
    if born[2] == process_api.here.read_namespace():
        return identify(int(pid)) == process
    start = int(born[0]) if born[0].isdecimal() else -1
    return process_api.here.is_nested(int(pid), start) is not False


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
    """Return the pid of the process with this identity, or None if it has exited."""
    number = name.partition(".")[0]
    pid = int(number) if number.isdecimal() else 0
    return pid if pid in table and _make_name(pid, table) == name else None


def _matches_any(command: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(command, pattern) for pattern in patterns)
