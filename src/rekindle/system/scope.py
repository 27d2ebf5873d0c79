"""A control group for each launch, if cgroup v2 is delegated to the supervisor (Linux).

A process can leave its session, its parent and its environment behind, but it does not leave its
group by accident. So what a launch started is found even if the supervisor was killed before it had
recorded it. Without a delegated group the mark, the parents and the record find it.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "rekindle-"
_UNIFIED = b"0::"
"""How the line of cgroup v2 begins in /proc/PID/cgroup."""


def make(mark: str) -> str:
    """Make the group of a launch, and return the file that a process enters it by; or nothing."""
    own = _own_group()
    if own is None:
        return ""
    with suppress(OSError):
        for empty in own.glob(f"{_PREFIX}*"):  # of supervisors that were killed
            with suppress(OSError):
                empty.rmdir()
        group = own / f"{_PREFIX}{mark}"
        group.mkdir(exist_ok=True)
        return str(group / "cgroup.procs")
    return ""


def enter(file: str) -> None:
    """Move the calling process into a group; it stays where it is if the host refuses."""
    with suppress(OSError):
        number = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(number, b"0")
        finally:
            os.close(number)


def holds(listed: bytes, mark: str) -> bool:
    """Return whether the group of a launch has a process, by the process's /proc/PID/cgroup."""
    name = f"{_PREFIX}{mark}".encode()
    return any(
        name in line.split(b"/") for line in listed.splitlines() if line.startswith(_UNIFIED)
    )


@cache
def _own_group() -> Path | None:
    """Return the folder of our own group, if it is delegated to us."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        listed = Path("/proc/self/cgroup").read_bytes().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    own = next((line[len(_UNIFIED) :] for line in listed if line.startswith(_UNIFIED)), None)
    mounted = next((line.split() for line in mounts if " - cgroup2 " in line), None)
    if own is None or mounted is None:
        return None
    root, place = mounted[3], mounted[4]
    inside = os.fsdecode(own).removeprefix(root.rstrip("/")).lstrip("/")
    group = Path(place, inside)
    return group if _is_delegated(group) else None


def _is_delegated(group: Path) -> bool:
    """Return whether systemd, or the owner of the group, has left what is below it to us."""
    with suppress(OSError):
        if not os.access(group / "cgroup.procs", os.W_OK):
            return False
        if os.geteuid() != 0:
            return group.stat().st_uid == os.geteuid()
    for name in ("trusted.delegate", "user.delegate"):
        with suppress(OSError):
            return os.getxattr(group, name) == b"1"
    return False
