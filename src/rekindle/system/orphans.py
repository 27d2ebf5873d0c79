"""What a launch started and did not end: found, named, and ended.

A program that is killed leaves its tools running: they have sessions of their own, so no signal to
its group reaches them, and they would write beside whatever is started next. They are found

- below the supervisor, which adopts every orphan of its launches (Linux);
- by the mark that they have inherited in their environment, whatever their parent is by now;
- by the control group of the launch, if the host delegates one to the supervisor (Linux);
- by the record of those that have cleared their environment, if the supervisor was killed;
- below any of these.

Only processes of our own user are ended. Those that match a pattern of `keep:` are left alone, with
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

from rekindle.documents.identity import AGENT_NAME
from rekindle.documents.launch import FOLDER, MARK, Background, Swept, Vitals
from rekindle.errors import AgentError
from rekindle.system import kernel
from rekindle.system.tree import Identity, Table, below
from rekindle.thresholds.running import ORPHAN_ROUNDS

_FACTS_OF_BIRTH = 3
"""When, in which boot, in which namespace: what makes a process's number its own."""
_ABOVE = 2
"""How far above the folder of an agent that of its project is."""


BESIDE: set[int] = set()
"""Programs that this process asks something while an agent runs: its own, and not the agent's."""
STARTING = Lock()
"""Held from the start of such a program until it is in `BESIDE`: no sweep sees it between."""


def _table() -> Table:
    with STARTING:
        return kernel.here.table()


class Belongings(msgspec.Struct, frozen=True):
    """How the processes of a launch are told from all others."""

    mark: str
    uptime: float
    """The host's, when the launch began: what is older does not belong to it."""
    before: frozenset[Identity] | None = None
    """What was below us when the launch began; None: it is not a launch of this process."""
    recorded: Sequence[str] = ()
    keep: Sequence[str] = ()
    program: str = ""
    """The agent's own program, which no pattern keeps: its arguments may hold the prompt."""

    def find(self, table: Table) -> set[int]:
        """Return the processes of the launch that live, also those that are kept."""
        found = {pid for pid in table if kernel.here.bears(pid, self.mark, self.uptime)}
        found |= {pid for name in self.recorded if (pid := _pid_of(name, table))}
        own = os.getpid()
        found.discard(own)
        found |= below(found, table, but={(own, table[own].born)} if own in table else ())
        if self.before is not None:
            beside = {(pid, table[pid].born) for pid in BESIDE if pid in table}
            found |= below({own}, table, but=self.before | beside)
        return found

    def kept(self, found: Collection[int], table: Table) -> set[int]:
        """Return those of `found` that match a pattern, without what is below them."""
        if not self.keep:
            return set()
        return {
            pid
            for pid in found
            if _name(pid, table) != self.program and _matches(kernel.here.command(pid), self.keep)
        }


def below_us() -> frozenset[Identity]:
    """Return everything that is below this process now."""
    table = _table()
    return frozenset((pid, table[pid].born) for pid in below({os.getpid()}, table))


def this_boot() -> str:
    """Which boot of the host this is; empty where it does not say."""
    return kernel.here.this_boot()


def uptime() -> float:
    """Seconds since that boot, also those that the host slept."""
    return kernel.here.uptime()


def end_launch(of: Belongings, *, boot: str, patience: float) -> Swept:
    """End every process of a launch that is not kept, and return what there was.

    Each is sent SIGTERM, and SIGKILL if it has not ended within `patience` seconds. The search is
    repeated until nothing is found: a process that is being ended may still fork. Only the first
    ones are sent SIGTERM: one that answers it with another of its kind would never be done with.
    """
    if boot != this_boot():
        return Swept()  # the host was booted since: nothing of the launch is left

    def to_end(table: Table) -> set[int]:
        found = of.find(table)
        kept = of.kept(found, table)
        return found - kept - below(kept, table)

    return _end(to_end, patience, f"launch {of.mark}")


class LivingLaunch(msgspec.Struct, frozen=True):
    """A launch of which a process lives."""

    project: Path
    """As this process finds it: the root of the other one may differ, as in a container."""
    agent: str
    mark: str


def find_launches() -> list[LivingLaunch]:
    """Return the launches of which a process lives, by what it has in its environment.

    Nothing in a workspace is read: an agent can rewrite the log that names its launches.
    """
    found = []
    for pid in _table():
        environment = kernel.here.environment(pid)
        mark, folder = environment.get(MARK), Path(environment.get(FOLDER, ""))
        is_deep = folder.is_absolute() and len(folder.parents) > _ABOVE
        if mark and is_deep and AGENT_NAME.match(folder.name):
            project = kernel.here.locate(pid, folder.parents[_ABOVE])
            found.append(LivingLaunch(project, folder.name, mark))
    return found


def find_marks(project: Path, agent: str) -> set[str]:
    """Return the marks of an agent's launches of which a process lives."""
    return {one.mark for one in find_launches() if one.agent == agent and is_of(one, project)}


