"""`rekindle metrics`: print figures about agents for Prometheus."""

import os
from pathlib import Path

import click

from rekindle import config
from rekindle.api.fleet_rows import read_fleet_rows
from rekindle.cli.options import find_current_folder, open_fleet, print_note
from rekindle.cli.output import echo
from rekindle.cli.output_file import write_output
from rekindle.documents.screens.metrics_text import ProjectMetrics, render_metrics
from rekindle.documents.screens.status_table import name_folders
from rekindle.errors import RekindleError
from rekindle.flows.operator.read_metrics import MetricsReader
from rekindle.stores.folders.private_files import render_path
from rekindle.system import clock
from rekindle.wiring.access.trust_checks import list_trusted
from rekindle.wiring.open_store import open_store
from rekindle.wiring.row_setup import make_row_reader


@click.command()
@click.option(
    "--all", "every", is_flag=True, help="Include all projects that you trust on this host."
)
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Replace FILE atomically instead of printing.",
)
def metrics(every: bool, output: str | None) -> None:
    """Print figures about the agents in Prometheus's text format.

    To collect them with node_exporter, run `rekindle metrics --all --output FILE` regularly, where
    FILE is a `.prom` file in the folder of its textfile collector.
    """
    text = render_metrics(_read_all() if every else [_read_project(find_current_folder())])
    if output is None:
        echo(text, nl=False)
    else:
        write_output(Path(output), text.encode("utf-8", "replace"))


def _read_all() -> list[ProjectMetrics]:
    """Return the metrics of all trusted projects, including those that cannot be read."""
    folders = list_trusted()
    names = name_folders([render_path(folder) for folder in folders])
    projects = []
    for folder, name in zip(folders, names, strict=True):
        try:
            projects.append(_read_project(folder, name))
        except RekindleError as error:
            echo(f"Note: {name}: {error}", err=True)
            projects.append(ProjectMetrics(name, is_readable=False))
    return projects


def _read_project(folder: Path, name: str = "") -> ProjectMetrics:
    project = config.load_project(folder)
    name = name or os.fsencode(project.path.name).decode("utf-8", "replace")
    if project.settings.fleet is not None:
        # A fleet's log on this host is incomplete, so there are no counters.
        fleet = open_fleet(project, project.settings.fleet)
        rows = read_fleet_rows(project, fleet, project.declared_agents, clock.read_clock())
        return ProjectMetrics(name, [shown.row for shown in rows])
    store = open_store(project, say=print_note)
    reader = make_row_reader(project, store)
    return MetricsReader(name, store, reader, project.declared_agents).read()
