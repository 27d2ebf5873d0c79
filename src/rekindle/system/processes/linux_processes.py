"""Processes on Linux, through /proc and pidfds.

While a pidfd is open, a signal sent through it cannot reach another process, even if the pid is
reused.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    ProcessVitals,
)
from rekindle.system.processes import control_group
from rekindle.system.processes.process_tree import ProcessRow
from rekindle.thresholds.supervision import KILLED_SECONDS

_PROC = Path("/proc")
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_TICK = 1 / os.sysconf("SC_CLK_TCK")

# Positions of fields in /proc/PID/stat, counted after the process name in brackets.
_STATE = 0
_PARENT = 1
_GROUP = 2
_OWN_CPU = slice(11, 13)
_CHILDREN_CPU = slice(13, 15)
_START_TIME = 19


def this_boot() -> str:
    """Return an identifier for the current boot; empty if it is not available."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return ""


def uptime() -> float:
    """Return the number of seconds since boot, including time asleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_namespace() -> str:
    """Return the pid namespace of this process."""
    try:
        return os.readlink(_PROC / "self/ns/pid")[5:-1]  # noqa: PTH115 - the link's text
    except OSError:
        return ""


def born(pid: int) -> int | None:
    """Return a process's start time in ticks since boot, or None if it has exited."""
    stat = _read_stat(pid)
    return None if stat is None else int(stat[_START_TIME])


def vitals(pid: int, mark: str, uptime: float) -> ProcessVitals | None:
    """Measure a launch's process and its other processes; return None if it has exited."""
    stat = _read_stat(pid)
    if stat is None:
        return None
    others = _find_others(pid, mark, uptime)
    tools = others.values()
    return ProcessVitals(
        stopped=stat[_STATE] == b"T",
        cpu_seconds=_to_seconds(stat[_OWN_CPU]),
        tools=len(tools),
        # The CPU time of reaped children is counted for the process that reaped them.
        tools_cpu_seconds=_to_seconds(stat[_CHILDREN_CPU])
        + sum(_to_seconds(fields[_OWN_CPU] + fields[_CHILDREN_CPU]) for fields in tools),
        moved_bytes=_count_moved_bytes(pid),
        tools_moved_bytes=sum(map(_count_moved_bytes, others)),
    )


def table() -> dict[int, ProcessRow]:
    """Return every running process, without zombies."""
    rows: dict[int, ProcessRow] = {}
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():  # noqa: PTH208 - delays a restart
        if name.isdecimal() and (stat := _read_stat(int(name))) is not None:
            rows[int(name)] = ProcessRow(
                int(stat[_PARENT]), int(stat[_GROUP]), int(stat[_START_TIME])
            )
    return rows


def has_mark(pid: int, mark: str, uptime: float) -> bool:
    """Return whether a process of our user has a launch's mark or is in its control group.

    A process older than the launch never counts.
    """
    return _match_mark(pid, mark, _find_earliest(uptime)) is not None


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if it cannot be read."""
    try:
        words = _read(f"{_PROC}/{pid}/environ").split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def locate(pid: int, path: Path) -> Path:
    """Return a path of a process as seen from this one: their roots may differ in a container."""
    return Path(f"{_PROC}/{pid}/root{path}")


def command(pid: int) -> str:
    """Return the command line of a process; empty if the process has exited."""
    try:
        words = _read(f"{_PROC}/{pid}/cmdline").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()


def has_open(pid: int, path: Path) -> bool:
    """Return whether a process has a file open."""
    try:
        wanted = path.stat()
        numbers = os.listdir(f"{_PROC}/{pid}/fd")  # noqa: PTH208 - only names are needed
    except OSError:
        return False
    for number in numbers:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{_PROC}/{pid}/fd/{number}"), wanted):  # noqa: PTH116 - follows the link
                return True
    return False


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open; empty if they cannot be read."""
    paths = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"{_PROC}/{pid}/fd"):  # noqa: PTH208 - only names are needed
            with contextlib.suppress(OSError):
                paths.append(os.readlink(f"{_PROC}/{pid}/fd/{number}").removesuffix(" (deleted)"))  # noqa: PTH115 - the text
    return paths


def parent(pid: int) -> int:
    """Return the pid of a process's parent, or 0 if no parent is visible."""
    stat = _read_stat(pid)
    return 0 if stat is None else int(stat[_PARENT])


def hold(pid: int, start: int) -> int | None:
    """Hold a process, so that its pid cannot refer to another one; None if it has exited."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return None
    if _is_ours(pid) and born(pid) == start:
        return held
    os.close(held)
    return None


def send(pid: int, start: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it has exited."""
    held = hold(pid, start)
    if held is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(held, number)
        os.close(held)


