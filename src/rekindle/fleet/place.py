"""Where an agent lives on a host of a fleet: how it is set up, its replica, its workspace."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec

from rekindle import config
from rekindle.config import Project
from rekindle.documents import shape
from rekindle.documents.manifest import FILE
from rekindle.errors import LogMissingError, ManifestError
from rekindle.flows import background
from rekindle.plugins import Readers
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.register import Definition, Held, defined, held
from rekindle.policy.settings import ORPHAN_SECONDS
from rekindle.ports import Register
from rekindle.stores.files import FileStore, replica, view
from rekindle.stores.files.layout import Root
from rekindle.stores.files.ownership import FLEET
from rekindle.system import clock, disk
from rekindle.system.processes import Processes
from rekindle.wiring.store import HARNESSES

_WORK = "work"


class Place(msgspec.Struct, frozen=True):
    """An agent's own folder on a host: what stands there can be made again at any time."""

    path: Path
    agent: str
    host: str

    @property
    def work(self) -> Path:
        """The clone that it works in; a plain folder where it has no remote."""
        return self.path / _WORK

    def definition(self) -> Definition | None:
        data = disk.read(self._definition)
        try:
            return shape.from_json(data, Definition) if data else None
        except msgspec.MsgspecError:
            return None

    def defined(self) -> str:
        found = self.definition()
        return defined(found) if found else ""

    def define(self, definition: Definition) -> None:
        """Write what the agent is set up with; last of all that it was written."""
        disk.make_folder(self.path)
        self._definition.unlink(missing_ok=True)
        for name, text in ({FILE: definition.manifest} | definition.files).items():
            path = self.path / relative(name)
            disk.make_folder(path.parent)
            disk.replace(path, text.encode())
        disk.replace(self._definition, shape.to_json(definition))

    def project(self, definition: Definition) -> Project:
        """The project as it is here: the agent works in its clone."""
        found = config.load(self.path)
        folder = str(PurePosixPath(_WORK) / definition.within)
        entry = msgspec.structs.replace(found.manifest.agents[self.agent], dir=folder)
        manifest = msgspec.structs.replace(found.manifest, agents={self.agent: entry})
        return msgspec.structs.replace(found, manifest=manifest)

    def store(self, project: Project, register: Register) -> FileStore:
        """The replica; whoever opens it without the register is refused."""
        return FileStore(
            self.path,
            host=f"{FLEET}{self.host}",
            settings=project.settings,
            clock=clock.now,
            redaction=Redaction(tuple(project.manifest.redact.allow)),
            harnesses=Readers(HARNESSES),
            register=register,
        )

    @contextmanager
    def supervising(self, wait: float) -> Iterator[bool]:
        """Be the only one that runs the agent here, whether or not it has a replica yet.

        Yields False where somebody else is.
        """
        disk.make_folder(self.path)
        root = Root(self.path)
        root.make()
        folder = root.agent(self.agent)
        folder.make()
        with disk.locked(folder.supervisor, wait) as lock:
            yield lock is not None

    def held(self, store: FileStore) -> tuple[int, str]:
        """What is here from before: the last event, and a fingerprint of what it all came to."""
        if not store.exists(self.agent):
            return 0, ""
        try:
            known = store.read(self.agent).committed
        except LogMissingError:
            return 0, ""  # killed while it received the replica: it receives it again
        return known.seq, held(known)

    def receive(self, store: FileStore, found: Held) -> None:
        store.root.make()
        documents = {name: text.encode() for name, text in found.documents.items()}
        replica.receive(store.folder(self.agent), found.projection, documents, clock.now())

    def end_what_is_left(self) -> None:
        """End what a cycle has left running here that did not come to its end.

        The log will not tell of it: elsewhere it is settled as lost, before this host hears of it.
        """
        folder = Root(self.path).agent(self.agent)
        if not folder.exists():
            return
        try:
            known = view.read(folder, {}, Redaction()).committed
        except LogMissingError:
            return
        background.end_everything(
            self.path, self.agent, Processes(), known.attempts, patience=ORPHAN_SECONDS
        )

    @property
    def _definition(self) -> Path:
        return self.path / "definition.json"


def relative(name: str) -> PurePosixPath:
    """A path that leads nowhere else."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts:
        raise ManifestError(
            f"{name!r} lies outside the project's folder",
            hint="a host of the fleet has no other: move the file beside rekindle.yaml",
        )
    return path
