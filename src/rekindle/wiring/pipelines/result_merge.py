"""Merge a run's result into the user's branch."""

import msgspec

from rekindle.config import Project
from rekindle.errors import WorkspaceError
from rekindle.system.git import branch_merge
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.wiring.merge_work import require_mergeable
from rekindle.wiring.pipelines.run_refs import find_repository


class ResultMerge(msgspec.Struct, frozen=True, kw_only=True):
    """Preview of a merge."""

    branch: str
    """Branch with the run's result."""
    target: str
    """The user's branch, or "HEAD" if none is checked out."""
    commits: int
    """Number of commits that the user's branch does not have."""
    commit: str
    """The merged commit; empty if there are conflicts."""
    conflicts: tuple[str, ...]
    stat: str
    """The changed files, as text."""


def find_result_commit(source: WorkingCopy, branch: str, commit: str) -> str:
    """Return the result branch's last commit, which may be the user's own.

    If the branch was deleted, return the recorded commit.

    Raises:
        WorkspaceError: Git has removed the commit.
    """
    tip = source.find_ref(f"refs/heads/{branch}")
    if tip is not None:
        return tip.oid
    if not source.has(commit):
        raise WorkspaceError(
            "gone",
            f"the commit {commit} with the result is not in your repository",
            hint="git may have removed it after its branch was deleted; run the pipeline again",
        )
    return commit


def plan_result_merge(project: Project, branch: str, commit: str) -> ResultMerge:
    """Merge a result in memory. The user's checkout is not changed."""
    source = find_repository(project)
    commit = find_result_commit(source, branch, commit)
    here = require_mergeable(source, branch, commit)
    target = here.branch or "HEAD"
    merged = branch_merge.merge_commits(
        source, here.head, commit, f"Merge branch '{branch}' into {target}\n"
    )
    snapshots = WorkSnapshots(source.folder)
    return ResultMerge(
        branch=branch,
        target=target,
        commits=snapshots.count_commits(here.head, commit),
        commit=merged.commit,
        conflicts=merged.conflicts,
        stat=snapshots.compare(here.head, merged.commit, stat=True) if merged.commit else "",
    )


def bring_in_result(project: Project, merge: ResultMerge) -> None:
    """Move the user's checkout to the merged commit."""
    branch_merge.fast_forward(find_repository(project), merge.commit)


def compare_commits(project: Project, before: str, after: str, *, stat: bool) -> str:
    """Return the difference between two commits, as a patch or as a list of files."""
    return WorkSnapshots(find_repository(project).folder).compare(before, after, stat=stat)
