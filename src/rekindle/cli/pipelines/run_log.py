"""Read the events of a run and its workers, on this host or on a fleet."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import msgspec

from rekindle.documents.events import Event
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import parse_pipeline_event
from rekindle.policy.pipelines.pipeline_state import WorkerId, fold
from rekindle.stores.files import FileStore
from rekindle.stores.log.event_log import LogEntry
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS


class EventSource(Protocol):
    """The logs of a run and its workers."""

    pipeline: str
    run: int
    poll_seconds: float
    """Seconds between two reads while a command follows the run."""

    def read_lines(self) -> list[bytes]:
        """Return the lines of the run's log."""
        ...

    def read_entries(self, agent: str, since: int) -> Iterable[LogEntry]:
        """Return the entries in a worker's log after a position."""
        ...


class StoredEvents:
    """The logs of a run on this host."""

    poll_seconds = EVENTS_POLL_SECONDS

    def __init__(self, store: FileStore, folder: RunFolder) -> None:
        self._store, self._folder = store, folder
        self.pipeline, self.run = folder.pipeline, folder.run

    def read_lines(self) -> list[bytes]:
        return self._folder.read_lines()

    def read_entries(self, agent: str, since: int) -> Iterable[LogEntry]:
        return self._store.entries_since(agent, since) if self._store.exists(agent) else ()


class RunEvent(msgspec.Struct, frozen=True):
    """An event of a run or one of its workers."""

    event: Event | UnknownEvent
    line: bytes
    """The event as JSON."""
    step: str = ""
    worker: str = ""
    agent: str = ""
    """Agent that wrote the event or that the event is about; empty if there is none."""


class RunLog:
    """Reads the events of a run and its workers by time, each event once."""

    def __init__(self, source: EventSource, step: str = "", worker: str = "") -> None:
        """Read the events of one step or one worker, or all events if both are empty."""
        self.source = source
        self._step, self._worker = step, worker
        self._count = 0
        self._ends: dict[str, int] = {}
        self.is_over = False

    def read_new(self) -> list[RunEvent]:
        """Return the events that were added since the last call."""
        # Read the run first, because its workers write nothing after it ends.
        lines = self.source.read_lines()
        parsed = [parse_pipeline_event(line) for line in lines]
        state = fold(parsed)
        self.is_over = state.ended is not None
        agents = {place: worker.agent for place, worker in state.workers.items()}
        found = []
        for event, line in zip(parsed[self._count :], lines[self._count :], strict=True):
            step, worker = getattr(event, "step", ""), getattr(event, "worker", None)
            agent = agents.get((step, worker), "") if worker is not None else ""
            found.append(RunEvent(event, line, step, worker or "", agent))
        self._count = len(lines)
        found += self._read_workers(agents)
        fitting = (event for event in found if self._fits(event.step, event.worker))
        return sorted(fitting, key=lambda event: event.event.ts)

    def _read_workers(self, agents: Mapping[WorkerId, str]) -> Iterator[RunEvent]:
        for (step, worker), agent in agents.items():
            if self._fits(step, worker):
                for entry in self.source.read_entries(agent, self._ends.get(agent, 0)):
                    self._ends[agent] = entry.end
                    yield RunEvent(entry.event, entry.line, step, worker, agent)

    def _fits(self, step: str, worker: str) -> bool:
        return self._step in {"", step} and self._worker in {"", worker}
