"""The two locks of an agent's supervisor: one in the agent's folder, one outside the project.

The lock in the folder (`run/supervisor`) is lost with the folder: `git clean -fdx` removes it while
the supervisor is running, and the next supervisor would find it free. The outer lock is a file in
the user's folder, named after the device and inode of the project's folder, so a wiped, renamed or
linked project still maps to the same lock. Its name includes the host, because hosts that share a
home directory assign device and inode numbers independently.

    locks/HOST-DEVICE-INODE-AGENT      two slots of 256 bytes: the process that holds the lock, and
                                       an operator's stop that could not be written anywhere else

The slots have a fixed size and are written in place. This allocates no new disk blocks, so it works
on a full disk.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import msgspec

from rekindle.documents import events
from rekindle.documents.events import DesiredSet
from rekindle.errors import FolderLostError, RekindleError, UnsafePathError
from rekindle.formats.identifiers import require_agent_name
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import event_log
from rekindle.system import host
from rekindle.system.files import durable_files, file_locks, file_status, user_folder
from rekindle.system.processes import stop_signals

_LOCKS = "locks"
_SLOT_BYTES = 256
_HOLDER, _STOP = 0, _SLOT_BYTES


class OuterLock(msgspec.Struct, frozen=True):
    """A supervisor's lock outside the project's folder."""

    path: Path

    @contextmanager
    def hold(self, wait: float) -> Iterator[file_locks.FileLock | None]:
        """Hold the lock and record its holder. Yield None if the lock is not free in time."""
        from rekindle.system.processes import launch_processes  # noqa: PLC0415 - most commands never hold this lock

        user_folder.make_user_folder(_LOCKS)
        with file_locks.hold_lock(self.path, wait) as lock:
            if lock is not None:
                self._reserve_space()
                lock.write(_HOLDER, _pad_slot(launch_processes.identify_self().encode()))
            yield lock

    def is_held(self) -> bool:
        return file_locks.is_locked(self.path)

    def signal_holder(self) -> bool:
        """Send the stop signal to the lock's holder. Return False if it cannot be identified."""
        is_sent = self._signal_process(stop_signals.STOP_SIGNAL)
        self.resume_holder()
        return is_sent

    def resume_holder(self) -> bool:
        """Resume the lock's holder if it is suspended, so that it can read commands."""
        return self._signal_process(signal.SIGCONT)

    def kill_holder(self) -> bool:
        """Kill the lock's holder. Return False if it cannot be identified."""
        return self._signal_process(signal.SIGKILL)

    def _signal_process(self, number: signal.Signals) -> bool:
        from rekindle.system.processes import lock_holder  # noqa: PLC0415 - only `stop` and `down` need it

        if not self.is_held():
            return False
        process = self._read_slot(_HOLDER).decode("ascii", "replace")
        return lock_holder.signal_holder(process, self.path, number)

    def note_stop(self, command: DesiredSet) -> None:
        """Store the operator's stop command durably in the lock file."""
        user_folder.make_user_folder(_LOCKS)
        self._reserve_space()
        durable_files.write_at(self.path, _STOP, _pad_slot(events.render(command)))

    def read_noted_stop(self) -> DesiredSet | None:
        """Return the stop command in the lock file, or None."""
        try:
            line = self._read_slot(_STOP)
            event = events.parse(line) if line else None
        except RekindleError:
            return None
        return event if isinstance(event, DesiredSet) and event.desired == "stopped" else None

    def stamp(self) -> object:
        """Return a value that changes with every write to a slot."""
        return file_status.make_file_stamp(self.path)

    def _reserve_space(self) -> None:
        """Reserve disk space for both slots."""
        if len(durable_files.read_bytes(self.path) or b"") < 2 * _SLOT_BYTES:
            durable_files.write_at(self.path, 0, _pad_slot(b"") * 2)

    def _read_slot(self, start: int) -> bytes:
        return (durable_files.read_bytes(self.path) or b"")[start : start + _SLOT_BYTES].strip()


