"""`rekindle pipeline logs`."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping

import click
import msgspec

from rekindle.cli.options import json_option, last_option
from rekindle.cli.output import print_json_line, render_moment
from rekindle.cli.pipelines.run_selection import (
    add_run_arguments,
    open_runs,
    step_option,
    worker_option,
)
from rekindle.cli.reports.event_printer import print_event
from rekindle.documents.event_output import render_pipeline_output
from rekindle.documents.events import Event
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import parse_pipeline_event
from rekindle.errors import NotFoundError
from rekindle.policy.pipelines.pipeline_state import fold
from rekindle.policy.pipelines.run_definition import WorkerRecord
from rekindle.stores.files import FileStore
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS
from rekindle.wiring.pipelines.read_runs import RunReading

_PLACES = ("pipeline", "run", "step", "worker", "agent")


class RunEvent(msgspec.Struct, frozen=True):
    """An event of a run, or of one of its workers."""

    event: Event | UnknownEvent
    line: bytes
    """The event as JSON."""
    step: str = ""
    worker: str = ""
    agent: str = ""
    """Agent whose log contains the event, or that it is about; empty if there is none."""


class RunLog:
    """Reads the events of a run and of its workers, each once, in the order of their times."""

    def __init__(
        self, store: FileStore, folder: RunFolder, step: str = "", worker: str = ""
    ) -> None:
        """Read only the events of a step or a worker, unless these are empty."""
        self._store, self._folder = store, folder
        self._step, self._worker = step, worker
        self._count = 0
        self._ends: dict[str, int] = {}
        self.is_over = False

    def read_new(self) -> list[RunEvent]:
        """Return the events that were added since the last call."""
        # Read the run first: after its end, its workers write nothing more.
        lines = self._folder.read_lines()
        parsed = [parse_pipeline_event(line) for line in lines]
        self.is_over = fold(parsed).ended is not None
        workers = self._folder.read_workers()
        agents = {(record.step, record.worker): agent for agent, record in workers.items()}
        found = []
        for event, line in zip(parsed[self._count :], lines[self._count :], strict=True):
            step, worker = getattr(event, "step", ""), getattr(event, "worker", None)
            agent = agents.get((step, worker), "") if worker is not None else ""
            found.append(RunEvent(event, line, step, worker or "", agent))
        self._count = len(lines)
        found += self._read_workers(workers)
        fitting = (event for event in found if self._fits(event.step, event.worker))
        return sorted(fitting, key=lambda event: event.event.ts)

    def _read_workers(self, workers: Mapping[str, WorkerRecord]) -> Iterator[RunEvent]:
        for agent, record in workers.items():
            if not self._fits(record.step, record.worker) or not self._store.exists(agent):
                continue
            for entry in self._store.entries_since(agent, self._ends.get(agent, 0)):
                self._ends[agent] = entry.end
                yield RunEvent(entry.event, entry.line, record.step, record.worker, agent)

    def _fits(self, step: str, worker: str) -> bool:
        return self._step in {"", step} and self._worker in {"", worker}


@click.command(short_help="Print the events from a run and its workers.")
@add_run_arguments
@step_option
@worker_option
@last_option
@click.option("-f", "--follow", is_flag=True, help="Keep printing until the run is over.")
@json_option
def logs(  # noqa: PLR0917 - one parameter per option
    pipeline: str,
    number: int | None,
    step: str | None,
    worker: str | None,
    last: int,
    follow: bool,
    as_json: bool,
) -> None:
    """Print the events from the last run of pipeline NAME, or from run N, newest last.

    This includes events from all workers, such as relays and handoffs, sorted by time. With --json,
    each line is an event with its pipeline, run, step and worker. The "Events" reference page lists
    every kind of event and its fields. `rekindle logs AGENT` prints what a worker says and does.
    """
    _, store, reader = open_runs()
    reading = reader.find(pipeline, number)
    require_place(reading, step, worker)
    run_log = RunLog(store, reading.folder, step or "", worker or "")
    shown = run_log.read_new()
    print_run_events(reading.folder, shown[-last:] if last else shown, as_json=as_json)
    if follow:
        follow_run(run_log, reading.folder, as_json=as_json)


def follow_run(
    run_log: RunLog, folder: RunFolder, *, as_json: bool, keep: Callable[[], None] = lambda: None
) -> None:
    """Print new events until the run is over. `keep` is called before each read."""
    while not run_log.is_over:
        keep()
        print_run_events(folder, run_log.read_new(), as_json=as_json)
        sys.stdout.flush()
        if not run_log.is_over:
            time.sleep(EVENTS_POLL_SECONDS)


def print_run_events(folder: RunFolder, shown: list[RunEvent], *, as_json: bool) -> None:
    """Print events of a run, one per line."""
    for event in shown:
        if as_json:
            line = render_pipeline_output(
                event.line,
                pipeline=folder.pipeline,
                run=folder.run,
                step=event.step,
                worker=event.worker,
                agent=event.agent,
            )
            print_json_line(line)
        else:
            place = "/".join(filter(None, (event.step, event.worker))) or "-"
            start = f"{render_moment(event.event.ts)}  {place:<20}  "
            print_event(event.event, start, _PLACES)


def require_place(reading: RunReading, step: str | None, worker: str | None) -> None:
    """Refuse a step or a worker that the run does not have."""
    ids = [known.id for known in reading.definition.plan.steps]
    if step is not None and step not in ids:
        raise NotFoundError(
            f"the pipeline {reading.row.pipeline} has no step {step!r}",
            hint=f"its steps are: {', '.join(ids)}",
        )
    keys = {
        key
        for place, items in reading.state.items.items()
        if step in {None, place}
        for key in items.workers
    }
    if worker is not None and worker not in keys:
        listed = f"its workers are: {', '.join(sorted(keys))}" if keys else "it has no workers yet"
        raise NotFoundError(f"there is no worker {worker!r}", hint=listed)
