"""Process functions for Linux, using /proc and pidfds.

A signal sent through an open pidfd cannot reach another process, even if the pid is reused.
"""

import contextlib
import os
import re
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

_FIRST_NAMESPACE = "4026531836"
"""The host's own pid namespace, which shows every process. Its number is fixed in the kernel."""
_NAMESPACE_PIDS = re.compile(rb"^NSpid:(.*)$", re.MULTILINE)
"""A process's pid in each namespace, from our namespace to its own."""
_SANDBOX_NAME = b"bwrap\n"

# Fields in /proc/PID/stat, counted after the process name.
_STATE = 0
_PARENT = 1
_GROUP = 2
_OWN_CPU = slice(11, 13)
_CHILDREN_CPU = slice(13, 15)
_START_TIME = 19


def this_boot() -> str:
    """Return an id for the current boot; empty if unavailable."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return ""


def uptime() -> float:
    """Return the seconds since boot, including sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def read_namespace() -> str:
    """Return this process's pid namespace."""
    try:
        return os.readlink(_PROC / "self/ns/pid")[5:-1]  # noqa: PTH115 - the link's text
    except OSError:
        return ""


def is_nested(pid: int, start: int) -> bool | None:
    """Return whether a process with this pid in another namespace is running.

    Processes in inner namespaces are visible here. A process that is not among them has exited. If
    its namespace could be outside ours, the result is None.
    """
    for name in os.listdir(_PROC):  # noqa: PTH208 - only names are needed
        if not name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            (numbers,) = _NAMESPACE_PIDS.findall(_read_file(f"{_PROC}/{name}/status")) or (b"",)
            inner = numbers.split()[1:]
            if inner and int(inner[-1]) == pid and born(int(name)) == start:
                return True
    return False if read_namespace() == _FIRST_NAMESPACE else None


def born(pid: int) -> int | None:
    """Return the start time of a process in ticks since boot, or None if it has exited."""
    stat = _read_stat(pid)
    return None if stat is None else int(stat[_START_TIME])


def vitals(pid: int, mark: str, uptime: float) -> ProcessVitals | None:
    """Measure the processes of a launch. Return None if its main process has exited."""
    if _read_stat(pid) is None:
        return None
    around = list_enclosing(pid)
    pid = around.pop()
    stat = _read_stat(pid)
    if stat is None:
        return None
    others = _find_others(pid, mark, uptime)
    for number in around:
        others.pop(number, None)
    tools = others.values()
    return ProcessVitals(
        stopped=stat[_STATE] == b"T",
        cpu_seconds=_to_seconds(stat[_OWN_CPU]),
        tools=len(tools),
        # The kernel adds the CPU time of reaped children to their parent.
        tools_cpu_seconds=_to_seconds(stat[_CHILDREN_CPU])
        + sum(_to_seconds(fields[_OWN_CPU] + fields[_CHILDREN_CPU]) for fields in tools),
        moved_bytes=_count_moved_bytes(pid),
        tools_moved_bytes=sum(map(_count_moved_bytes, others)),
    )


def list_enclosing(pid: int) -> list[int]:
    """Return the processes around the program in a sandbox, followed by the program itself.

    Without a sandbox, the program is `pid`.
    """
    chain = [pid]
    while _read_name(chain[-1]) == _SANDBOX_NAME:
        # The first process in a sandbox also adopts orphans, which are younger than the program.
        below = {one: row for one, row in table().items() if row.parent == chain[-1]}
        if not below:
            break
        chain.append(min(below, key=lambda one: (below[one].born, one)))
    return chain


def table() -> dict[int, ProcessRow]:
    """Return all running processes except zombies."""
    rows: dict[int, ProcessRow] = {}
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():  # noqa: PTH208 - delays a restart
        if name.isdecimal() and (stat := _read_stat(int(name))) is not None:
            rows[int(name)] = ProcessRow(
                int(stat[_PARENT]), int(stat[_GROUP]), int(stat[_START_TIME])
            )
    return rows


def has_mark(pid: int, mark: str, uptime: float) -> bool:
    """Return whether one of our user's processes has a launch's mark or is in its control group.

    Processes older than the launch never match.
    """
    return _match_mark(pid, mark, _find_earliest(uptime)) is not None


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if unreadable."""
    try:
        words = _read_file(f"{_PROC}/{pid}/environ").split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def locate(pid: int, path: Path) -> Path:
    """Return a process's path as seen from here. A process in a container has a different root."""
    return Path(f"{_PROC}/{pid}/root{path}")


def command(pid: int) -> str:
    """Return a process's command line; empty if it has exited."""
    try:
        words = _read_file(f"{_PROC}/{pid}/cmdline").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()


