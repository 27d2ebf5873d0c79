"""Processes as Linux shows them: /proc, and descriptors that hold a process.

While a descriptor is held, no signal sent through it can reach another process, whatever becomes
of the number.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rekindle.documents.launch import MARK, Vitals
from rekindle.system import scope
from rekindle.system.tree import Row
from rekindle.thresholds.running import KILLED_SECONDS

_PROC = Path("/proc")
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_TICK = 1 / os.sysconf("SC_CLK_TCK")

# Places in /proc/PID/stat, behind the name in brackets.
_STATE = 0
_PARENT = 1
_GROUP = 2
_OWN_CPU = slice(11, 13)
_CHILDREN_CPU = slice(13, 15)
_START_TIME = 19


def this_boot() -> str:
    """Which boot of the host this is; empty where it does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return ""


def uptime() -> float:
    """Seconds since that boot, also those that the host slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def room() -> str:
    """The namespace in which numbers of processes mean what they mean to us."""
    try:
        return os.readlink(_PROC / "self/ns/pid")[5:-1]  # noqa: PTH115 - the text, not the place
    except OSError:
        return ""


def born(pid: int) -> int | None:
    """When a process began, in ticks since the boot; None: it is gone, or a mere entry."""
    stat = _stat(pid)
    return None if stat is None else int(stat[_START_TIME])


def vitals(pid: int, mark: str, uptime: float) -> Vitals | None:
    """Measure a launch's process and its other processes; None if it is gone."""
    stat = _stat(pid)
    if stat is None:
        return None
    others = _others(pid, mark, uptime)
    tools = others.values()
    return Vitals(
        stopped=stat[_STATE] == b"T",
        cpu_seconds=_seconds(stat[_OWN_CPU]),
        tools=len(tools),
        # What ended and was waited for counts on with whoever waited.
        tools_cpu_seconds=_seconds(stat[_CHILDREN_CPU])
        + sum(_seconds(one[_OWN_CPU] + one[_CHILDREN_CPU]) for one in tools),
        moved_bytes=_moved(pid),
        tools_moved_bytes=sum(map(_moved, others)),
    )


def table() -> dict[int, Row]:
    """Return every process that lives; those that wait to be reaped are left out."""
    found: dict[int, Row] = {}
    for name in os.listdir(_PROC) if _PROC.is_dir() else ():  # noqa: PTH208 - delays a restart
        if name.isdecimal() and (stat := _stat(int(name))) is not None:
            found[int(name)] = Row(int(stat[_PARENT]), int(stat[_GROUP]), int(stat[_START_TIME]))
    return found


def bears(pid: int, mark: str, uptime: float) -> bool:
    """Return whether a process of our user belongs to a launch by its mark or its control group.

    One that is older than the launch never does.
    """
    return _bears(pid, mark, _earliest(uptime)) is not None


def environment(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty if we may not read it."""
    try:
        words = _read(f"{_PROC}/{pid}/environ").split(b"\0")
    except OSError:
        return {}
    return dict(os.fsdecode(word).split("=", 1) for word in words if b"=" in word)


def locate(pid: int, path: Path) -> Path:
    """Return where we find a path of a process, whose root may be another, as in a container."""
    return Path(f"{_PROC}/{pid}/root{path}")


def command(pid: int) -> str:
    """Return the command line of a process; empty if it is gone."""
    try:
        words = _read(f"{_PROC}/{pid}/cmdline").split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", "replace").strip()


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    try:
        wanted = path.stat()
        numbers = os.listdir(f"{_PROC}/{pid}/fd")  # noqa: PTH208 - a name is all that is needed
    except OSError:
        return False
    for number in numbers:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(f"{_PROC}/{pid}/fd/{number}"), wanted):  # noqa: PTH116 - follows the link
                return True
    return False


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open; empty if we may not look."""
    found = []
    with contextlib.suppress(OSError):
        for number in os.listdir(f"{_PROC}/{pid}/fd"):  # noqa: PTH208 - a name is all that is needed
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"{_PROC}/{pid}/fd/{number}").removesuffix(" (deleted)"))  # noqa: PTH115 - the text
    return found


def parent(pid: int) -> int:
    """Return the parent of a process; 0: it has none that we can see."""
    stat = _stat(pid)
    return 0 if stat is None else int(stat[_PARENT])


def hold(pid: int, start: int) -> int | None:
    """Hold a process so that its number cannot come to mean another; None: it is gone."""
    try:
        held = os.pidfd_open(pid)
    except OSError:
        return None
    if _is_ours(pid) and born(pid) == start:
        return held
    os.close(held)
    return None


