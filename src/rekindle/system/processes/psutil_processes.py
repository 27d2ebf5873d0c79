"""Process functions for systems other than Linux, using psutil. Only macOS is supported.

Differences from Linux:

- There are no process handles. The pid is looked up again right before each signal; see
  `_send_signal`.
- The agent is not notified when its supervisor dies. The next launch ends the agent's processes,
  like everything else with the mark.
- macOS hides the environment of its own programs (/bin/sh, /bin/sleep). They are not found by their
  mark, but other programs that they started are.
- Orphans are adopted by the system's first process, never by the supervisor. An orphan that has
  cleared its environment is found only if the supervisor recorded it while its parent was running.
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

from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    ProcessVitals,
)
from rekindle.system.processes.process_tree import ProcessRow
from rekindle.thresholds.supervision import (
    KILLED_SECONDS,
    PROCESS_LIST_SECONDS,
    PROCESS_POLL_SECONDS,
)


@cache
def this_boot() -> str:
    """Return an id for the current boot.

    macOS has an id for each boot. Elsewhere the boot time is used; it shifts when the clock is set,
    so it is read only once.
    """
    argv = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    boot_id = ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        boot_id = subprocess.run(  # noqa: S603 - fixed arguments
            argv, capture_output=True, text=True, check=False, timeout=PROCESS_LIST_SECONDS
        ).stdout.strip()
    return boot_id[:8].lower() or f"{int(psutil.boot_time()):08x}"


def uptime() -> float:
    """Return the seconds since boot, including sleep."""
    # This is correct on macOS. On Linux, where the tests run, CLOCK_MONOTONIC excludes sleep.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def read_namespace() -> str:
    """Return "", because there is only one pid namespace."""
    return ""


def born(pid: int) -> int | None:
    """Return a start time that identifies a process, or None if it has exited."""
    process = _find_process(pid)
    return None if process is None else _read_birth(process)


def vitals(pid: int, mark: str, uptime: float) -> ProcessVitals | None:
    """Measure the processes of a launch. Return None if its main process has exited."""
    process = _find_process(pid)
    if process is None:
        return None
    try:
        with process.oneshot():
            stopped, cpu = process.status() == psutil.STATUS_STOPPED, process.cpu_times()
    except psutil.Error:
        return None
    tools, seconds, moved = 0, cpu.children_user + cpu.children_system, 0
    for other in {*_find_bearing(mark, uptime), *_list_descendants(process)} - {process}:
        with contextlib.suppress(psutil.Error):  # the process has just exited
            seconds += sum(other.cpu_times()[:4])
            tools += 1
            moved += _count_moved_bytes(other)
    return ProcessVitals(
        stopped=stopped,
        cpu_seconds=cpu.user + cpu.system,
        tools=tools,
        tools_cpu_seconds=seconds,
        moved_bytes=_count_moved_bytes(process),
        tools_moved_bytes=moved,
    )


def is_nested(pid: int, start: int) -> bool | None:  # noqa: ARG001 - as on Linux
    """Return None: there are no namespaces on this system."""
    return None


def list_enclosing(pid: int) -> list[int]:
    """Return a launch's program; there are no sandboxes on this system."""
    return [pid]


def table() -> dict[int, ProcessRow]:
    """Return all running processes except zombies."""
    rows: dict[int, ProcessRow] = {}
    for pid in psutil.pids():
        if (process := _find_process(pid)) is None or (start := _read_birth(process)) is None:
            continue
        with contextlib.suppress(psutil.Error, OSError):
            rows[pid] = ProcessRow(process.ppid(), os.getpgid(pid), start)
    return rows


def has_mark(pid: int, mark: str, uptime: float) -> bool:
    """Return whether one of our user's processes has the launch's mark and is not older."""
    process = _find_process(pid)
    return process is not None and _match_mark(process, mark, psutil.boot_time() + uptime - 1)