def working_folder(pid: int) -> str:
    """Return the working folder of one of our user's processes; empty if unreadable."""
    try:
        is_own = os.stat(f"{_PROC}/{pid}").st_uid == os.geteuid()  # noqa: PTH116 - as below
        return os.readlink(f"{_PROC}/{pid}/cwd") if is_own else ""  # noqa: PTH115 - the text
    except OSError:
        return ""


def has_open(pid: int, path: Path) -> bool:
    """Return whether a process has a file open."""
    try:
        file_status = path.stat()
        numbers = os.listdir(f"{_PROC}/{pid}/fd")  # noqa: PTH208 - only names are needed
    except OSError:
        return False
    for number in numbers:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{_PROC}/{pid}/fd/{number}"), file_status):  # noqa: PTH116 - follows the link
                return True
    return False


def open_files(pid: int) -> list[str]:
    """Return the files that a process has open; empty if unreadable."""
    paths = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"{_PROC}/{pid}/fd"):  # noqa: PTH208 - only names are needed
            with contextlib.suppress(OSError):
                paths.append(os.readlink(f"{_PROC}/{pid}/fd/{number}").removesuffix(" (deleted)"))  # noqa: PTH115 - the text
    return paths


def parent(pid: int) -> int:
    """Return the pid of a process's parent, or 0 if it is not visible."""
    stat = _read_stat(pid)
    return 0 if stat is None else int(stat[_PARENT])


def hold(pid: int, start: int) -> int | None:
    """Return a pidfd for the process with this start time if we may signal it, or None."""
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

    Otherwise, a child that starts a new session and exits leaves its children to init. If they have
    also cleared their environment, they cannot be traced to their launch.
    """
    import ctypes  # noqa: PLC0415 - only a supervisor needs it

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end(held: Mapping[int, int], patience: float | None) -> None:
    """Send SIGTERM, then SIGKILL after `patience` (None: immediately). Wait for all exits."""
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
    """Signal a process if `is_meant` returns True, with no risk of hitting a reused pid."""
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
    """Return a descriptor that is readable once the process exits; None if unsupported."""
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None


def end_with_parent(mark: str = "") -> Callable[[], None] | None:
    """Return a function for a child to call before it runs the program.

    It asks the kernel for SIGTERM when the supervisor dies, and joins the control group of the
    launch `mark`, if possible. The kernel ties the signal to the parent's thread, so a launch must
    be started from the main thread.
    """
    import ctypes  # noqa: PLC0415 - only needed to start an agent

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()
    group = control_group.make_group(mark) if mark else ""

    def set_death_signal() -> None:
        prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)  # the parent has already died
        if group:
            control_group.enter_group(group)

    return set_death_signal


def _find_others(pid: int, mark: str, uptime: float) -> dict[int, list[bytes]]:
    """Return the launch's other processes: those with its mark, and all descendants.

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
    """Return the bytes that a process has read and written, or 0 if unknown."""
    try:
        counts = _read_file(f"{_PROC}/{pid}/io").split()
    except OSError:
        return 0
    return int(counts[1]) + int(counts[3])  # the values of rchar and wchar


def _find_bearing(mark: str, uptime: float) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the processes with a launch's mark and their stat fields, except this process."""
    earliest = _find_earliest(uptime)
    names = os.listdir(_PROC) if _PROC.is_dir() else ()  # noqa: PTH208 - delays a restart
    for name in names:
        if name.isdecimal() and int(name) != os.getpid():
            stat = _match_mark(int(name), mark, earliest)
            if stat is not None:
                yield int(name), stat


def _match_mark(pid: int, mark: str, earliest: float) -> list[bytes] | None:
    """Return a process's stat fields if it is ours and part of the launch, or None."""
    try:
        if os.stat(f"{_PROC}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - called often, delays a restart
            return None
        stat = _read_stat(pid)
        if stat is None or int(stat[_START_TIME]) < earliest:
            return None
        if f"{LAUNCH_VARIABLE}={mark}".encode() in _read_file(f"{_PROC}/{pid}/environ").split(
            b"\0"
        ):
            return stat
        return (
            stat if control_group.is_in_group(_read_file(f"{_PROC}/{pid}/cgroup"), mark) else None
        )
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
        stat = _read_file(f"{_PROC}/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return None if stat[_STATE] in {b"Z", b"X"} else stat


def _read_name(pid: int) -> bytes:
    try:
        return _read_file(f"{_PROC}/{pid}/comm")
    except OSError:
        return b""


def _read_file(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 17), b""))
    finally:
        os.close(fd)
