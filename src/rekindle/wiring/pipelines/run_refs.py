"""A run's refs in the user's repository, and the commits that they protect.

| ref | commit |
|---|---|
| `refs/heads/rekindle/PIPELINE/RUN` | result of the run |
| `refs/heads/rekindle/PIPELINE/RUN-STEP` | merge that the operator has to finish |
| `refs/rekindle/pipelines/PIPELINE/RUN/…` | all commits in the log, so that git keeps them |
"""

from rekindle.config import Project
from rekindle.documents.pipelines.pipeline_events import MergeStage, StepMerged
from rekindle.documents.pipelines.run_branches import name_merge_branch, name_result_branch
from rekindle.errors import UsageError, WorkspaceError
from rekindle.policy.pipelines.pipeline_moves import MergeCommits
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.git import branch_merge, own_configuration
from rekindle.system.git.tree_snapshot import WorkingCopy


def find_repository(project: Project) -> WorkingCopy:
    """Return the user's repository.

    Raises:
        UsageError: The project is not in a repository.
    """
    top = own_configuration.find_top(project.path)
    if top is None:
        raise UsageError(
            "a pipeline needs a git repository, and there is none here",
            hint="create one: git init",
        )
    return WorkingCopy(top)


def make_result_branch(folder: RunFolder) -> str:
    """Return the name of the branch with a run's result."""
    return name_result_branch(folder.pipeline, folder.run)


def make_merge_branch(folder: RunFolder, step: str, stage: MergeStage) -> str:
    """Return the name of the branch on which the operator merges conflicting changes."""
    return name_merge_branch(folder.pipeline, folder.run, step, stage)


def name_merge(step: str, stage: MergeStage) -> str:
    """Return the name under which `keep_commit` stores a merge."""
    return f"{step or '_run'}/{stage}"


def keep_commit(source: WorkingCopy, folder: RunFolder, name: str, commit: str) -> None:
    """Create a ref to a commit, so that git does not remove the commit."""
    source.move(_name_ref(folder, name), commit)


def place_result(source: WorkingCopy, folder: RunFolder, commit: str) -> str:
    """Put a run's result on its branch, and return the branch.

    If the branch already contains the result, commits that the user has added to it are kept.

    Raises:
        WorkspaceError: The branch has other commits from the user, or the user has it checked out
            at an older commit.
    """
    keep_commit(source, folder, "_run/result", commit)
    branch = make_result_branch(folder)
    ref = f"refs/heads/{branch}"
    tip = source.find_ref(ref)
    if tip is not None and source.is_kept((commit,), by=(tip.oid,)):
        return branch
    if tip is not None and (
        not source.is_kept((tip.oid,), by=(commit,)) or source.is_checked_out(branch)
    ):
        raise WorkspaceError(
            "changed",
            f"the branch {branch} is for the result of the run, but you use it",
            hint=f"rename yours, and the run continues: git branch -m {branch} NAME",
        )
    source.refuse_link(ref)
    # Passing the old commit makes git refuse the update if the user has just added a commit.
    old = "0" * len(commit) if tip is None else tip.oid
    source.call("update-ref", "--no-deref", ref, commit, old)
    return branch


def find_kept(source: WorkingCopy, folder: RunFolder, name: str) -> str | None:
    """Return the commit that `keep_commit` stored under a name, or None."""
    ref = source.find_ref(_name_ref(folder, name))
    return ref.oid if ref is not None else None


def _name_ref(folder: RunFolder, name: str) -> str:
    return f"refs/rekindle/pipelines/{folder.pipeline}/{folder.run}/{name}"


def list_run_names(source: WorkingCopy) -> list[str]:
    """Return the names after `rekindle/` in the refs of all runs and workers."""
    prefixes = ("refs/heads/rekindle/", "refs/rekindle/pipelines/")
    listed = source.call("for-each-ref", "--format=%(refname)", *prefixes).decode()
    return [ref.removeprefix(prefixes[0]).removeprefix(prefixes[1]) for ref in listed.splitlines()]


def list_refs(source: WorkingCopy, folder: RunFolder) -> list[str]:
    """Return all refs of a run, except those of its workers."""
    place = f"{folder.pipeline}/{folder.run}"
    patterns = (
        f"refs/rekindle/pipelines/{place}/",
        f"refs/heads/rekindle/{place}",
        f"refs/heads/rekindle/{place}-*",
    )
    return source.call("for-each-ref", "--format=%(refname)", *patterns).decode().splitlines()


def merge_parts(source: WorkingCopy, folder: RunFolder, move: MergeCommits) -> StepMerged:
    """Merge commits in memory, in order. Leave out and list the ones that conflict."""
    merged: list[str] = []
    conflicting: list[str] = []
    commit = ""
    for name, theirs in move.parts:
        if not commit:
            commit = theirs
            merged.append(name)
            continue
        words = f"Merge {name} of {move.step or folder.pipeline}\n"
        made = branch_merge.merge_commits(source, commit, theirs, words)
        if made.conflicts:
            conflicting.append(name)
        else:
            commit = made.commit
            merged.append(name)
    keep_commit(source, folder, name_merge(move.step, move.stage), commit)
    return StepMerged(
        ts=clock.read_clock(),
        step=move.step,
        stage=move.stage,
        commit=commit,
        merged=tuple(merged),
        conflicts=() if move.drops else tuple(conflicting),
        dropped=tuple(conflicting) if move.drops else (),
    )
