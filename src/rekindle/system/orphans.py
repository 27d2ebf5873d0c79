"""What a launch left behind: found by its mark, and ended.

A program that is killed leaves its tools running: they have sessions of their own, so no signal to
its group reaches them, and they go on writing beside whatever is started next. What every process
inherits is the environment. A mark in it finds them, whoever their parent is by now.

Looked at are only processes of our own user that are not older than the launch.
"""

import os

from rekindle.documents.launch import Vitals
from rekindle.errors import AgentError
from rekindle.system import kernel

_ROUNDS = 100
"""How often to look again for what others fork while they are being ended."""
_FACTS_OF_BIRTH = 3
"""When, in which boot, in which namespace: what makes a process's number its own."""


def this_boot() -> str:
    """Which boot of the host this is; empty where it does not say."""
    return kernel.here.this_boot()


def uptime() -> float:
    """Seconds since that boot, also those that the host slept."""
    return kernel.here.uptime()


def end_marked(mark: str, *, boot: str, uptime: float, patience: float) -> int:
    """End every process with this mark that is not older; returns how many there were.

    They are asked first, and killed when they have not ended within `patience` seconds. Looked for
    again until none is found: what is being ended may still fork. Only the first are asked: whoever
    answers SIGTERM with another of its kind would never be done with.
    """
    if boot != this_boot():
        return 0  # the host has been started anew since: nothing of then is left
    ended: set[int] = set()
    left: set[int] = set()
    for number in range(_ROUNDS):
        found = kernel.here.marked(mark, uptime)
        if not found:
            return len(ended)
        left = set(found)
        ended |= left
        kernel.here.end(found, patience if number == 0 else None)
    raise AgentError(
        f"what launch {mark} left behind could not be ended: {sorted(left)}",
        hint="look at these processes (ps) and end them by hand, then run again",
    )


def vitals(pid: int, mark: str, *, boot: str, uptime: float) -> Vitals | None:
    """How a launch's process does, and what else bears its mark; None: it is gone."""
    return kernel.here.vitals(pid, mark, uptime) if boot == this_boot() else None


def identify(pid: int) -> str | None:
    """A process, told from any other that will ever have its number; None: it is gone."""
    born = kernel.here.born(pid)
    return None if born is None else f"{pid}.{born}.{this_boot()}.{kernel.here.room()}"


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


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0
