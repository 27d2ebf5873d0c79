"""An agent's folder on a fleet host: its definition, its replica and its workspace."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents.commits.work_commit import strip_user
from rekindle.documents.launches.launch_credentials import HostCredentials
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import LogMissingError, ManifestError, UnsafePathError
from rekindle.flows.launches import background_processes
from rekindle.formats import validation
from rekindle.plugins import HookReaders
from rekindle.policy.fleet.agent_registry import (
    AgentDefinition,
    ReplicaState,
    hash_definition,
    hash_projection,
)
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.sandbox.profile import SandboxFloor
from rekindle.policy.settings.runtime_settings import ORPHAN_SECONDS
from rekindle.ports import EventRegister
from rekindle.stores.files import FileStore, replica
from rekindle.stores.files.ownership import FLEET_PREFIX
from rekindle.stores.files.store_reader import AuditStore
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.log import view
from rekindle.system import clock
from rekindle.system.files import durable_files, file_locks, inside_folder
from rekindle.system.git.shared_mirror import MIRRORS, find_mirror
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.wiring.open_store import HARNESSES

_WORK = "work"
INPUTS = "outputs"
"""Name of the folder, next to the clone, for the outputs of earlier pipeline steps."""


class ReplicaPosition(msgspec.Struct, frozen=True):
    seq: int = 0
    held: str = ""
    """Hash of the projection; empty if there is no replica."""
    generation: int = 0


class HostFolder(msgspec.Struct, frozen=True):
    """An agent's folder on a host. Everything in it can be recreated at any time."""

    path: Path
    agent: str
    host: str
    floor: SandboxFloor | None = None
    """The weakest sandbox that the host permits; None if the agent's own key decides."""
    credentials: str = ""
    """The host's credential helper; empty if it has none."""

    @property
    def work(self) -> Path:
        """Return the clone that the agent works in, or a plain folder if there is no remote."""
        return self.path / _WORK

    @property
    def inputs(self) -> Path:
        """Return the folder with the outputs of earlier pipeline steps."""
        return self.path / INPUTS

    @property
    def mirrors(self) -> Path:
        """Return the folder with this host's copies of all remotes, which the clones read."""
        return self.path.parent / MIRRORS

    def definition(self) -> AgentDefinition | None:
        data = durable_files.read_bytes(self._definition_file)
        try:
            return validation.decode_json(data, AgentDefinition) if data else None
        except msgspec.MsgspecError:
            return None

    def hash_definition(self) -> str:
        definition = self.definition()
        return hash_definition(definition) if definition else ""

    def define(self, definition: AgentDefinition) -> None:
        """Write the definition's files, then the definition itself to mark them as complete."""
        durable_files.make_folder(self.path)
        self._definition_file.unlink(missing_ok=True)
        for name, text in ({MANIFEST_FILE: definition.manifest} | definition.files).items():
            path = self.path / require_relative(name)
            # The agent may have replaced a workspace file's parent folder with a link.
            inside_folder.make_folder(self.path, str(path.relative_to(self.path)))
            durable_files.replace_file(path, text.encode(), root=self.path)
        durable_files.replace_file(self._definition_file, validation.encode_json(definition))

    def project(self, definition: AgentDefinition) -> Project:
        """Return the project on this host, with the clone as the agent's folder."""
        project = config.load_project(self.path)
        folder = str(PurePosixPath(_WORK) / definition.within)
        entry = msgspec.structs.replace(project.manifest.agents[self.agent], dir=folder)
        manifest = msgspec.structs.replace(project.manifest, agents={self.agent: entry})
        workers = {self.agent: self.inputs} if definition.worker else {}
        mirrors = (find_mirror(self.mirrors, definition.remote),) if definition.remote else ()
        return msgspec.structs.replace(
            project,
            manifest=manifest,
            workers=workers,
            mirrors=mirrors,
            floor=self.floor,
            credentials=HostCredentials(
                self.credentials, definition.team, strip_user(definition.remote)
            ),
        )

    def store(
        self, project: Project, register: EventRegister, audit: AuditStore | None = None
    ) -> FileStore:
        """Return the replica's store, which commits its events through `register`."""
        return FileStore(
            self.path,
            host=f"{FLEET_PREFIX}{self.host}",
            settings=project.settings,
            clock=clock.read_clock,
            redaction=Redaction(tuple(project.manifest.redact.allow)),
            harnesses=HookReaders(HARNESSES),
            register=register,
            audit=audit,
        )

    def require_own_workspace(self, definition: AgentDefinition) -> None:
        """Raise UnsafePathError if a link would move the agent's next session to another folder."""
        durable_files.refuse_link(self.work)
        folder = self.work / definition.within
        if not folder.resolve().is_relative_to(self.work.resolve()):
            raise UnsafePathError(
                str(folder), "is a link out of the workspace", hint="replace it with a folder"
            )

    @contextmanager
    def supervising(self, wait: float) -> Iterator[bool]:
        """Hold the agent's supervisor lock, even if its replica does not exist yet.

        Yield False if another process holds the lock.
        """
        durable_files.make_folder(self.path)
        root = RekindleFolder(self.path)
        root.make()
        folder = root.agent(self.agent)
        folder.make()
        with file_locks.hold_lock(folder.supervisor, wait) as lock:
            yield lock is not None

    def read_replica_state(self, store: FileStore) -> ReplicaPosition:
        """Return how far this host's replica has come."""
        if not store.exists(self.agent):
            return ReplicaPosition()
        try:
            projection = store.read(self.agent).committed
        except LogMissingError:
            # The process was killed while receiving the replica, so receive it again.
            return ReplicaPosition()
        return ReplicaPosition(projection.seq, hash_projection(projection), projection.gen)

    def receive(self, store: FileStore, state: ReplicaState) -> None:
        store.root.make()
        documents = {name: text.encode() for name, text in state.documents.items()}
        replica.receive_agent(
            store.folder(self.agent), state.projection, documents, clock.read_clock()
        )

    def end_leftover_processes(self) -> None:
        """End the processes of a cycle that was interrupted on this host.

        The log cannot be used to find them: another host records the launch as lost before this
        host learns of the loss.
        """
        folder = RekindleFolder(self.path).agent(self.agent)
        if not folder.exists():
            return
        try:
            projection = view.read_view(folder, {}, Redaction()).committed
        except LogMissingError:
            return
        background_processes.end_all_processes(
            self.path, self.agent, HostProcesses(), projection.attempts, patience=ORPHAN_SECONDS
        )

    @property
    def _definition_file(self) -> Path:
        return self.path / "definition.json"


def require_relative(name: str) -> PurePosixPath:
    """Return the path, or raise ManifestError if it is outside the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ManifestError(
            f"{name!r} is outside the project's folder",
            hint="hosts of the fleet get only files of the project: move the file next to "
            "rekindle.yaml",
        )
    return path