def adopt_orphans() -> bool:
    """Become the parent of every descendant whose own parent exits.

    Without this, a child that starts a new session and exits leaves its children to the first
    process of the system. If they have also cleared their environment, nothing shows which launch
    they belong to.
    """
    import ctypes  # noqa: PLC0415 - only a supervisor needs it

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end(held: Mapping[int, int], patience: float | None) -> None:
    """Send SIGTERM, then SIGKILL after `patience` (None: at once); return when all have exited."""
    asking = ((signal.SIGTERM, patience),) if patience is not None else ()
    poller = select.poll()
    remaining = set(held.values())
    for fd in remaining:
        poller.register(fd, select.POLLIN)
    for number, seconds in (*asking, (signal.SIGKILL, KILLED_SECONDS)):
        for fd in remaining:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, number)
        deadline = time.monotonic() + seconds
        while remaining and (rest := deadline - time.monotonic()) > 0:
            for fd, _ in poller.poll(rest * 1000):
                poller.unregister(fd)
                remaining.discard(fd)
    for fd in held.values():
        os.close(fd)


def signal_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal a process if `is_meant` returns True, while its pid cannot be reused."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_meant():
            return False
        signal.pidfd_send_signal(held, number)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def watch_exit(pid: int) -> int | None:
    """Return a descriptor that becomes readable when the process exits; None if not supported."""
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None


def end_with_parent(mark: str = "") -> Callable[[], None] | None:
    """Return a function that a child calls before it becomes the program.

    The function asks the kernel to send SIGTERM when the supervisor dies, and enters the control
    group of the launch `mark`, if possible. The signal is tied to the parent's thread, so a launch
    must be started from the main thread.
    """
    import ctypes  # noqa: PLC0415 - only needed to start an agent

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()
    group = control_group.make_group(mark) if mark else ""

    def ask() -> None:
        prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)  # the parent died before the request
        if group:
            control_group.enter_group(group)

    return ask


def _find_others(pid: int, mark: str, uptime: float) -> dict[int, list[bytes]]:
    """Return the launch's processes except `pid`: those with its mark, and all descendants.

    A descendant may have lost the mark (`env -i`, `sudo`), and a process with the mark may have
    lost its parent.
    """
    numbers = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - as below
    stats = {number: stat for number in numbers if (stat := _read_stat(number)) is not None}
    tree = {pid, *(number for number, _ in _find_bearing(mark, uptime))}
    while more := {other for other, stat in stats.items() if int(stat[_PARENT]) in tree} - tree:
        tree |= more
    return {other: stats[other] for other in tree & stats.keys() if other != pid}


def _count_moved_bytes(pid: int) -> int:
    """Return how many bytes a process has read and written, or 0 if this is not reported."""
    try:
        counts = _read(f"{_PROC}/{pid}/io").split()
    except OSError:
        return 0
    return int(counts[1]) + int(counts[3])  # the values of rchar and wchar


def _find_bearing(mark: str, uptime: float) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the processes with the mark, except this one, each with its stat fields."""
    earliest = _find_earliest(uptime)
    names = os.listdir(_PROC) if _PROC.is_dir() else ()  # noqa: PTH208 - delays a restart
    for name in names:
        if name.isdecimal() and int(name) != os.getpid():
            stat = _match_mark(int(name), mark, earliest)
            if stat is not None:
                yield int(name), stat


def _match_mark(pid: int, mark: str, earliest: float) -> list[bytes] | None:
    """Return a process's stat fields if it is ours and part of the launch, or None otherwise."""
    try:
        if os.stat(f"{_PROC}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - called often, delays a restart
            return None
        stat = _read_stat(pid)
        if stat is None or int(stat[_START_TIME]) < earliest:
            return None
        if f"{LAUNCH_VARIABLE}={mark}".encode() in _read(f"{_PROC}/{pid}/environ").split(b"\0"):
            return stat
        return stat if control_group.is_in_group(_read(f"{_PROC}/{pid}/cgroup"), mark) else None
    except OSError:
        return None


def _is_ours(pid: int) -> bool:
    """Return whether we may end a process: it belongs to our user, or we are root."""
    try:
        return os.geteuid() in {0, os.stat(f"{_PROC}/{pid}").st_uid}  # noqa: PTH116 - as above
    except OSError:
        return False


def _find_earliest(uptime: float) -> float:
    return (uptime - 1) / _TICK


def _to_seconds(ticks: list[bytes]) -> float:
    return sum(map(int, ticks)) * _TICK


def _read_stat(pid: int) -> list[bytes] | None:
    try:
        stat = _read(f"{_PROC}/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return None if stat[_STATE] in {b"Z", b"X"} else stat


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 17), b""))
    finally:
        os.close(fd)
