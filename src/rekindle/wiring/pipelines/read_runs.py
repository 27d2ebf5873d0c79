"""Read the runs of a project's pipelines, and find the run for a command."""

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from rekindle.config import Project
from rekindle.documents.events.event import UnknownEvent
from rekindle.documents.pipelines.pipeline_events import AnyPipelineEvent, PipelineEnded
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import NotFoundError, RekindleError
from rekindle.flows.operator.read_rows import RowReader
from rekindle.policy.pipelines.build_run_row import build_run_row
from rekindle.policy.pipelines.pipeline_state import PipelineState, fold
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.stores.pipelines.run_folder import RunFolder, find_run, list_runs
from rekindle.system import clock


def list_running_workers(project: Project) -> list[str]:
    """Return the running workers of the runs on this host that are not over."""
    names: list[str] = []
    for folder in list_runs(private_files.find_private_project(project.path)):
        with suppress(RekindleError):  # `rekindle pipeline status` shows the error
            if folder.is_open():
                names += [worker.agent for _, worker in folder.read_state().list_running()]
    return [name for name in names if name in project.workers]


class RunReading(msgspec.Struct, frozen=True, kw_only=True):
    """A run's state at one point in time, on this host or on a fleet."""

    definition: RunDefinition
    events: list[AnyPipelineEvent | UnknownEvent]
    """Events in the log."""
    state: PipelineState
    """State after these events and the operator's commands that are not in the log yet."""
    row: RunRow


class StoredRun(RunReading, frozen=True, kw_only=True):
    """A run that is stored on this host."""

    folder: RunFolder


class RunReader:
    """Reads the runs of one project."""

    def __init__(self, project: Project, store: FileStore) -> None:
        self._project = project
        self._private = private_files.find_private_project(project.path)
        self._rows = RowReader(
            store, project.manifest.agents, project.settings.runtime, clock.read_clock
        )

    def list_folders(self, pipeline: str | None = None) -> list[RunFolder]:
        """Return the runs of one or all pipelines, oldest first."""
        return list_runs(self._private, pipeline)

    def read(self, folder: RunFolder) -> StoredRun:
        """Return a run.

        Raises:
            DocumentError: One of its files is damaged.
        """
        definition, events = folder.read_definition(), folder.read_events()
        state = fold([*events, *folder.read_commands()])
        ends = (event for event in reversed(events) if isinstance(event, PipelineEnded))
        last_end = next(ends, None) if state.ended else None
        row = build_run_row(
            definition.plan,
            state,
            number=folder.run,
            now=clock.read_clock(),
            agents=dict(self._read_workers(state)),
            updated=events[-1].ts if events else None,
            why=last_end.why if last_end else "",
            notice=folder.read_notice(),
            is_coordinated=folder.is_coordinated(),
        )
        return StoredRun(folder=folder, definition=definition, events=events, state=state, row=row)

    def list_open_rows(self) -> list[RunRow]:
        """Return the runs that are not over, oldest first. A run that cannot be read is omitted."""
        rows = []
        for folder in self.list_folders():
            with suppress(RekindleError):  # `rekindle pipeline status` shows the error
                rows += [self.read(folder).row] if folder.is_open() else []
        return rows

    def find(
        self,
        pipeline: str,
        number: int | None,
        fits: Callable[[RunReading], bool] = lambda _: True,
        purpose: str = "",
    ) -> StoredRun:
        """Return the run with a number, or the newest run that matches.

        Raises:
            NotFoundError: There is no such run. `purpose` names the kind of run in the message.
        """
        folders = self.list_folders(pipeline)
        if not folders:
            self._project.require_pipeline(pipeline)
            raise NotFoundError(
                f"the pipeline {pipeline} has no run yet",
                hint=f"start one: `rekindle pipeline run {pipeline}`",
            )
        if number is not None:
            folder = find_run(self._private, pipeline, number)
            if folder.path not in {other.path for other in folders}:
                raise NotFoundError(
                    f"there is no run {number} of the pipeline {pipeline}",
                    hint=f"its last run is {folders[-1].run}; `rekindle pipeline status` lists all",
                )
            return self.read(folder)
        for folder in reversed(folders):
            reading = self.read(folder)
            if fits(reading):
                return reading
        raise NotFoundError(
            f"the pipeline {pipeline} has no run {purpose}",
            hint=f"`rekindle pipeline status {pipeline}` shows its last run",
        )

    def _read_workers(self, state: PipelineState) -> Iterator[tuple[str, AgentRow]]:
        """Yield the rows of running workers, which may be waiting for the operator."""
        if state.ended is None:
            for _, worker in state.list_running():
                yield worker.agent, self._rows.row(worker.agent)
