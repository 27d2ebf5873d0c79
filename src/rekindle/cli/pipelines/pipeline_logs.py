"""`rekindle pipeline logs`: print the events of a run."""

import sys
import time
from collections.abc import Callable

import click

from rekindle.cli.options import json_option, last_option
from rekindle.cli.output import print_json_line, render_moment
from rekindle.cli.pipelines.run_log import EventSource, RunEvent, RunLog
from rekindle.cli.pipelines.run_selection import (
    add_run_arguments,
    open_events,
    step_option,
    worker_option,
)
from rekindle.cli.reports.event_printer import print_event
from rekindle.documents.event_output import render_pipeline_output
from rekindle.errors import NotFoundError
from rekindle.wiring.pipelines.read_runs import RunReading

_PLACES = ("pipeline", "run", "step", "worker", "agent")


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
    On a fleet, only the newest events of each worker are available.
    """
    reading, source = open_events(pipeline, number)
    require_place(reading, step, worker)
    run_log = RunLog(source, step or "", worker or "")
    shown = run_log.read_new()
    print_run_events(source, shown[-last:] if last else shown, as_json=as_json)
    if follow:
        follow_run(run_log, as_json=as_json)


def follow_run(run_log: RunLog, *, as_json: bool, keep: Callable[[], None] = lambda: None) -> None:
    """Print new events until the run ends. `keep` is called before each read."""
    while not run_log.is_over:
        keep()
        print_run_events(run_log.source, run_log.read_new(), as_json=as_json)
        sys.stdout.flush()
        if not run_log.is_over:
            time.sleep(run_log.source.poll_seconds)


def print_run_events(source: EventSource, shown: list[RunEvent], *, as_json: bool) -> None:
    """Print the events of a run, one per line."""
    for event in shown:
        if as_json:
            line = render_pipeline_output(
                event.line,
                pipeline=source.pipeline,
                run=source.run,
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
    """Refuse a step or worker that is not part of the run."""
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
