"""An agent moves: from the files of this host to a fleet, and home again."""

from rekindle.config import Project
from rekindle.errors import (
    BusyError,
    EngineError,
    NotOnFleetError,
    OwnershipError,
    RekindleError,
    StoreError,
    WorkspaceError,
)
from rekindle.fleet import schedules
from rekindle.fleet.define import define
from rekindle.fleet.store import FleetStore
from rekindle.policy import register
from rekindle.policy.fold import Projection, pruned
from rekindle.policy.register import Kept
from rekindle.policy.settings import STOP_SECONDS, Fleet
from rekindle.stores.files import FileStore, ownership, replica
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import clock, disk, host


class Moving:
    def __init__(self, project: Project, fleet: Fleet, files: FileStore, there: FleetStore) -> None:
        self._project, self._fleet = project, fleet
        self._files, self._there = files, there
        self._owner = f"{ownership.FLEET}{fleet.namespace}"

    def has_left(self, agent: str) -> bool:
        """Whether the folder here says that the agent lives on this fleet."""
        owner = ownership.read(self._files.folder(agent))
        return owner is not None and owner.host == self._owner

    def send(self, agent: str) -> bool:
        """Bring an agent to the fleet with all that is known of it; False: it is there already.

        The folder is the fleet's before the fleet has it: whoever is killed in between leaves an
        agent that nobody runs, and asks again. The other way round two could run it.
        """
        definition = define(self._project, self._fleet, agent)
        is_there = self._there.exists(agent)
        if is_there and self.has_left(agent):
            self._there.keep_schedule(agent)
            return False
        if is_there:
            raise OwnershipError(
                f"the fleet has an agent {agent} already, which is not the one of this folder",
                hint="give one of them another name in rekindle.yaml",
            )
        with self._files.supervising(agent):
            known, previous = self._hand_over(agent)
            documents = _documents(self._files.folder(agent), known)
            owner = ownership.read(self._files.folder(agent))
            generation = owner.gen if owner else 0
            try:
                begin = self._there.agents.begin(
                    agent,
                    definition,
                    known=pruned(known),
                    documents=documents,
                    said=self._there.published(agent, generation),
                    generation=generation,
                )
                self._there.wait_for(begin)
            except RekindleError as error:
                if isinstance(error, OwnershipError | WorkspaceError) or _is_refusal(error):
                    self._give(agent, previous, known.gen)
                raise
        self._there.keep_schedule(agent)
        return True

    def fetch(self, agent: str) -> Kept:
        """End an agent's life on the fleet, and have it go on from the folder here."""
        if self._files.has_lived(agent) and not self.has_left(agent):
            if not self._there.exists(agent):
                raise NotOnFleetError(agent)
            raise OwnershipError(
                f"agent {agent} has a life of its own in this folder, which would be lost",
                hint=f"move {self._files.folder(agent).path} away, then repeat the command",
            )
        there = self._there
        kept = there.wait_for(there.agents.remove(agent))
        there.wait_for(schedules.drop(there.agents.client, agent))
        documents = {name: text.encode() for name, text in kept.documents.items()}
        self._files.root.make()
        self._files.open_private(agent)
        with self._files.supervising(agent):
            replica.receive(self._files.folder(agent), kept.projection, documents, clock.now())
            # Above every lease: one that was never taken up must not come back with the agent.
            self._give(agent, host.identify(), kept.generation)
        self._files.create(agent)
        return kept

    def _hand_over(self, agent: str) -> tuple[Projection, str]:
        """What is known here, all of it in the log; and who had it. Nobody writes here any more."""
        folder = self._files.folder(agent)
        if self.has_left(agent):  # killed on the way
            return self._files.read(agent).committed, self._owner
        with self._files.writer(agent) as writer:
            writer.fold()
            before = ownership.read(folder)
            _documents(folder, writer.projection)  # what is lost is known before it leaves
            ownership.give(folder, self._owner, writer.projection.gen)
            return writer.projection, before.host if before else ""

    def _give(self, agent: str, owner: str, at_least: int) -> None:
        folder = self._files.folder(agent)
        with disk.locked(folder.lock, STOP_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, STOP_SECONDS)
            ownership.give(folder, owner, at_least)


def _is_refusal(error: RekindleError) -> bool:
    return isinstance(error, EngineError) and error.cause == "refused"


def _documents(folder: AgentFolder, known: Projection) -> dict[str, str]:
    """Those that a host may ask for; of a relay that is long past only its verdict counts."""
    in_force = {one.path for one in known.documents.values()}
    found = {}
    for name in register.named(known):
        data = disk.read(folder.path / name)
        if data is not None:
            found[name] = data.decode("utf-8", "replace")
        elif name in in_force:
            raise StoreError(
                name, "is gone from the archive", hint="`rekindle doctor` says what fixes it"
            )
    return found
