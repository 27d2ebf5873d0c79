"""Processes as every other system shows them, through psutil: macOS is the one that we support.

What Linux has and this has not:

- Nothing holds a process. Its number is looked up again right before each signal; see `_signal`.
- Nobody tells the agent that its supervisor died. What it leaves is ended when the next launch
  begins, as everything is that bears the mark.
- macOS hides the environment of its own programs (/bin/sh, /bin/sleep) from everybody. They are not
  found by their mark; what else they started is.
- An orphan goes to the first process of the system, never to the supervisor. One that has cleared
  its environment is found only if the supervisor has recorded it while its parent still lived.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import psutil

from rekindle.documents.launch import MARK, Vitals
from rekindle.system.tree import Row
from rekindle.thresholds.running import KILLED_SECONDS, PROCESS_LIST_SECONDS, PROCESS_POLL_SECONDS


@cache
def this_boot() -> str:
    """Which boot of the host this is.

    macOS gives each a name. Elsewhere it is the instant of it, which moves when the clock is set:
    asked once, so that it is the same for as long as we live.
    """
    argv = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    said = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        said = subprocess.run(  # noqa: S603 - words of our own
            argv, capture_output=True, text=True, check=False, timeout=PROCESS_LIST_SECONDS
        ).stdout.strip()
    return said[:8].lower() or f"{int(psutil.boot_time()):08x}"


def uptime() -> float:
    """Seconds since that boot, also those that the host slept."""
    # Of macOS the second one; Linux, in the tests, does not count its sleep there.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def room() -> str:
    """There is but one namespace of numbers."""
    return ""


def born(pid: int) -> int | None:
    """When a process began, as a number of its own; None: it is gone, or a mere entry."""
    found = _process(pid)
    return None if found is None else _born(found)


def vitals(pid: int, mark: str, uptime: float) -> Vitals | None:
    """Measure a launch's process and its other processes; None if it is gone."""
    found = _process(pid)
    if found is None:
        return None
    try:
        with found.oneshot():
            stopped, cpu = found.status() == psutil.STATUS_STOPPED, found.cpu_times()
    except psutil.Error:
        return None
    tools, seconds, moved = 0, cpu.children_user + cpu.children_system, 0
    for one in {*_bearing(mark, uptime), *_descendants(found)} - {found}:
        with contextlib.suppress(psutil.Error):  # it has just ended
            seconds += sum(one.cpu_times()[:4])
            tools += 1
            moved += _moved(one)
    return Vitals(
        stopped=stopped,
        cpu_seconds=cpu.user + cpu.system,
        tools=tools,
        tools_cpu_seconds=seconds,
        moved_bytes=_moved(found),
        tools_moved_bytes=moved,
    )


def table() -> dict[int, Row]:
    """Return every process that lives; those that wait to be reaped are left out."""
    found: dict[int, Row] = {}
    for pid in psutil.pids():
        if (process := _process(pid)) is None or (start := _born(process)) is None:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            found[pid] = Row(process.ppid(), os.getpgid(pid), start)
    return found


def bears(pid: int, mark: str, uptime: float) -> bool:
    """Whether a process of our user bears the mark and is not older than the launch."""
    process = _process(pid)
    return process is not None and _bears(process, mark, psutil.boot_time() + uptime - 1)


