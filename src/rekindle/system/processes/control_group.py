"""Put each launch in its own control group, if cgroup v2 is delegated to us (Linux).

A process may change its session, parent and environment, but it does not leave its control group by
accident. This way, a launch's processes are found even if the supervisor was killed before it
recorded them. Without delegation, they are found by the mark in their environment, by their
parents, and by the supervisor's record.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

PREFIX = "rekindle-"
"""Prefix of the name of every group that Rekindle creates."""
_UNIFIED = b"0::"
"""Prefix of the cgroup v2 line in /proc/PID/cgroup."""


def make_group(mark: str) -> str:
    """Create a launch's control group, and return the file used to join it, or ""."""
    parent = next(iter(find_delegated()), None)
    if parent is None:
        return ""
    with suppress(OSError):
        for empty in parent.glob(f"{PREFIX}*"):  # left behind by killed supervisors
            with suppress(OSError):
                empty.rmdir()
        group = parent / f"{PREFIX}{mark}"
        group.mkdir(exist_ok=True)
        return str(group / "cgroup.procs")
    return ""


def enter_group(file: str) -> None:
    """Move the calling process into a group. Do nothing if the host refuses."""
    with suppress(OSError):
        number = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(number, b"0")
        finally:
            os.close(number)


def is_in_group(listed: bytes, mark: str) -> bool:
    """Return whether a process is in a launch's group, according to its /proc/PID/cgroup."""
    name = f"{PREFIX}{mark}".encode()
    return any(
        name in line.split(b"/") for line in listed.splitlines() if line.startswith(_UNIFIED)
    )


@cache
def find_delegated() -> tuple[Path, ...]:
    """Return the folders of our own group and its parent, if they are delegated to the user.

    systemd starts a service in a subgroup of its delegated group if the unit has
    `DelegateSubgroup=`.
    """
    own = _find_own_group()
    if own is None:
        return ()
    mount_point, inside = own
    groups = [mount_point / inside, *([(mount_point / inside).parent] if inside else [])]
    return tuple(group for group in groups if _is_delegated(group))


def _find_own_group() -> tuple[Path, str] | None:
    """Return where cgroup v2 is mounted and the path of our group there, or None."""
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
    return Path(mount_point), inside


def _is_delegated(group: Path) -> bool:
    """Return whether the group is delegated to this user."""
    with suppress(OSError):
        if not os.access(group / "cgroup.procs", os.W_OK):
            return False
        if os.geteuid() != 0:
            return group.stat().st_uid == os.geteuid()
    for name in ("trusted.delegate", "user.delegate"):
        with suppress(OSError):
            return os.getxattr(group, name) == b"1"
    return False