def send(pid: int, start: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it is gone."""
    held = hold(pid, start)
    if held is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(held, number)
        os.close(held)


def adopt_orphans() -> bool:
    """Become the parent of every process below us whose own parent ends.

    Without this, a child that starts a new session and ends leaves its own children to the first
    process of the system. If they have cleared their environment too, nothing tells whose they are.
    """
    import ctypes  # noqa: PLC0415 - only a supervisor needs it, not a hook

    return bool(ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def end(held: Mapping[int, int], patience: float | None) -> None:
    """Ask them to end, kill them after a while (None: at once), and return when all are gone."""
    asking = ((signal.SIGTERM, patience),) if patience is not None else ()
    poller = select.poll()
    left = set(held.values())
    for fd in left:
        poller.register(fd, select.POLLIN)
    for number, seconds in (*asking, (signal.SIGKILL, KILLED_SECONDS)):
        for fd in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(fd, number)
        deadline = time.monotonic() + seconds
        while left and (rest := deadline - time.monotonic()) > 0:
            for fd, _ in poller.poll(rest * 1000):
                poller.unregister(fd)
                left.discard(fd)
    for fd in held.values():
        os.close(fd)


def signal_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal a process if `is_meant` says yes while its number cannot be given to another."""
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


def end_of(pid: int) -> int | None:
    """Something that can be waited for together with streams; None where there is no such."""
    return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None


def end_with_parent(mark: str = "") -> Callable[[], None] | None:
    """Return what a child does before it becomes the program.

    It asks the kernel for SIGTERM when the supervisor dies, and enters the control group of the
    launch `mark`, if there can be one. The signal belongs to the parent's thread, so a launch must
    come from the main one.
    """
    import ctypes  # noqa: PLC0415 - only who starts an agent needs it, not a hook

    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()
    group = scope.make(mark) if mark else ""

    def ask() -> None:
        prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))
        if os.getppid() != parent:
            os._exit(1)  # it died before we could ask
        if group:
            scope.enter(group)

    return ask


def _others(pid: int, mark: str, uptime: float) -> dict[int, list[bytes]]:
    """Return the launch's processes except `pid`: those with its mark, and all descendants.

    A descendant may have lost the mark (`env -i`, `sudo`), and a marked one may have lost its
    parent.
    """
    numbers = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - as below
    stats = {number: stat for number in numbers if (stat := _stat(number)) is not None}
    tree = {pid, *(number for number, _ in _bearing(mark, uptime))}
    while more := {one for one, stat in stats.items() if int(stat[_PARENT]) in tree} - tree:
        tree |= more
    return {one: stats[one] for one in tree & stats.keys() if one != pid}


def _moved(pid: int) -> int:
    """Return how many bytes a process has read and written; 0 if the kernel does not say."""
    try:
        counts = _read(f"{_PROC}/{pid}/io").split()
    except OSError:
        return 0
    return int(counts[1]) + int(counts[3])  # rchar and wchar, each behind its name


def _bearing(mark: str, uptime: float) -> Iterator[tuple[int, list[bytes]]]:
    """The processes with the mark, but for ourselves, and what the kernel says about each."""
    earliest = _earliest(uptime)
    names = os.listdir(_PROC) if _PROC.is_dir() else ()  # noqa: PTH208 - in the way of a restart
    for name in names:
        if name.isdecimal() and int(name) != os.getpid():
            stat = _bears(int(name), mark, earliest)
            if stat is not None:
                yield int(name), stat


def _bears(pid: int, mark: str, earliest: float) -> list[bytes] | None:
    """Return the facts of a process that is ours, of the launch and not older; else None."""
    try:
        if os.stat(f"{_PROC}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - a thousand times in the way of a restart
            return None
        stat = _stat(pid)
        if stat is None or int(stat[_START_TIME]) < earliest:
            return None
        if f"{MARK}={mark}".encode() in _read(f"{_PROC}/{pid}/environ").split(b"\0"):
            return stat
        return stat if scope.holds(_read(f"{_PROC}/{pid}/cgroup"), mark) else None
    except OSError:
        return None


def _is_ours(pid: int) -> bool:
    """Whether we may end a process: our own user's; the superuser may end all below it."""
    try:
        return os.geteuid() in {0, os.stat(f"{_PROC}/{pid}").st_uid}  # noqa: PTH116 - as above
    except OSError:
        return False


def _earliest(uptime: float) -> float:
    return (uptime - 1) / _TICK


def _seconds(ticks: list[bytes]) -> float:
    return sum(map(int, ticks)) * _TICK


def _stat(pid: int) -> list[bytes] | None:
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
