"""`rekindle pipeline clean`: remove the folders of workers in finished runs."""

from itertools import chain

import click
import msgspec

from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json
from rekindle.cli.pipelines.run_outcomes import is_resumable
from rekindle.cli.pipelines.run_selection import add_run_arguments, load_current_project, open_runs
from rekindle.config import Project
from rekindle.documents.pipelines.run_branches import name_result_branch
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import NotFoundError, RekindleError
from rekindle.formats.counts import render_count
from rekindle.wiring.pipelines.clean_run import CleanedRun, clean_run, require_over
from rekindle.wiring.pipelines.read_runs import RunReader


class _Cleaning(msgspec.Struct, frozen=True):
    runs: list[tuple[RunRow, CleanedRun]] = []
    """Runs that were cleaned, oldest first."""
    kept: dict[int, str] = {}
    """Numbers of the runs that were not cleaned, each with the reason."""


@click.command(short_help="Remove the folders that workers of finished runs used.")
@add_run_arguments
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also remove the runs' logs, and branches that are already in the result.",
)
@json_option
def clean(pipeline: str, number: int | None, every: bool, as_json: bool) -> None:
    """Remove the folders that workers used in run N of pipeline NAME.

    Without N, clean all runs that are done or have failed, or on a fleet the last one. The workers'
    commits and the results stay on branches in your repository. If a folder contains a file that
    cannot be saved, Rekindle keeps the folder. On a fleet, the branches are on the git remote, and
    each host removes the folders within ten minutes.
    """
    project = load_current_project()
    cleaning = _clean(project, pipeline, number, every=every)
    if as_json:
        _print_document(pipeline, cleaning)
        return
    _print_removed(cleaning, is_fleet=project.settings.fleet is not None)
    is_one = len(cleaning.runs) == 1
    for row, cleaned in cleaning.runs:
        for folder, reason in cleaned.kept_folders.items():
            echo(f"! kept {folder}: {reason}")
        if row.commit and (is_one or cleaned.folders or cleaned.branches):
            echo(f"· kept the result on {name_result_branch(pipeline, row.run)}")
        for branch in cleaned.kept_branches if is_one else ():
            echo(f"· kept {branch}")
    for run, reason in cleaning.kept.items():
        echo(f"· kept run {run}: {reason}")


def _clean(project: Project, pipeline: str, number: int | None, *, every: bool) -> _Cleaning:
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return _Cleaning([fleet_pipelines.clean_on_fleet(project, pipeline, number, every=every)])
    _, reader = open_runs(project, operator=True)
    if number is not None:
        reading = reader.find(pipeline, number)
        return _Cleaning([(reading.row, clean_run(project, reading, every=every))])
    runs, kept = list[tuple[RunRow, CleanedRun]](), dict[int, str]()
    for folder in reader.list_folders(pipeline):
        try:
            reading = reader.read(folder)
            if is_resumable(reading.row):
                kept[folder.run] = f"it is {reading.row.state}"
            else:
                runs.append((reading.row, clean_run(project, reading, every=every)))
        except RekindleError as error:  # the other runs can still be cleaned
            kept[folder.run] = "; ".join(filter(None, (str(error), error.hint)))
    if not runs:
        _require_finished(reader, pipeline)
    return _Cleaning(runs, kept)


def _require_finished(reader: RunReader, pipeline: str) -> None:
    """Refuse a pipeline without a finished run, and tell the user to stop an open one."""
    try:
        reader.find(pipeline, None, lambda each: not is_resumable(each.row), "that is finished")
    except NotFoundError:
        require_over(reader.find(pipeline, None))
        raise


def _print_removed(cleaning: _Cleaning, *, is_fleet: bool) -> None:
    cleaned = [cleaned for _, cleaned in cleaning.runs]
    within = f" in {len(cleaned)} runs" if len(cleaned) > 1 else ""
    if is_fleet:
        count = sum(len(each.workers) for each in cleaned)
        echo(f"✓ removed {render_count(count, 'worker')} from the fleet")
    else:
        count = sum(len(each.folders) for each in cleaned)
        echo(f"✓ removed {render_count(count, 'folder')} of workers{within}")
    if branches := sum(len(each.branches) for each in cleaned):
        echo(f"✓ removed {render_count(branches, 'branch', 'branches')}")
    for row, each in cleaning.runs:
        if each.is_forgotten:
            echo(f"✓ removed the logs and outputs of run {row.run}")


def _print_document(pipeline: str, cleaning: _Cleaning) -> None:
    cleaned = [cleaned for _, cleaned in cleaning.runs]
    print_json(
        {
            "pipeline": pipeline,
            "runs": [row.run for row, _ in cleaning.runs],
            "kept_runs": {str(run): reason for run, reason in cleaning.kept.items()},
            "workers": [*chain.from_iterable(each.workers for each in cleaned)],
            "folders": [*chain.from_iterable(each.folders for each in cleaned)],
            "kept_folders": dict(chain(*(each.kept_folders.items() for each in cleaned))),
            "branches": [*chain.from_iterable(each.branches for each in cleaned)],
            "kept_branches": [*chain.from_iterable(each.kept_branches for each in cleaned)],
            "is_forgotten": all(each.is_forgotten for each in cleaned),
        }
    )
