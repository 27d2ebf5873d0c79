"""Read the events of a run on a fleet and its workers from the engine."""

from collections.abc import Iterable

from rekindle.errors import NotOnFleetError
from rekindle.fleet.commands.fleet_store import FleetStore, make_entries
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.policy.pipelines.pipeline_state import WorkerState
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.stores.log.event_log import LogEntry


class FleetRunEvents:
    """The logs of a run on a fleet. The engine has only the newest events of each worker."""

    poll_seconds = POLL_SECONDS

    def __init__(self, store: FleetStore, pipeline: str, run: int) -> None:
        self._store = store
        self.pipeline, self.run = pipeline, run
        self._workers: dict[str, WorkerState] = {}
        self._complete: dict[str, int] = {}
        """Attempts whose events were all read, by agent. Each read would query the engine."""

    def read_lines(self) -> list[bytes]:
        client = PipelineClient(self._store.agents.client)
        registered = self._store.wait_for(client.kept(self.pipeline, self.run))
        self._workers = {worker.agent: worker for worker in registered.fold().workers.values()}
        return [line.encode() for line in registered.lines]

    def read_entries(self, agent: str, since: int) -> Iterable[LogEntry]:
        """Return a worker's events after an event number, or nothing if there is no such worker.

        An entry's position is its event number.
        """
        worker = self._workers[agent]
        if self._complete.get(agent) == worker.attempt:
            return ()
        try:
            registered = self._store.wait_for(self._store.agents.read_last(agent))
        except NotOnFleetError:
            return ()
        if worker.status != "running":
            self._complete[agent] = worker.attempt
        return [entry for entry in make_entries(registered) if entry.event.seq > since]
