"""`rekindle pipeline clean`: remove the folders of a run's workers."""

import click

from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json
from rekindle.cli.pipelines.run_selection import add_run_arguments, load_current_project, open_runs
from rekindle.config import Project
from rekindle.documents.pipelines.run_branches import name_result_branch
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.formats.counts import render_count
from rekindle.wiring.pipelines.clean_run import CleanedRun, clean_run


@click.command(short_help="Remove the folders that a run's workers used.")
@add_run_arguments
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Also remove the run's logs, and branches that are already in the result.",
)
@json_option
def clean(pipeline: str, number: int | None, every: bool, as_json: bool) -> None:
    """Remove the folders that workers used in the last run of pipeline NAME, or in run N.

    The workers' commits and the result stay on branches in your repository. If a folder contains a
    file that cannot be saved, Rekindle keeps the folder. On a fleet, the branches are on the git
    remote, and each host removes the folders within ten minutes.
    """
    project = load_current_project()
    row, cleaned = _clean(project, pipeline, number, every=every)
    run = row.run
    if as_json:
        print_json(
            {
                "pipeline": pipeline,
                "run": run,
                "workers": list(cleaned.workers),
                "folders": list(cleaned.folders),
                "kept_folders": cleaned.kept_folders,
                "branches": list(cleaned.branches),
                "kept_branches": list(cleaned.kept_branches),
                "is_forgotten": cleaned.is_forgotten,
            }
        )
        return
    if project.settings.fleet is not None:
        echo(f"✓ removed {render_count(len(cleaned.workers), 'worker')} from the fleet")
    else:
        echo(f"✓ removed {render_count(len(cleaned.folders), 'folder')} of workers")
    if cleaned.branches:
        echo(f"✓ removed {render_count(len(cleaned.branches), 'branch', 'branches')}")
    if cleaned.is_forgotten:
        echo(f"✓ removed the logs and outputs of run {run}")
    for folder, reason in cleaned.kept_folders.items():
        echo(f"! kept {folder}: {reason}")
    if row.commit:
        echo(f"· kept the result on {name_result_branch(pipeline, run)}")
    for branch in cleaned.kept_branches:
        echo(f"· kept {branch}")


def _clean(
    project: Project, pipeline: str, number: int | None, *, every: bool
) -> tuple[RunRow, CleanedRun]:
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return fleet_pipelines.clean_on_fleet(project, pipeline, number, every=every)
    _, reader = open_runs(project, operator=True)
    reading = reader.find(pipeline, number, lambda reading: reading.row.is_over, "that is over")
    return reading.row, clean_run(project, reading, every=every)
