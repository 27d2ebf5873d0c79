"""Remove the folders of a run's workers, or everything except the run's result."""

import os
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.documents.clone_files import parse_refs
from rekindle.documents.pipelines.run_branches import name_result_branch
from rekindle.documents.screens.pipeline_row import RunRow
from rekindle.errors import OwnershipError, RekindleError
from rekindle.policy.pipelines.pipeline_state import WorkerId
from rekindle.stores.folders import private_files
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.remove_folder import remove_folder
from rekindle.wiring.pipelines.read_runs import RunReading, StoredRun
from rekindle.wiring.pipelines.run_refs import find_repository
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.stored_workspaces import StoredWorkspace, list_stored_workspaces


class CleanedRun(msgspec.Struct, frozen=True, kw_only=True):
    """Folders and branches that were removed or kept."""

    workers: tuple[str, ...] = ()
    """Workers that were removed from the fleet. Their hosts remove the folders."""
    folders: tuple[str, ...] = ()
    """Folders that were removed."""
    kept_folders: dict[str, str] = {}
    """Folders that were kept, each with the reason."""
    branches: tuple[str, ...] = ()
    """Branches that were removed."""
    kept_branches: tuple[str, ...] = ()
    """Branches that were kept."""
    is_forgotten: bool = False
    """Whether the run's own folder was removed."""


def clean_run(project: Project, reading: StoredRun, *, every: bool) -> CleanedRun:
    """Remove the workers' folders, after storing their work in the user's repository.

    With `every`, also remove the branches and snapshots of workers whose work the result contains.
    If no folder was kept, the logs of the run and its workers are removed too.

    Raises:
        OwnershipError: The run is not over, or a worker is running.
    """
    workers = reading.folder.read_workers()
    require_over(reading)
    _refuse_running(project, reading, set(workers))
    removed, kept = list[str](), dict[str, str]()
    for stored in list_stored_workspaces(project.path):
        if stored.agent in workers:
            if reason := _remove_folder(stored):
                kept[str(stored.folder)] = reason
            else:
                removed.append(str(stored.folder))
    source = find_repository(project)
    branches, kept_branches = list[str](), list[str]()
    for name, record in workers.items():
        branch = f"rekindle/{name}/work"
        tip = source.find_ref(f"refs/heads/{branch}")
        if tip is None:
            continue
        if (
            every
            and not source.is_checked_out(branch)
            and is_work_contained(
                source, reading, (record.step, record.worker), tip.oid, project.path
            )
        ):
            _delete_refs(source, f"refs/heads/rekindle/{name}/", f"refs/rekindle/{name}/")
            branches.append(branch)
        else:
            kept_branches.append(branch)
    if every:
        branches += _delete_merges(source, reading)
    is_forgotten = every and not kept
    if is_forgotten:
        for name in workers:
            _remove_agent(project, name)
        _remove_guards(source, reading.folder)
        reading.folder.remove()
    return CleanedRun(
        folders=tuple(removed),
        kept_folders=kept,
        branches=tuple(branches),
        kept_branches=tuple(kept_branches),
        is_forgotten=is_forgotten,
    )


def require_over(reading: RunReading) -> None:
    """Raise OwnershipError if a run is not over."""
    row = reading.row
    if not row.is_over:
        raise _make_not_over(row)


def _make_not_over(row: RunRow) -> OwnershipError:
    return OwnershipError(
        f"run {row.run} of {row.pipeline} is not over",
        hint=f"stop it: `rekindle pipeline stop {row.pipeline} {row.run}`",
    )


def _refuse_running(project: Project, reading: StoredRun, workers: set[str]) -> None:
    row = reading.row
    if row.is_coordinated:
        raise _make_not_over(row)
    if running := sorted(workers & set(RunningAgents().find(project.path))):
        raise OwnershipError(
            f"run {row.run} of {row.pipeline}: the worker {running[0]} is running",
            hint=f"stop it: `rekindle stop {running[0]}`",
        )


def _remove_folder(stored: StoredWorkspace) -> str:
    """Remove a worker's folder. Return why it was kept instead, or ""."""
    if stored.obstacle:
        return f"{stored.obstacle}; {stored.hint}"
    try:
        stored.remove()
    except RekindleError as error:
        return f"{error}; {error.hint}"
    return ""


def is_work_contained(
    source: WorkingCopy, reading: RunReading, place: WorkerId, tip: str, project: Path
) -> bool:
    """Return whether the result contains the work on a worker's branch.

    Outputs are ignored, because the run has copied them to its own folder. Their paths are relative
    to the project, which may be a subfolder of the repository.
    """
    result = reading.row.commit
    if not result or not source.has(result):
        return False
    if source.is_kept((tip,), by=(result,)):
        return True
    work = reading.state.find_worker(*place).commit
    if not work or not source.has(work) or not source.is_kept((work,), by=(result,)):
        return False
    changed = source.call("diff-tree", "-r", "-z", "--name-only", "--no-renames", work, tip)
    outputs = reading.definition.find_step(place[0]).outputs or {}
    within = project.resolve().relative_to(source.folder.resolve())
    paths = {(within / path).as_posix() for path in outputs.values()}
    return {os.fsdecode(name) for name in changed.split(b"\0") if name} <= paths


def _remove_guards(source: WorkingCopy, folder: RunFolder) -> None:
    """Remove the refs to the run's commits, except those that no branch contains."""
    commits = list(_list_commits(source, "refs/heads/").values())
    prefix = f"refs/rekindle/pipelines/{folder.pipeline}/{folder.run}/"
    for ref, commit in _list_commits(source, prefix).items():
        if source.is_kept((commit,), by=commits):
            source.call("update-ref", "--no-deref", "-d", ref)


def _delete_merges(source: WorkingCopy, reading: StoredRun) -> list[str]:
    """Remove the branches on which the operator merged, if the result contains them."""
    result = name_result_branch(reading.folder.pipeline, reading.folder.run)
    removed = []
    for ref, commit in _list_commits(source, f"refs/heads/{result}-*").items():
        branch = ref.removeprefix("refs/heads/")
        is_merged = reading.row.commit and source.is_kept((commit,), by=(reading.row.commit,))
        if is_merged and not source.is_checked_out(branch):
            _delete_refs(source, ref)
            removed.append(branch)
    return removed


def _delete_refs(source: WorkingCopy, *prefixes: str) -> None:
    for prefix in prefixes:
        for ref in _list_commits(source, prefix):
            source.call("update-ref", "--no-deref", "-d", ref)


def _list_commits(source: WorkingCopy, prefix: str) -> dict[str, str]:
    """Return the refs below a prefix, each with its commit."""
    listed = source.call("for-each-ref", "--format=%(objectname) %(refname)", prefix)
    return parse_refs(os.fsdecode(listed))


def _remove_agent(project: Project, name: str) -> None:
    """Remove a worker's log and its private files."""
    for path in (
        RekindleFolder(project.path).agent(name).path,
        private_files.find_private_project(project.path).agent(name).path,
    ):
        if path.is_dir():
            remove_folder(path)