def is_of(launch: LivingLaunch, project: Path) -> bool:
    """Return whether a launch is of this project."""
    try:
        return launch.project.samefile(project)
    except OSError:
        return False  # its process has ended, or its project is gone


def end_processes(names: Collection[str], *, patience: float) -> Swept:
    """End these processes and everything below them, and return what there was."""

    def to_end(table: Table) -> set[int]:
        found = {pid for name in names if (pid := _pid_of(name, table))}
        return found | below(found, table)

    return _end(to_end, patience, "the agent")


def _end(to_end: Callable[[Table], set[int]], patience: float, whose: str) -> Swept:
    commands: tuple[str, ...] = ()
    ended: set[Identity] = set()
    left: list[int] = []
    for number in range(ORPHAN_ROUNDS):
        table = _table()
        left = sorted(to_end(table), key=lambda pid: (table[pid].born, pid))
        if number == 0:
            tops = [pid for pid in left if table[pid].parent not in left]
            commands = tuple(filter(None, map(kernel.here.command, tops)))
        holds = [(pid, kernel.here.hold(pid, table[pid].born)) for pid in left]
        held = {pid: one for pid, one in holds if one is not None}
        if not held:
            return Swept(len(ended), commands if ended else ())
        ended |= {(pid, table[pid].born) for pid in held}
        kernel.here.end(held, patience if number == 0 else None)
    raise AgentError(
        f"what {whose} left behind could not be ended: {left}",
        hint="look at these processes (ps) and end them by hand, then run again",
    )


def in_background(of: Belongings) -> tuple[Background, ...]:
    """Return the processes of a launch that are kept, or that do not bear its mark."""
    table = _table()
    found = of.find(table)
    kept = of.kept(found, table)
    spared = below(kept, table)
    return tuple(
        Background(_name(pid, table), kernel.here.command(pid), pid in kept)
        for pid in sorted(found - spared, key=lambda pid: (table[pid].born, pid))
        if pid in kept or not kernel.here.bears(pid, of.mark, of.uptime)
    )


def signal_group(group: int, number: signal.Signals, keep: Sequence[str]) -> None:
    """Signal a process group, but for those members that are kept."""
    if not keep:
        os.killpg(group, number)
        return
    table = _table()
    members = {pid for pid, row in table.items() if row.group == group}
    kept = {pid for pid in members - {group} if _matches(kernel.here.command(pid), keep)}
    for pid in members - kept - below(kept, table):
        kernel.here.send(pid, table[pid].born, number)


def reap_adopted(but: int = 0) -> None:
    """Reap the orphans that we have adopted and that have ended; `but` is waited for elsewhere.

    Only for a process whose other children are all in `BESIDE` at this moment.
    """
    flags = os.WEXITED | os.WNOHANG
    with STARTING, suppress(ChildProcessError):  # there may be no child at all
        others = {but, *BESIDE}
        while (ended := os.waitid(os.P_ALL, 0, flags | os.WNOWAIT)) and ended.si_pid not in others:
            os.waitid(os.P_PID, ended.si_pid, flags)


def vitals(pid: int, mark: str, *, boot: str, uptime: float) -> Vitals | None:
    """How a launch's process does, and what else bears its mark; None: it is gone."""
    return kernel.here.vitals(pid, mark, uptime) if boot == this_boot() else None


def lineage() -> list[int]:
    """Return this process and its parents, up to the first process that we can see."""
    found: list[int] = []
    pid = os.getpid()
    while pid > 0 and pid not in found:
        found.append(pid)
        pid = kernel.here.parent(pid)
    return found


def identify(pid: int) -> str | None:
    """A process, told from any other that will ever have its number; None: it is gone."""
    born = kernel.here.born(pid)
    return None if born is None else _identity(pid, born)


def identify_self() -> str:
    """Return this process's own identity, in the form of `identify`."""
    return identify(os.getpid()) or str(os.getpid())


def is_alive(process: str) -> bool:
    """Whether a process is still there: its number, and, where known, its start and boot.

    Of one in another namespace, as in a container, nobody here knows: it is not said to be gone.
    """
    pid, *born = process.split(".")
    if not pid.isdecimal():
        return False
    if not born:
        return _exists(int(pid))
    if len(born) != _FACTS_OF_BIRTH or born[1] != this_boot():
        return False
    return born[2] != kernel.here.room() or identify(int(pid)) == process


def is_here(process: str) -> bool:
    """Return whether a process of this namespace lives, by its identity."""
    pid = process.partition(".")[0]
    return pid.isdecimal() and identify(int(pid)) == process


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _identity(pid: int, born: int) -> str:
    return f"{pid}.{born}.{this_boot()}.{kernel.here.room()}"


def _name(pid: int, table: Table) -> str:
    return _identity(pid, table[pid].born)


def _pid_of(name: str, table: Table) -> int | None:
    """Return the number of the process that an identity names; None: it is gone."""
    number = name.partition(".")[0]
    pid = int(number) if number.isdecimal() else 0
    return pid if pid in table and _name(pid, table) == name else None


def _matches(command: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(command, pattern) for pattern in patterns)