def _pad_slot(content: bytes) -> bytes:
    return content.ljust(_SLOT_BYTES - 1)[: _SLOT_BYTES - 1] + b"\n"


def find_outer_lock(project: Path, agent: str) -> OuterLock | None:
    """Return the outer lock of an agent, or None if the project's folder is missing."""
    try:
        return OuterLock(_find_locks() / f"{_make_prefix(project)}{require_agent_name(agent)}")
    except OSError:
        return None


def _make_prefix(project: Path) -> str:
    """Return the prefix of a project's lock names."""
    status = project.stat()
    return f"{_identify_host()}-{status.st_dev:x}-{status.st_ino:x}-"


@cache
def _identify_host() -> str:
    return host.identify_host()


@cache
def _find_locks() -> Path:
    # Cached, because every read needs this path, and looking up a user can be slow.
    return user_folder.find_user_folder() / _LOCKS


def list_held_locks(project: Path) -> dict[str, OuterLock]:
    """Return a project's outer locks that supervisors currently hold, by agent."""
    try:
        prefix = _make_prefix(project)
        paths = list(_find_locks().iterdir())
    except OSError:
        return {}
    locks = {
        path.name.removeprefix(prefix): OuterLock(path)
        for path in paths
        if path.name.startswith(prefix)
    }
    return {agent: lock for agent, lock in locks.items() if lock.is_held()}


def find_lock_files(project: Path, recorded: tuple[int, int] | None) -> list[Path]:
    """Return a project's free outer locks, even if the project was removed.

    `recorded` is the device and inode of the project's folder. Inodes are reused, so a lock that is
    held belongs to another project.
    """
    prefixes = {f"{_identify_host()}-{recorded[0]:x}-{recorded[1]:x}-"} if recorded else set()
    with suppress(OSError):
        prefixes.add(_make_prefix(project))
    try:
        paths = sorted(_find_locks().iterdir())
    except OSError:
        return []
    matching = [path for path in paths if path.name.startswith(tuple(prefixes))]
    return [path for path in matching if not OuterLock(path).is_held()]


class SupervisorLocks:
    """The locks and the log file that a supervisor keeps open until it exits."""

    def __init__(
        self, folder: AgentFolder, inner: file_locks.FileLock, outer: file_locks.FileLock
    ) -> None:
        self._folder, self._inner, self._outer = folder, inner, outer
        self._log: file_locks.PinnedFile | None = None
        self._mark = (0, "")
        """End of the log and its anchor. One attribute, because several threads use this object."""

    def remember_log(self, end: int) -> None:
        """Remember the log file and its length `end`, to detect a replacement."""
        if self._log is None and durable_files.path_exists(self._folder.log):
            # Keep the file open: otherwise a new file could get the same inode number.
            self._log = file_locks.PinnedFile(self._folder.log)
        self._mark = (end, event_log.compute_anchor(self._folder.log, end))

    def close(self) -> None:
        if self._log is not None:
            self._log.close()

    def check(self) -> None:
        """Check that the files of this supervisor's locks and log were not replaced.

        Raises:
            FolderLostError: They were replaced, so another supervisor could start the same agent.
        """
        if not self._inner.is_still_at_path():
            raise self._make_lost_error("its lock run/supervisor was removed or replaced")
        if not self._outer.is_still_at_path():
            raise self._make_lost_error(f"its lock {self._outer.path} was removed or replaced")
        try:
            self._folder.verify()
        except UnsafePathError as error:
            raise self._make_lost_error(str(error)) from error
        if self._log is None:
            return
        if not self._log.is_still_at_path():
            raise self._make_lost_error("its log ops.jsonl was removed or replaced")
        end, anchor = self._mark
        if self._log.size() < end or event_log.compute_anchor(self._folder.log, end) != anchor:
            raise self._make_lost_error("its log ops.jsonl was replaced by an older copy")

    def _make_lost_error(self, reason: str) -> FolderLostError:
        return FolderLostError(self._folder.name, str(self._folder.path), reason)
