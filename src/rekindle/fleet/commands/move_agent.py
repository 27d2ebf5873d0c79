"""Move an agent from this host's files to a fleet, and back."""

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
from rekindle.fleet.commands.define_agent import define_agent
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.engine import run_schedules
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.pipelines.pipeline_tasks import parse_pipeline_id
from rekindle.policy.fleet import agent_registry
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.settings.runtime_settings import STOP_SECONDS, FleetSettings
from rekindle.stores.files import FileStore, ownership, replica
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system import clock, host
from rekindle.system.files import durable_files, file_locks


class AgentMover:
    def __init__(
        self, project: Project, fleet: FleetSettings, files: FileStore, there: FleetStore
    ) -> None:
        self._project, self._fleet = project, fleet
        self._files, self._there = files, there
        self._owner = f"{ownership.FLEET_PREFIX}{fleet.namespace}"

    def has_moved_to_fleet(self, agent: str) -> bool:
        """Return whether the agent's folder on this host is marked as moved to this fleet."""
        owner = ownership.read_owner(self._files.folder(agent))
        return owner is not None and owner.host == self._owner

    def send(self, agent: str) -> bool:
        """Move an agent with its state to the fleet, or return False if it is already there.

        The folder is marked as moved before the fleet has the agent. If the command is killed
        between these steps, no host runs the agent, and repeating the command finishes the move. In
        the opposite order, two hosts could run the agent.
        """
        definition = define_agent(self._project, self._fleet, agent)
        is_there = self._there.exists(agent)
        if is_there and self.has_moved_to_fleet(agent):
            self._there.keep_schedule(agent)
            return False
        if is_there:
            raise OwnershipError(
                f"the fleet already has another agent named {agent}",
                hint="rename the agent in rekindle.yaml",
            )
        with self._files.supervising(agent):
            projection, previous = self._release_to_fleet(agent)
            documents = _read_documents(self._files.folder(agent), projection)
            owner = ownership.read_owner(self._files.folder(agent))
            generation = owner.gen if owner else 0
            try:
                begin = self._there.agents.begin(
                    agent,
                    definition,
                    projection=prune_projection(projection),
                    documents=documents,
                    new_events=self._there.publish(agent, generation),
                    generation=generation,
                )
                self._there.wait_for(begin)
            except RekindleError as error:
                is_refused = isinstance(error, EngineError) and error.cause == "refused"
                if is_refused or isinstance(error, OwnershipError | WorkspaceError):
                    self._transfer_folder(agent, previous, projection.gen)
                raise
        self._there.keep_schedule(agent)
        return True

    def fetch(self, agent: str) -> RegisteredAgent:
        """Remove an agent from the fleet, and continue it in its folder on this host."""
        if self._files.has_history(agent) and not self.has_moved_to_fleet(agent):
            if not self._there.exists(agent):
                raise NotOnFleetError(agent)
            raise OwnershipError(
                f"agent {agent} has its own history in this folder, which would be lost",
                hint=f"move {self._files.folder(agent).path} away, then repeat the command",
            )
        self._refuse_worker(agent)
        there = self._there
        registered = there.wait_for(there.agents.remove(agent))
        there.wait_for(run_schedules.drop_schedule(there.agents.client, "agents", agent))
        documents = {name: text.encode() for name, text in registered.documents.items()}
        self._files.root.make()
        self._files.open_private(agent)
        with self._files.supervising(agent):
            replica.receive_agent(
                self._files.folder(agent), registered.projection, documents, clock.read_clock()
            )
            # Use a higher generation than any lease, so that an unopened lease cannot become valid
            # later.
            self._transfer_folder(agent, host.identify_host(), registered.generation)
        self._files.create(agent)
        return registered

    def _refuse_worker(self, agent: str) -> None:
        """Raise OwnershipError if the agent works for a pipeline run that has not ended."""
        there = self._there
        worker = there.kept(agent).definition.worker if there.exists(agent) else None
        client = there.agents.client
        run = parse_pipeline_id(client.namespace, worker.workflow) if worker else None
        if run is not None and there.wait_for(PipelineClient(client).is_open(*run)):
            name = f"{run[0]} {run[1]}"
            raise OwnershipError(
                f"agent {agent} works for the pipeline run {name}, which has not ended",
                hint=f"stop the run, and remove its workers: rekindle pipeline stop {name}; "
                f"rekindle pipeline clean {name}",
            )

    def _release_to_fleet(self, agent: str) -> tuple[Projection, str]:
        """Mark the folder as moved to block local writers, and return its state and owner."""
        folder = self._files.folder(agent)
        if self.has_moved_to_fleet(agent):  # an earlier move was interrupted
            return self._files.read(agent).committed, self._owner
        with self._files.writer(agent) as writer:
            writer.fold()
            before = ownership.read_owner(folder)
            _read_documents(folder, writer.projection)  # raises if a document is missing
            ownership.transfer_ownership(folder, self._owner, writer.projection.gen)
            return writer.projection, before.host if before else ""

    def _transfer_folder(self, agent: str, owner: str, at_least: int) -> None:
        folder = self._files.folder(agent)
        with file_locks.hold_lock(folder.lock, STOP_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, STOP_SECONDS)
            ownership.transfer_ownership(folder, owner, at_least)


def _read_documents(folder: AgentFolder, projection: Projection) -> dict[str, str]:
    """Return the documents that a host may need. Old relays are needed only for their verdict."""
    in_force = {document.path for document in projection.documents.values()}
    documents = {}
    for name in agent_registry.list_needed_documents(projection):
        data = durable_files.read_bytes(folder.path / name)
        if data is not None:
            documents[name] = data.decode("utf-8", "replace")
        elif name in in_force:
            raise StoreError(
                name, "is missing from the archive", hint="`rekindle doctor` shows how to fix it"
            )
    return documents