def environment(pid: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty if unreadable."""
    try:
        return psutil.Process(pid).environ()
    except (psutil.Error, OSError):
        return {}


def locate(pid: int, path: Path) -> Path:  # noqa: ARG001 - as on Linux
    """Return the path unchanged, because all processes have the same root."""
    return path


def working_folder(pid: int) -> str:
    """Return the working folder of one of our user's processes; empty if unreadable."""
    try:
        process = psutil.Process(pid)
        return process.cwd() if process.uids().effective == os.geteuid() else ""
    except (psutil.Error, OSError):
        return ""


def command(pid: int) -> str:
    """Return the command line of a process; empty if it has exited."""
    try:
        return " ".join(psutil.Process(pid).cmdline()).strip()
    except (psutil.Error, OSError):
        return ""


def has_open(pid: int, path: Path) -> bool:
    """Return whether a process has a file open."""
    try:
        return any(Path(name).samefile(path) for name in open_files(pid))
    except OSError:
        return False


def open_files(pid: int) -> list[str]:
    """Return the files that a process has open; empty if unreadable."""
    try:
        return [file.path for file in psutil.Process(pid).open_files()]
    except (psutil.Error, OSError):
        return []


def parent(pid: int) -> int:
    """Return the pid of a process's parent, or 0 if it is not visible."""
    try:
        return psutil.Process(pid).ppid()
    except psutil.Error:
        return 0


def hold(pid: int, start: int) -> psutil.Process | None:
    """Return the process with this pid and start time if we may signal it, or None."""
    process = _find_process(pid)
    if process is None or _read_birth(process) != start:
        return None
    try:
        return process if os.geteuid() in {0, process.uids().effective} else None
    except psutil.Error:
        return None


def send(pid: int, start: int, number: signal.Signals) -> None:
    """Send a signal to a process, unless it has exited."""
    process = hold(pid, start)
    if process is not None:
        _send_signal(process, number)


def adopt_orphans() -> bool:
    """Return False, because only init adopts orphans on this system."""
    return False


def end(held: Mapping[int, psutil.Process], patience: float | None) -> None:
    """Send SIGTERM, then SIGKILL after `patience` (None: immediately). Wait for all exits."""
    asking = ((signal.SIGTERM, patience),) if patience is not None else ()
    remaining = [process for process in held.values() if _is_alive(process)]
    for number, seconds in (*asking, (signal.SIGKILL, KILLED_SECONDS)):
        for process in remaining:
            _send_signal(process, number)
        deadline = time.monotonic() + seconds
        # psutil's own wait would reap our child and lose its exit code.
        while (
            remaining := [process for process in remaining if _is_alive(process)]
        ) and time.monotonic() < deadline:
            time.sleep(PROCESS_POLL_SECONDS)


def signal_if(pid: int, number: signal.Signals, is_meant: Callable[[], bool]) -> bool:
    """Signal a process if `is_meant` returns True. For the remaining race, see `_send_signal`."""
    process = _find_process(pid)
    if process is None or not is_meant():
        return False
    _send_signal(process, number)
    return True


def watch_exit(pid: int) -> int | None:  # noqa: ARG001 - as on Linux
    """Return None: the exit has to be polled on this system."""
    return None


def end_with_parent(mark: str = "") -> Callable[[], None] | None:  # noqa: ARG001 - as on Linux
    """Return None: a child is not notified when its parent dies. The next launch cleans up."""
    return None


def _find_bearing(mark: str, uptime: float) -> Iterator[psutil.Process]:
    """Yield the processes with a launch's mark, except this process."""
    earliest = psutil.boot_time() + uptime - 1
    for pid in psutil.pids():
        if (
            pid != os.getpid()
            and (process := _find_process(pid))
            and _match_mark(process, mark, earliest)
        ):
            yield process


def _list_descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [child for child in process.children(recursive=True) if _is_alive(child)]
    except psutil.Error:
        return []


def _count_moved_bytes(process: psutil.Process) -> int:
    """Return the bytes that a process has read and written; 0 on macOS."""
    try:
        counts = process.io_counters()
    except (AttributeError, psutil.Error):
        return 0
    # Linux counts all bytes, other systems only those that reached a disk.
    read = getattr(counts, "read_chars", counts.read_bytes)
    return int(read + getattr(counts, "write_chars", counts.write_bytes))


def _match_mark(process: psutil.Process, mark: str, earliest: float) -> bool:
    try:
        with process.oneshot():
            return (
                process.uids().effective == os.geteuid()
                and process.create_time() >= earliest
                and process.environ().get(LAUNCH_VARIABLE) == mark
            )
    except (psutil.Error, OSError):
        return False


def _read_birth(process: psutil.Process) -> int | None:
    # Do not use `create_time`: it shifts when the clock is set, and the process would look new.
    _, birth = process._ident  # type: ignore[attr-defined]  # noqa: SLF001 - see above
    return None if birth is None else round(birth * 1_000_000)


def _find_process(pid: int) -> psutil.Process | None:
    """Return a process with its start time, or None if it has exited or is a zombie."""
    try:
        process = psutil.Process(pid)
    except (psutil.Error, ValueError, OverflowError):
        return None
    return process if _is_alive(process) else None


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process is still the same one, and not a zombie."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _send_signal(process: psutil.Process, number: signal.Signals) -> None:
    """Signal a process if it is still the same one. psutil checks its start time first.

    A race remains: after the check, the process could exit and its pid be reused. Pids are assigned
    in order, so all other pids would have to be used up in between.
    """
    with contextlib.suppress(psutil.Error):
        process.send_signal(number)
