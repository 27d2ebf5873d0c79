"""What a launch left behind: found by its mark, and ended.

A program that is killed leaves its tools running: they have sessions of their own, so no signal to
its group reaches them, and they go on writing beside whatever is started next. What every process
inherits is the environment. A mark in it finds them, whoever their parent is by now.

Looked at are only processes of our own user that are not older than the launch.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from rekindle.documents.launch import MARK
from rekindle.errors import AgentError

_PROC = Path("/proc")
_ROUNDS = 100
"""How often to look again for what others fork while they are being ended."""
_KILLED_SECONDS = 10.0
_START_TIME = 19
"""The place of `starttime` in /proc/PID/stat, behind the name in brackets."""
_FACTS_OF_BIRTH = 3
"""When, in which boot, in which namespace: what makes a process's number its own."""


def this_boot() -> str:
    """Which boot of the host this is; empty where it does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return ""


def uptime() -> float:
    """Seconds since that boot, also those that the host slept."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def end_marked(mark: str, *, boot: str, uptime: float, patience: float) -> int:
    """End every process with this mark that is not older; returns how many there were.

    They are asked first, and killed when they have not ended within `patience` seconds. Looked for
    again until none is found: what is being ended may still fork. Only the first are asked: whoever
    answers SIGTERM with another of its kind would never be done with.
    """
    if boot != this_boot():
        return 0  # the host has been started anew since: nothing of then is left
    ended: set[int] = set()
    for number in range(_ROUNDS):
        found = _marked(mark, uptime)
        if not found:
            return len(ended)
        ended |= set(found)
        _end(found, patience if number == 0 else None)
    raise AgentError(
        f"what launch {mark} left behind could not be ended: {sorted(_marked(mark, uptime))}",
        hint="look at these processes (ps) and end them by hand, then run again",
    )


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
    if born[2] != _room():
        return True
    return born[0] == str(_started(int(pid)))


def _marked(mark: str, uptime: float) -> dict[int, int]:
    """Our user's processes with the mark that are not older, each held so that none is mistaken."""
    found: dict[int, int] = {}
    wanted = f"{MARK}={mark}".encode()
    if not _PROC.joinpath("self/environ").exists():
        return found  # no /proc: the group was all that could be reached
    earliest = (uptime - 1) * os.sysconf("SC_CLK_TCK")
    for name in os.listdir(_PROC):  # noqa: PTH208 - a thousand times in the way of a restart
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        pid = int(name)
        if not _bears(pid, wanted, earliest):
            continue
        try:
            held = os.pidfd_open(pid)
        except OSError:
            continue
        # Looked at again now that the number cannot be given to another.
        if _bears(pid, wanted, earliest):
            found[pid] = held
        else:
            os.close(held)
    return found


def _bears(pid: int, wanted: bytes, earliest: float) -> bool:
    try:
        if os.stat(f"{_PROC}/{pid}").st_uid != os.geteuid():  # noqa: PTH116 - as above
            return False
        started = _started(pid)
        if started is None or started < earliest:
            return False
        return wanted in _read(f"{_PROC}/{pid}/environ").split(b"\0")
    except OSError:
        return False


def _started(pid: int) -> int | None:
    """When a process began, in ticks since the boot; None: it is gone, or a mere entry."""
    try:
        stat = _read(f"{_PROC}/{pid}/stat")
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in {b"Z", b"X"} else int(fields[_START_TIME])


def _room() -> str:
    """The namespace in which numbers of processes mean what they mean to us."""
    try:
        return os.readlink(_PROC / "self/ns/pid")[5:-1]  # noqa: PTH115 - the text, not the place
    except OSError:
        return ""


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return b"".join(iter(lambda: os.read(fd, 1 << 17), b""))
    finally:
        os.close(fd)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def _end(held: Mapping[int, int], patience: float | None) -> None:
    """Ask them to end, kill them after a while (None: at once), and return when all are gone."""
    asking = ((signal.SIGTERM, patience),) if patience is not None else ()
    poller = select.poll()
    left = set(held.values())
    for fd in left:
        poller.register(fd, select.POLLIN)
    for number, seconds in (*asking, (signal.SIGKILL, _KILLED_SECONDS)):
        for fd in left:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(fd, number)
        deadline = time.monotonic() + seconds
        while left and (rest := deadline - time.monotonic()) > 0:
            for fd, _ in poller.poll(rest * 1000):
                poller.unregister(fd)
                left.discard(fd)
    for fd in held.values():
        os.close(fd)
