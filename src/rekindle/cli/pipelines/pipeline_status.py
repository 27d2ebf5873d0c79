"""`rekindle pipeline status`: show the runs of pipelines."""

import sys
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from rekindle.cli.live_screen import read_terminal_size, repaint_until_interrupted
from rekindle.cli.options import Number, json_option
from rekindle.cli.output import LineParts, echo, print_json, style_text
from rekindle.cli.pipelines.run_selection import (
    complete_pipelines,
    load_current_project,
    open_runs,
)
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.documents.screens.pipeline_screen import (
    ASCII_MARKS,
    UNICODE_MARKS,
    Marks,
    render_run,
    render_summary,
    render_tasks,
)
from rekindle.errors import RekindleError, UsageError
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.thresholds.screens import STATUS_COLUMNS, STATUS_POLL_SECONDS
from rekindle.wiring.pipelines.read_runs import RunReader


@click.command(short_help="Show the progress of pipeline runs.")
@click.argument(
    "pipeline", metavar="[NAME]", required=False, shell_complete=complete_pipelines, default=None
)
@click.argument("number", metavar="[N]", required=False, type=Number(1))
@click.option("--watch", is_flag=True, help="Keep updating the screen until the run is over.")
@json_option
def status(pipeline: str | None, number: int | None, watch: bool, as_json: bool) -> None:
    """Show the last run of pipeline NAME, or run N, with one line per step.

    Without NAME, show all runs of all pipelines, newest first, with one line each.
    """
    if watch and as_json:
        raise UsageError(
            "--watch and --json cannot be used together",
            hint="use `rekindle pipeline logs NAME --follow --json` to print a stream",
        )
    if watch and pipeline is None:
        raise UsageError(
            "--watch shows one run",
            hint="name its pipeline: `rekindle pipeline status NAME --watch`",
        )
    project = load_current_project()
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        fleet_pipelines.show_on_fleet(project, pipeline, number, watch=watch, as_json=as_json)
        return
    _, reader = open_runs(project)
    if pipeline is None:
        _show_all(reader, as_json=as_json)
        return
    reading = reader.find(pipeline, number)
    if as_json:
        print_json({"runs": [make_json(reading.row)]})
    elif watch:
        watch_run(reader, reading.folder)
    else:
        for line in render_lines(reading.row):
            echo(*line)


def watch_run(
    reader: RunReader, folder: RunFolder, keep: Callable[[], None] = lambda: None
) -> RunRow:
    """Show a run until it ends, and return its last row. `keep` is called before each read."""

    def read() -> RunRow:
        keep()
        return reader.read(folder).row

    return watch_row(read)


def watch_row(read: Callable[[], RunRow]) -> RunRow:
    """Show a run until it ends, and return its last row. `read` returns the current row."""
    row = read()

    def render() -> list[LineParts]:
        nonlocal row
        row = read()
        return render_lines(row)

    if sys.stdout.isatty():
        repaint_until_interrupted(render, STATUS_POLL_SECONDS, is_over=lambda: row.is_over)
        return row
    shown, marks = list[str](), find_marks()
    while not row.is_over:
        # These lines contain no times, so a file gets new lines only when something changes.
        tasks = [line.text for line in render_tasks(row, STATUS_COLUMNS)]
        if shown != (shown := [render_summary(row, STATUS_COLUMNS, marks), *tasks]):
            for text in shown:
                echo(text)
            sys.stdout.flush()
        time.sleep(STATUS_POLL_SECONDS)
        row = read()
    for line in render_lines(row):
        echo(*line)
    return row


def render_lines(row: RunRow, now: datetime | None = None) -> list[LineParts]:
    """Return the live view of a run, fitted to this terminal."""
    columns = read_terminal_size().columns
    lines = render_run(row, now or clock.read_clock(), columns, find_marks())
    return [
        (style_text(line.text, fg=line.colour) if line.colour else line.text,) for line in lines
    ]


def find_marks() -> Marks:
    """Return the marks that the output's encoding supports."""
    try:
        "".join(UNICODE_MARKS).encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII_MARKS
    return UNICODE_MARKS


def make_json(row: RunRow) -> dict[str, Any]:
    """Return a run's row as JSON data."""
    fields: dict[str, Any] = msgspec.to_builtins(row, builtin_types=(datetime,))
    for step, shown in zip(row.steps, fields["steps"], strict=True):
        shown["pending"] = step.pending
    return fields


def _show_all(reader: RunReader, *, as_json: bool) -> None:
    """Print one line for each run, newest first. Runs that cannot be read are shown as broken."""
    rows: list[tuple[RunFolder, RunRow | RekindleError]] = []
    for folder in reader.list_folders():
        try:
            rows.append((folder, reader.read(folder).row))
        except RekindleError as error:
            rows.append((folder, error))
    now = clock.read_clock()
    rows.sort(key=lambda entry: _find_start(entry[1], now), reverse=True)
    if as_json:
        print_json({"runs": [_make_entry(folder, row) for folder, row in rows]})
        return
    if not rows:
        echo("No pipeline has run yet. Next: `rekindle pipeline run NAME`.")
    columns, marks = read_terminal_size().columns, find_marks()
    for folder, row in rows:
        if isinstance(row, RekindleError):
            echo(f"{folder.pipeline} {folder.run}  broken: {row}")
        else:
            echo(render_summary(row, columns, marks))


def print_all(rows: Sequence[RunRow], *, as_json: bool) -> None:
    """Print one line for each run, newest first."""
    now = clock.read_clock()
    newest = sorted(rows, key=lambda row: _find_start(row, now), reverse=True)
    if as_json:
        print_json({"runs": [make_json(row) for row in newest]})
        return
    if not newest:
        echo("No pipeline has run yet. Next: `rekindle pipeline run NAME`.")
    for row in newest:
        echo(render_summary(row, read_terminal_size().columns, find_marks()))


def _find_start(row: RunRow | RekindleError, now: datetime) -> datetime:
    return now if isinstance(row, RekindleError) else row.began or now


def _make_entry(folder: RunFolder, row: RunRow | RekindleError) -> dict[str, Any]:
    if isinstance(row, RunRow):
        return make_json(row)
    return {
        "pipeline": folder.pipeline,
        "run": folder.run,
        "error": str(row),
        "hint": row.hint,
    }
