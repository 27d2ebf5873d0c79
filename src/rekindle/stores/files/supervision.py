"""The locks of an agent's supervisor: one in the agent's folder, one outside the project.

The lock in the folder (`run/supervisor`) vanishes with the folder: `git clean -fdx` removes it
under a running supervisor, and the next one would find it free. The lock outside is a file of the
user's own folder, named after the device and inode of the project's folder, so that a wiped,
renamed or linked project has the same one. Hosts that share a home number their devices and inodes
each by itself: the name has the host as well.

    locks/HOST-DEVICE-INODE-AGENT      two slots of 256 bytes: the process that holds the lock; the
                                       operator's stop that could not be written anywhere else

The slots have a fixed size and are written in place: the file system needs no new block for that,
also if it is full.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from rekindle.documents import event as events
from rekindle.documents.event import DesiredSaid
from rekindle.documents.identity import agent_name
from rekindle.errors import FolderLostError, RekindleError, UnsafePathError
from rekindle.stores.files import log
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk, host, signals, user_folder

_LOCKS = "locks"
_SLOT_BYTES = 256
_HOLDER, _STOP = 0, _SLOT_BYTES


class OuterLock(msgspec.Struct, frozen=True):
    """The lock of one agent's supervisor outside the project's folder."""

    path: Path

    @contextmanager
    def hold(self, wait: float) -> Iterator[disk.Lock | None]:
        """Hold the lock and name the holder in it; yield None if it is not free in time."""
        from rekindle.system import orphans  # noqa: PLC0415 - most commands never hold it

        user_folder.make(_LOCKS)
        with disk.locked(self.path, wait) as lock:
            if lock is not None:
                self._reserve()
                lock.write(_HOLDER, _slot(orphans.identify_self().encode()))
            yield lock

    def is_held(self) -> bool:
        return disk.is_locked(self.path)

    def signal_holder(self) -> bool:
        """Tell the process that holds the lock to stop; False if it cannot be identified."""
        is_sent = self._send(signals.STOP)
        self.resume_holder()
        return is_sent

    def resume_holder(self) -> bool:
        """Continue the process that holds the lock: one that is suspended reads no command."""
        return self._send(signal.SIGCONT)

    def kill_holder(self) -> bool:
        """Kill the process that holds the lock; False if it cannot be identified."""
        return self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> bool:
        from rekindle.system import holder  # noqa: PLC0415 - only `stop` and `down` need it

        if not self.is_held():
            return False
        process = self._read(_HOLDER).decode("ascii", "replace")
        return holder.send(process, self.path, number)

    def note_stop(self, command: DesiredSaid) -> None:
        """Keep the operator's stop here, durably; readers lay it over the log."""
        user_folder.make(_LOCKS)
        self._reserve()
        disk.write_at(self.path, _STOP, _slot(events.render(command)))

    def noted_stop(self) -> DesiredSaid | None:
        """Return the operator's stop that was kept here, or None."""
        try:
            line = self._read(_STOP)
            found = events.parse(line) if line else None
        except RekindleError:
            return None
        return found if isinstance(found, DesiredSaid) and found.desired == "stopped" else None

    def stamp(self) -> object:
        """Return a value that changes whenever a slot is written."""
        return disk.stamp(self.path)

    def _reserve(self) -> None:
        """Have the file system reserve the space of both slots now."""
        if len(disk.read(self.path) or b"") < 2 * _SLOT_BYTES:
            disk.write_at(self.path, 0, _slot(b"") * 2)

    def _read(self, start: int) -> bytes:
        return (disk.read(self.path) or b"")[start : start + _SLOT_BYTES].strip()


def _slot(content: bytes) -> bytes:
    return content.ljust(_SLOT_BYTES - 1)[: _SLOT_BYTES - 1] + b"\n"


def outer_lock(project: Path, agent: str) -> OuterLock | None:
    """Return the outer lock of an agent; None if the project's folder does not exist."""
    try:
        return OuterLock(_locks() / f"{_prefix(project)}{agent_name(agent)}")
    except OSError:
        return None


def _prefix(project: Path) -> str:
    """Return how the names of all locks of a project begin."""
    found = project.stat()
    return f"{_host()}-{found.st_dev:x}-{found.st_ino:x}-"


@cache
def _host() -> str:
    return host.identify()


@cache
def _locks() -> Path:
    # Asked once: the system looks a user up in a file or over the network, and every read asks.
    return user_folder.path() / _LOCKS


def outer_locks_held(project: Path) -> dict[str, OuterLock]:
    """Return the outer locks of a project that supervisors hold now, by agent."""
    try:
        prefix = _prefix(project)
        there = list(_locks().iterdir())
    except OSError:
        return {}
    locks = {
        path.name.removeprefix(prefix): OuterLock(path)
        for path in there
        if path.name.startswith(prefix)
    }
    return {agent: lock for agent, lock in locks.items() if lock.is_held()}


def find_lock_files(project: Path, recorded: tuple[int, int] | None) -> list[Path]:
    """Return the free outer locks of a project, also of one that is gone, by what was recorded.

    An inode is used again: a lock that is held now is another project's.
    """
    prefixes = {f"{_host()}-{recorded[0]:x}-{recorded[1]:x}-"} if recorded else set()
    with suppress(OSError):
        prefixes.add(_prefix(project))
    try:
        there = sorted(_locks().iterdir())
    except OSError:
        return []
    found = [path for path in there if path.name.startswith(tuple(prefixes))]
    return [path for path in found if not OuterLock(path).is_held()]


class Supervision:
    """What a supervisor holds for life: both locks, and the log that it works from."""

    def __init__(self, folder: AgentFolder, inner: disk.Lock, outer: disk.Lock) -> None:
        self._folder, self._inner, self._outer = folder, inner, outer
        self._log: disk.Pinned | None = None
        self._end = 0
        self._anchor = ""

    def know_log(self, end: int) -> None:
        """Remember which file the log is, and that it reaches as far as `end`."""
        if self._log is None and disk.exists(self._folder.log):
            # Held open: the inode number of a removed file is given to the next one.
            self._log = disk.Pinned(self._folder.log)
        self._end, self._anchor = end, log.anchor(self._folder.log, end)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def check(self) -> None:
        """Check that locks and log on disk are the ones that this supervisor began with.

        Raises:
            FolderLostError: They are not; an agent that worked on could have a second one beside.
        """
        if not self._inner.is_in_place():
            raise self._lost("its lock run/supervisor was removed or replaced")
        if not self._outer.is_in_place():
            raise self._lost(f"its lock {self._outer.path} was removed or replaced")
        try:
            self._folder.verify()
        except UnsafePathError as error:
            raise self._lost(str(error)) from error
        if self._log is None:
            return
        if not self._log.is_in_place():
            raise self._lost("its log ops.jsonl was removed or replaced")
        if self._log.size() < self._end or log.anchor(self._folder.log, self._end) != self._anchor:
            raise self._lost(
                "its log ops.jsonl is not the one it was: an older copy took its place"
            )

    def _lost(self, reason: str) -> FolderLostError:
        return FolderLostError(self._folder.name, str(self._folder.path), reason)
