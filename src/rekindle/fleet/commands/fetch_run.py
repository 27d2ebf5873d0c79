"""Fetch the commits of a run on a fleet, so that its results can be used as on a single host."""

from collections.abc import Callable

from rekindle.config import Project
from rekindle.documents.pipelines.run_branches import make_run_refs
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import WorkspaceError
from rekindle.fleet.commands.fleet_runs import FleetRuns
from rekindle.fleet.commands.start_pipeline import require_remote
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.wiring.pipelines.read_runs import RunReading
from rekindle.wiring.pipelines.run_refs import find_repository


class FetchedRuns:
    """A project's runs on its fleet, whose commits are fetched to the user's repository."""

    def __init__(self, project: Project, runs: FleetRuns) -> None:
        self._project, self._runs = project, runs

    def find(
        self,
        pipeline: str,
        number: int | None,
        fits: Callable[[RunReading], bool] = lambda _: True,
        purpose: str = "",
    ) -> RunReading:
        """Return the run with this number, or the newest run that `fits`, with its commits."""
        reading = self._runs.find(pipeline, number, fits, purpose)
        fetch_run(self._project, reading.row)
        return reading


def fetch_run(project: Project, row: RunRow) -> None:
    """Fetch the commits of a run, and its result as a branch.

    The refs have the same names as for a run on this host.

    Raises:
        UsageError: There is no git remote.
        WorkspaceError: The remote does not answer, or the user's branch is not for this result.
    """
    source = find_repository(project)
    remote = RemoteRepository(require_remote(project).url, "")
    remote.copy_refs(source, f"{make_run_refs(row.pipeline, row.run)}*")
    if not row.branch:
        return
    ref = f"refs/heads/{row.branch}"
    pushed, tip = remote.list_refs(ref).get(ref), source.find_ref(ref)
    if pushed is None or (tip is not None and source.is_checked_out(row.branch)):
        return
    if not source.has(pushed):  # a person pushed to the branch
        remote.fetch(source, ref)
    if tip is None or source.is_kept((tip.oid,), by=(pushed,)):
        source.move(ref, pushed)
    elif not source.is_kept((row.commit,), by=(tip.oid,)):
        raise WorkspaceError(
            "changed",
            f"your branch {row.branch} does not contain the result of the run",
            hint=f"rename it, then repeat the command: git branch -m {row.branch} NAME",
        )
