"""The folders for a project's agents, and their supervisors' locks."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rekindle.documents.events import DesiredSet
from rekindle.documents.launches.background_record import BackgroundRecord
from rekindle.errors import (
    ConfinedError,
    OwnershipError,
    StoreError,
    SupervisedError,
    translate_os_errors,
)
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.stores.files.supervisor_locks import (
    SupervisorLocks,
    find_outer_lock,
)
from rekindle.stores.folders import background_file
from rekindle.stores.folders.agent_folder import (
    AgentFolder,
    RekindleFolder,
)
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.system.files import durable_files, file_locks


class SupervisedFolders:
    """The agent folders in a project's .rekindle folder."""

    def __init__(self, project: Path, private: PrivateProject | None) -> None:
        self.root = RekindleFolder(project, private)
        self._folders: dict[str, AgentFolder] = {}
        self._held: dict[str, SupervisorLocks] = {}
        """Locks of the agents that this process supervises."""

    def folder(self, agent: str) -> AgentFolder:
        cached = self._folders.get(agent)
        if cached is None:
            cached = self._folders[agent] = self.root.agent(agent)
        return cached

    def exists(self, agent: str) -> bool:
        return self.folder(agent).exists()

    def open_private(self, agent: str) -> None:
        """Create the agent's private files. Raise ConfinedError inside a sandbox."""
        folder = self.folder(agent)
        if self.root.private is None or folder.private is None:
            return
        try:
            self.root.private.make_agent(folder.name)
            # Try to open the file, because file modes do not show what a sandbox forbids.
            with translate_os_errors(folder.private.seal):
                os.close(durable_files.open_plain(folder.private.seal, os.O_WRONLY | os.O_CREAT))
        except StoreError as error:
            # A supervisor could write here when it started, so this is not a sandbox.
            if error.errno not in durable_files.REFUSED_ERRNOS or agent in self._held:
                raise
            raise ConfinedError(folder.name, str(folder.private.path)) from error

    @contextmanager
    def supervising(self, agent: str) -> Iterator[None]:
        """Hold both supervisor locks, so that no other process can start this agent."""
        folder = self.folder(agent)
        self._make_folder(folder)
        if durable_files.path_exists(folder.importing):
            raise OwnershipError(
                f"the import of agent {agent} is not finished",
                hint="run the same `rekindle import FILE` again",
            )
        outside = find_outer_lock(self.root.project, agent)
        if outside is None:
            raise StoreError(
                str(self.root.project),
                "the project's folder no longer exists",
                hint="run the command in the folder of a project",
            )
        with outside.hold(LOCK_WAIT_SECONDS) as outer, ExitStack() as stack:
            if outer is None:
                raise SupervisedError(agent)
            inner = stack.enter_context(file_locks.hold_lock(folder.supervisor, LOCK_WAIT_SECONDS))
            if inner is None:
                raise SupervisedError(agent)
            held = self._held[agent] = SupervisorLocks(folder, inner, outer)
            try:
                yield
            finally:
                del self._held[agent]
                held.close()

    def is_supervised(self, agent: str) -> bool:
        """Return whether a supervisor is running, meaning that it holds one of its two locks."""
        return self.is_outer_lock_held(agent) or file_locks.is_locked(self.folder(agent).supervisor)

    def is_outer_lock_held(self, agent: str) -> bool:
        """Return whether a supervisor holds the lock outside the project's folder."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.is_held()

    def check_supervision(self, agent: str) -> None:
        """Check that the files of this supervisor's locks and log were not replaced.

        Raises:
            FolderLostError: The folder was removed or replaced.
        """
        if held := self._held.get(agent):
            held.check()

    def has_lost_folder(self, agent: str) -> bool:
        """Return whether a running supervisor's folder was removed or replaced.

        The supervisor will notice and exit soon.
        """
        if not self.is_outer_lock_held(agent):
            return False
        try:
            return not file_locks.is_locked(self.folder(agent).supervisor)
        except StoreError:
            return True

    def signal_supervisor(self, agent: str) -> bool:
        """Send the stop signal to the agent's supervisor. Return False if it was not found."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.signal_holder()

    def resume_supervisor(self, agent: str) -> None:
        """Resume the agent's supervisor if it is suspended (Ctrl-Z, SIGSTOP)."""
        outside = find_outer_lock(self.root.project, agent)
        if outside is not None:
            outside.resume_holder()

    def kill_supervisor(self, agent: str) -> bool:
        """Kill the agent's supervisor. Return False if it was not found."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.kill_holder()

    def note_stop(self, agent: str, command: DesiredSet) -> None:
        """Store a stop command outside the agent's folder, which may not be writable."""
        outside = find_outer_lock(self.root.project, agent)
        if outside is not None:
            outside.note_stop(command)

    def stamp(self, agent: str) -> object:
        """Return a value that changes whenever an event, a record or a stop is written."""
        outside = find_outer_lock(self.root.project, agent)
        return self.folder(agent).stamp(), outside.stamp() if outside else None

    def background(self, agent: str) -> BackgroundRecord:
        """Return the record of the agent's background processes."""
        return background_file.read_background(self.root.project, agent)

    def write_background_record(self, agent: str, record: BackgroundRecord) -> None:
        background_file.write_background(self.root.project, agent, record)

    def prepare_start(self, agent: str, *, fresh: bool = False) -> None:
        """Remove the marker that prevents restarts. With `fresh`, also request a fresh session."""
        folder = self.folder(agent)
        if fresh:
            folder.request_fresh_session()
        durable_files.remove_file(folder.clean_exit)

    def _read_stop(self, folder: AgentFolder) -> DesiredSet | None:
        outside = find_outer_lock(self.root.project, folder.name)
        return outside.read_noted_stop() if outside else None

    def _make_folder(self, folder: AgentFolder) -> None:
        if held := self._held.get(folder.name):
            held.check()
            return  # a supervisor must not recreate a removed folder
        folder.verify()
        self.root.make()
        folder.make()
