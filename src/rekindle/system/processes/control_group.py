"""A control group for each launch, if cgroup v2 is delegated to the supervisor (Linux).

A process can leave its session, its parent and its environment behind, but it does not leave its
control group by accident. So the processes of a launch are found even if the supervisor was killed
before it recorded them. Without a delegated group, they are found by the launch's mark in their
environment, by their parents, and by the supervisor's record.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

_PREFIX = "rekindle-"
_UNIFIED = b"0::"
"""Prefix of the cgroup v2 line in /proc/PID/cgroup."""


def make_group(mark: str) -> str:
    """Create a launch's group; return the file with which a process joins it, or "" without one."""
    parent = _find_own_group()
    if parent is None:
        return ""
    with suppress(OSError):
        for empty in parent.glob(f"{_PREFIX}*"):  # left by killed supervisors
            with suppress(OSError):
                empty.rmdir()
        group = parent / f"{_PREFIX}{mark}"
        group.mkdir(exist_ok=True)
        return str(group / "cgroup.procs")
    return ""


def enter_group(file: str) -> None:
    """Move the calling process into a group; do nothing if the host refuses."""
    with suppress(OSError):
        number = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(number, b"0")
        finally:
            os.close(number)


def is_in_group(listed: bytes, mark: str) -> bool:
    """Return whether a process is in a launch's group, given its /proc/PID/cgroup content."""
    name = f"{_PREFIX}{mark}".encode()
    return any(
        name in line.split(b"/") for line in listed.splitlines() if line.startswith(_UNIFIED)
    )


@cache
def _find_own_group() -> Path | None:
    """Return the folder of this process's group if it is delegated to the user, or None."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        listed = Path("/proc/self/cgroup").read_bytes().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    listed_path = next(
        (line[len(_UNIFIED) :] for line in listed if line.startswith(_UNIFIED)), None
    )
    mounted = next((line.split() for line in mounts if " - cgroup2 " in line), None)
    if listed_path is None or mounted is None:
        return None
    root, mount_point = mounted[3], mounted[4]
    inside = os.fsdecode(listed_path).removeprefix(root.rstrip("/")).lstrip("/")
    group = Path(mount_point, inside)
    return group if _is_delegated(group) else None


def _is_delegated(group: Path) -> bool:
    """Return whether systemd or the group's owner has delegated the group to this user."""
    with suppress(OSError):
        if not os.access(group / "cgroup.procs", os.W_OK):
            return False
        if os.geteuid() != 0:
            return group.stat().st_uid == os.geteuid()
    for name in ("trusted.delegate", "user.delegate"):
        with suppress(OSError):
            return os.getxattr(group, name) == b"1"
    return False
