"""Show pipeline runs in `rekindle status`, with one line for each unfinished run or schedule."""

from typing import TYPE_CHECKING, Any

from rekindle.cli.output import LineParts, style_text
from rekindle.cli.reports import schedule_lines
from rekindle.config import Project
from rekindle.stores.folders import private_files

if TYPE_CHECKING:
    from rekindle.documents.screens.pipeline_row import RunRow


class OpenRuns:
    """A project's unfinished runs. Nothing is read if no pipeline has run."""

    def __init__(self, project: Project | None) -> None:
        """Show the runs of a project, or none if `project` is None."""
        self._project = project

    def render(self) -> list[LineParts]:
        """Return the lines to show below the agents: runs, and schedules of pipelines."""
        if self._project is None or self._project.settings.fleet is not None:
            return []
        schedules = [(line,) for line in schedule_lines.list_pipeline_lines(self._project)]
        return [*self._render_runs(), *schedules]

    def _render_runs(self) -> list[LineParts]:
        rows = self._read()
        if not rows:
            return []
        from rekindle.cli.live_screen import read_terminal_size  # noqa: PLC0415 - as in _read
        from rekindle.cli.pipelines.pipeline_status import find_marks  # noqa: PLC0415 - as in _read
        from rekindle.documents.screens.pipeline_screen import render_summary  # noqa: PLC0415 - as in _read

        columns, marks = read_terminal_size().columns, find_marks()
        return [
            (style_text(text, fg="red") if row.state == "needs you" else text,)
            for row in rows
            for text in [render_summary(row, columns, marks)]
        ]

    def read_json(self) -> list[dict[str, Any]]:
        """Return the runs as JSON data."""
        rows = self._read()
        if not rows:
            return []
        from rekindle.cli.pipelines.pipeline_status import make_json  # noqa: PLC0415 - as in _read

        return [make_json(row) for row in rows]

    def _read(self) -> "list[RunRow]":
        project = self._project
        if project is None or project.settings.fleet is not None:
            return []
        if not private_files.find_private_project(project.path).pipelines.is_dir():
            return []
        from rekindle.wiring.open_store import open_store  # noqa: PLC0415 - few projects have runs
        from rekindle.wiring.pipelines.read_runs import RunReader  # noqa: PLC0415 - as above

        return RunReader(project, open_store(project)).list_open_rows()
