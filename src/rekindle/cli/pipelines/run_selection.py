"""Arguments of `rekindle pipeline` commands, and the project and run that they select."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from rekindle import config
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import Number, find_current_folder, print_note, require_operator
from rekindle.cli.pipelines.run_log import EventSource, StoredEvents
from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.stores.files import FileStore
from rekindle.wiring.open_store import open_store
from rekindle.wiring.pipelines.read_runs import RunReader, RunReading

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


class RunFinder(Protocol):
    """Finds runs whose commits are in the user's repository."""

    def find(
        self,
        pipeline: str,
        number: int | None,
        fits: Callable[[RunReading], bool] = ...,
        purpose: str = "",
    ) -> RunReading: ...


def complete_pipelines(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the names of pipelines in the shell."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

    # A shell would print an error message in the middle of the line that the user is typing.
    with suppress(RekindleError, OSError):
        names = load_current_project().manifest.pipelines
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]
    return []


def complete_steps(
    context: click.Context, _parameter: click.Parameter, incomplete: str
) -> "list[CompletionItem]":
    """Complete the ids of a pipeline's steps in the shell."""
    from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

    with suppress(RekindleError, OSError):
        pipelines = load_current_project().manifest.pipelines
        # Until the option has a value, click does not assign arguments to parameters.
        named = context.params.get("pipeline") or next(iter(context.args), "")
        pipeline = pipelines.get(named)
        steps = pipeline.steps if pipeline else []
        return [CompletionItem(step.id) for step in steps if step.id.startswith(incomplete)]
    return []


def add_pipeline_argument(command: F) -> F:
    """Add the required NAME argument, which names a pipeline."""
    add = click.argument("pipeline", metavar="NAME", shell_complete=complete_pipelines)
    return add(command)


def add_run_arguments(command: F) -> F:
    """Add the arguments NAME and [N], the number of a run."""
    numbered = click.argument("number", metavar="[N]", required=False, type=Number(1))(command)
    return add_pipeline_argument(numbered)


step_option = click.option(
    "--step", metavar="ID", shell_complete=complete_steps, help="Show only this step."
)
worker_option = click.option(
    "--worker", metavar="KEY", help="Show only this worker of the step's matrix."
)


def load_current_project() -> Project:
    """Return the project that contains the current folder."""
    return config.load_project(find_current_folder())


def open_runs(project: Project, *, operator: bool = False) -> tuple[FileStore, RunReader]:
    """Return a project's files and runs. Refuse the command on a fleet.

    With `operator`, refuse the command if an agent runs it.
    """
    refuse_fleet(project)
    if operator:
        require_operator(project)
    store = open_store(project, say=print_note)
    return store, RunReader(project, store)


def open_events(pipeline: str, number: int | None) -> tuple[RunReading, EventSource]:
    """Return a pipeline's last run, or the run with this number, and its logs."""
    project = load_current_project()
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return fleet_pipelines.open_events_on_fleet(project, pipeline, number)
    store, reader = open_runs(project)
    reading = reader.find(pipeline, number)
    return reading, StoredEvents(store, reading.folder)


def open_results(*, operator: bool = False) -> tuple[Project, RunFinder]:
    """Return the project and its runs, on this host or on a fleet.

    With `operator`, refuse the command if an agent runs it.
    """
    project = load_current_project()
    if project.settings.fleet is not None:
        from rekindle.cli.fleet import fleet_pipelines  # noqa: PLC0415 - needs the fleet extra

        return project, fleet_pipelines.open_results_on_fleet(project, operator=operator)
    _, reader = open_runs(project, operator=operator)
    return project, reader
