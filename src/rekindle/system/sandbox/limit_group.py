"""Limit a launch with its own control group, if cgroup v2 is delegated to us.

The limits are in an outer group, and the launch runs in a group inside it. A sandbox can mount the
group in which it starts, so it could otherwise raise its own limits.
"""

import contextlib
import errno
import fcntl
import os
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rekindle.errors import SandboxError
from rekindle.system.processes import control_group
from rekindle.system.sandbox import group_entry
from rekindle.thresholds.sandbox_limits import REMOVAL_SECONDS, REMOVAL_TICK_SECONDS

_INNER = "program"
_OPTIONAL_FILES = ("memory.swap.max",)
"""Files that do not exist on a kernel without swap."""


def list_controllers() -> frozenset[str]:
    """Return the controllers that can limit a launch on this host. Nothing is changed."""
    parent = _find_parent()
    return frozenset() if parent is None else frozenset(_list_available(parent))


def make_limit_group(mark: str, files: Mapping[str, str]) -> "LimitGroup":
    """Create a group with these limits for a launch, and remove the groups of killed supervisors.

    Raises:
        SandboxError: The host does not permit it.
    """
    parent = _find_parent()
    if parent is None:
        raise _make_error("no control group is delegated to this user")
    try:
        _enable_controllers(parent, {name.partition(".")[0] for name in files})
        sweep_leftovers(parent)
        folder = parent / f"{control_group.PREFIX}{mark or secrets.token_hex(8)}"
        try:
            return LimitGroup(folder, files)
        except FileNotFoundError:  # another supervisor swept the group before it was locked
            return LimitGroup(folder, files)
    except OSError as error:
        raise _make_error(str(error)) from error


class LimitGroup:
    """A launch's control group. A lock on it shows other supervisors that it is in use."""

    def __init__(self, folder: Path, files: Mapping[str, str]) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            (folder / _INNER).mkdir(exist_ok=True)
            for name, value in files.items():
                if (folder / name).exists() or name not in _OPTIONAL_FILES:
                    _write(folder / name, value)
        except BaseException:
            os.close(self._lock)
            _remove(folder)
            raise

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """Return a command that enters the group and then executes `argv`.

        If it cannot enter the group, it exits with an error.
        """
        enter = (sys.executable, "-I", "-S", group_entry.__file__)
        return [*enter, str(self._folder / _INNER / "cgroup.procs"), *argv]

    def remove(self) -> None:
        """End the processes that are left in the group, and remove it."""
        with contextlib.suppress(OSError):  # Linux 5.14 and later
            _write(self._folder / "cgroup.kill", "1")
        deadline = time.monotonic() + REMOVAL_SECONDS
        while not _remove(self._folder) and time.monotonic() < deadline:
            time.sleep(REMOVAL_TICK_SECONDS)
        os.close(self._lock)


def sweep_leftovers(parent: Path) -> None:
    """Remove the empty groups whose supervisors were killed."""
    for folder in parent.glob(f"{control_group.PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            finally:
                os.close(lock)


def _find_parent() -> Path | None:
    """Return the delegated group with the most controllers, or None if there are no controllers."""
    groups = [group for group in control_group.find_delegated() if _list_available(group)]
    return max(groups, key=lambda group: len(_list_available(group)), default=None)


def _list_available(group: Path) -> set[str]:
    """Return the controllers that limit groups in `group`, or that can be enabled there.

    The kernel enables controllers only if the group itself contains no processes. Processes are
    never moved, because systemd could then not restart the service.
    """
    try:
        enabled = set(_read(group / "cgroup.subtree_control").split())
        is_empty = not _read(group / "cgroup.procs").strip()
        return enabled | (set(_read(group / "cgroup.controllers").split()) if is_empty else set())
    except OSError:
        return set()


def _enable_controllers(group: Path, names: set[str]) -> None:
    missing = names - set(_read(group / "cgroup.subtree_control").split())
    if missing:
        _write(group / "cgroup.subtree_control", " ".join(f"+{name}" for name in sorted(missing)))


def _remove(folder: Path) -> bool:
    """Remove a group, and return whether it is gone."""
    for path in (folder / _INNER, folder):
        try:
            path.rmdir()
        except OSError as error:
            if error.errno != errno.ENOENT:
                return False
    return True


def _read(path: Path) -> str:
    return path.read_text(encoding="ascii")


def _write(path: Path, value: str) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CLOEXEC)  # never create a file
    try:
        os.write(number, value.encode("ascii"))
    finally:
        os.close(number)


def _make_error(reason: str) -> SandboxError:
    return SandboxError(
        f"the limits of the sandbox cannot be set: {reason}",
        hint="check the delegation of cgroup v2 (`rekindle doctor`), or remove the limits from "
        "`sandbox:`",
    )
