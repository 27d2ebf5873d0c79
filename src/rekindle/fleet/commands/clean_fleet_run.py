"""Remove a run's workers from a fleet and, on request, its branches and log.

The hosts then remove the folders of workers that are no longer on the fleet
(`hosts/unused_folders`).
"""

from collections.abc import Set as AbstractSet

from rekindle.config import Project
from rekindle.documents.commits.work_commit import make_work_ref
from rekindle.documents.pipelines.run_branches import make_run_refs, name_result_branch
from rekindle.errors import NotOnFleetError, OwnershipError
from rekindle.fleet.commands.fleet_store import FleetStore
from rekindle.fleet.commands.start_pipeline import require_remote
from rekindle.fleet.engine.pipeline_client import PipelineClient
from rekindle.fleet.pipelines.pipeline_tasks import make_pipeline_id
from rekindle.policy.pipelines.pipeline_state import WorkerId
from rekindle.system.git.remote_repository import RemoteRepository
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.wiring.pipelines.clean_run import CleanedRun, is_work_contained, require_over
from rekindle.wiring.pipelines.read_runs import RunReading
from rekindle.wiring.pipelines.run_refs import find_repository

_HEADS = "refs/heads/"


def clean_fleet_run(
    project: Project, store: FleetStore, reading: RunReading, *, every: bool
) -> CleanedRun:
    """Remove the workers of a run from the fleet. Their work stays on the git remote.

    With `every`, also remove branches whose work is in the result. If no worker was kept, remove
    the logs of the run and its workers too.

    Raises:
        OwnershipError: The run has not ended, or a host is running one of its workers.
    """
    require_over(reading)
    workers = {
        worker.agent: place
        for place, worker in reading.state.workers.items()
        if _is_worker(store, reading, worker.agent)
    }
    found = {agent: store.kept(agent) for agent in workers if store.exists(agent)}
    if leased := [agent for agent, kept in found.items() if kept.lease is not None]:
        raise OwnershipError(
            f"a host is running the worker {leased[0]}", hint="repeat the command in a minute"
        )
    unpushed = {
        agent: f"its work could not be pushed: {kept.projection.unpushed.words}"
        for agent, kept in found.items()
        if kept.projection.unpushed
    }
    for agent in found.keys() - unpushed.keys():
        store.wait_for(store.agents.remove(agent))
    cleanup = RemoteCleanup(project, reading)
    branches, kept_branches = cleanup.remove_branches(workers, every=every)
    if every and not unpushed:
        cleanup.remove_run_refs()
        client = PipelineClient(store.agents.client)
        store.wait_for(client.forget(reading.row.pipeline, reading.row.run, list(workers)))
    return CleanedRun(
        workers=tuple(sorted(found.keys() - unpushed.keys())),
        kept_folders=unpushed,
        branches=tuple(branches),
        kept_branches=tuple(kept_branches),
        is_forgotten=every and not unpushed,
    )


def _is_worker(store: FleetStore, reading: RunReading, agent: str) -> bool:
    """Return whether an agent is a worker of this run, according to the engine.

    Another agent may have the same name, in which case the worker failed to start.
    """
    try:
        worker = store.wait_for(store.agents.read_last(agent)).definition.worker
    except NotOnFleetError:
        return False
    row = reading.row
    workflow = make_pipeline_id(store.agents.client.namespace, row.pipeline, row.run)
    return worker is not None and worker.workflow == workflow


class RemoteCleanup:
    """Removes a run's refs from the git remote, and their copies from the user's repository."""

    def __init__(self, project: Project, reading: RunReading) -> None:
        self._source: WorkingCopy = find_repository(project)
        self._remote = RemoteRepository(require_remote(project).url, "")
        self._reading, self._project = reading, project.path
        self._kept = [reading.row.commit] if reading.row.commit else []
        """Commits that stay on the remote."""

    def remove_branches(
        self, workers: dict[str, WorkerId], *, every: bool
    ) -> tuple[list[str], list[str]]:
        """Remove the branches that the result contains. Return the removed and the kept branches.

        Without `every`, keep all branches.
        """
        row = self._reading.row
        merges = f"{_HEADS}{name_result_branch(row.pipeline, row.run)}-"
        places = {make_work_ref(agent): place for agent, place in workers.items()}
        listed = self._remote.list_refs(f"{_HEADS}rekindle/*")
        tips = {ref: tip for ref, tip in listed.items() if ref in places or ref.startswith(merges)}
        if every:
            self._fetch(tips)
        unused = {
            ref: tip
            for ref, tip in tips.items()
            if every and self._is_contained(tip, places.get(ref))
        }
        removed = self._delete(unused)
        kept = tips.keys() - removed
        self._kept += [tips[ref] for ref in kept]
        return _name_branches(removed), _name_branches(kept)

    def remove_run_refs(self) -> None:
        """Remove the refs of outputs and merges, unless a worker's commit would be lost.

        The first commit is kept, because it reserves the run's number.
        """
        row = self._reading.row
        refs = make_run_refs(row.pipeline, row.run)
        there = self._remote.copy_refs(self._source, f"{refs}*")
        self._delete(
            {
                ref: commit
                for ref, commit in there.items()
                if ref != f"{refs}_base" and self._is_unused(ref.removeprefix(refs), commit)
            }
        )

    def _is_unused(self, name: str, commit: str) -> bool:
        if name.startswith("_inputs/"):
            return True
        wanted = f"{commit}^" if name.startswith("_outputs/") else commit
        return self._source.is_kept((wanted,), by=(*self._kept, self._reading.definition.base))

    def _is_contained(self, tip: str, place: WorkerId | None) -> bool:
        result = self._reading.row.commit
        if place is not None:
            return is_work_contained(self._source, self._reading, place, tip, self._project)
        return bool(result) and self._source.is_kept((tip,), by=(result,))

    def _fetch(self, tips: dict[str, str]) -> None:
        missing = [ref for ref, tip in tips.items() if not self._source.has(tip)]
        row = self._reading.row
        self._remote.copy_refs(self._source, f"{make_run_refs(row.pipeline, row.run)}*")
        if missing:
            self._remote.fetch(self._source, *missing)

    def _delete(self, refs: dict[str, str]) -> set[str]:
        """Remove refs that have not moved, on the remote and here. Return their names."""
        removed = self._remote.delete(self._source, refs) if refs else set[str]()
        for ref in removed:
            here = self._source.find_ref(ref)
            branch = ref.removeprefix(_HEADS)
            if here and here.oid == refs[ref] and not self._source.is_checked_out(branch):
                self._source.call("update-ref", "--no-deref", "-d", ref)
        return removed


def _name_branches(refs: AbstractSet[str]) -> list[str]:
    return sorted(ref.removeprefix(_HEADS) for ref in refs)