def environment(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty if we may not read it."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def locate(pid: int, path: Path) -> Path:  # noqa: ARG001 - as linux.py has it
    """Return where we find a path of a process: here every process has our root."""
    return path


def command(pid: int) -> str:
    """Return the command line of a process; empty if it is gone."""
    try:
        return " ".join(psutil.Process(pid).cmdline()).strip()
    except (psutil.Error, OSError):
        return ""


def has_open(pid: int, path: Path) -> bool:
    """Whether a process has a file open."""
    try:
        return any(Path(one).samefile(path) for one in open_files(pid))
    except OSError:
        return False


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open; empty if we may not look."""
    try:
        return [one.path for one in psutil.Process(pid).open_files()]
    except (psutil.Error, OSError):
        return []


def parent(pid: int) -> int:
    """Return the parent of a process; 0: it has none that we can see."""
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0


def hold(pid: int, start: int) -> psutil.Process | None:
    """Return a process with its start, by which each signal is checked; None: it is gone."""
    process = _process(pid)
    if process is None or _born(process) != start:
        return None
    try:
        return process if os.geteuid() in {0, process.uids().effective} else None
    except psutil.Error:
        return None


def send(pid: int, start: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it is gone."""
    process = hold(pid, start)
    if process is not None:
        _signal(process, number)


def adopt_orphans() -> bool:
    """Return False: this system gives orphans to its first process and to no other."""
    return False


def end(held: Mapping[int, psutil.Process], patience: float | None) -> None:
    """Ask them to end, kill them after a while (None: at once), and return when all are gone."""
    asking = ((signal.SIGTERM, patience),) if patience is not None else ()
    left = [one for one in held.values() if _lives(one)]
    for number, seconds in (*asking, (signal.SIGKILL, KILLED_SECONDS)):
        for one in left:
            _signal(one, number)
        deadline = time.monotonic() + seconds
        # Not psutil's own waiting: it would take the exit code of a child of ours.
        while (left := [one for one in left if _lives(one)]) and time.monotonic() < deadline:
            time.sleep(PROCESS_POLL_SECONDS)


def signal_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal a process if `is_meant` says yes; see `_signal` for the race that is left."""
    found = _process(pid)
    if found is None or not is_meant():
        return False
    _signal(found, number)
    return True


def end_of(pid: int) -> int | None:  # noqa: ARG001 - as Linux has it
    """A process's end cannot be waited for together with streams: it has to be looked for."""
    return None


def end_with_parent(mark: str = "") -> Callable[[], None] | None:  # noqa: ARG001 - as on Linux
    """Nothing tells a child that its parent died: the next launch ends what is left of this one."""
    return None


def _bearing(mark: str, uptime: float) -> Iterator[psutil.Process]:
    """The processes with the mark, but for ourselves."""
    earliest = psutil.boot_time() + uptime - 1
    for pid in psutil.pids():
        if pid != os.getpid() and (found := _process(pid)) and _bears(found, mark, earliest):
            yield found


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [one for one in process.children(recursive=True) if _lives(one)]
    except psutil.Error:
        return []


def _moved(process: psutil.Process) -> int:
    """Return how many bytes a process has read and written; 0 on macOS, which does not count."""
    try:
        counts = process.io_counters()
    except (AttributeError, psutil.Error):
        return 0
    # All that it read and wrote; other systems than Linux count only what reached a disk.
    read = getattr(counts, "read_chars", counts.read_bytes)
    return int(read + getattr(counts, "write_chars", counts.write_bytes))


def _bears(process: psutil.Process, mark: str, earliest: float) -> bool:
    try:
        with process.oneshot():
            return (
                process.uids().effective == os.geteuid()
                and process.create_time() >= earliest
                and process.environ().get(MARK) == mark
            )
    except (psutil.Error, OSError):
        return False


def _born(process: psutil.Process) -> int | None:
    # Not `create_time`: that follows the clock when it is set, and would make another of it.
    _, birth = process._ident  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    return None if birth is None else round(birth * 1_000_000)


def _process(pid: int) -> psutil.Process | None:
    """A process with the time of its birth; None: it is gone, or a mere entry."""
    try:
        found = psutil.Process(pid)
    except (psutil.Error, ValueError, OverflowError):
        return None
    return found if _lives(found) else None


def _lives(process: psutil.Process) -> bool:
    """Whether it is there, is the same one, and is more than an entry."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    """Signal it if it is still the one that was found; psutil looks at its birth first.

    The race that stays: between that look and the signal it ends, somebody waits for it, and its
    number is given to another. Numbers go around; a whole round would have to fit in between.
    """
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)
