"""Merge the work in an agent's own clone or work tree into the user's branch."""

import os

import msgspec

from rekindle.config import Project
from rekindle.documents.clone_files import PROJECT_REMOTE, parse_refs
from rekindle.errors import NotFoundError, UsageError, WorkspaceError
from rekindle.system import clock
from rekindle.system.git import branch_merge
from rekindle.system.git.publish_work import copy_objects
from rekindle.system.git.tree_snapshot import HeadPosition, WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.wiring.agent_workspaces import (
    AgentWorkspace,
    find_stored_workspace,
    find_workspace,
)
from rekindle.wiring.running_agents import RunningAgents
from rekindle.wiring.save_work import CommittedWork, commit_captured, move_branch, save_work

_UNFINISHED = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply")


class WorkMerge(msgspec.Struct, frozen=True, kw_only=True):
    """Preview of a merge."""

    agent: str
    branch: str
    """The agent's branch."""
    target: str
    """The user's branch, or "HEAD" if none is checked out."""
    source: str
    """The user's branch or commit, by its name in the agent's checkout."""
    commits: int
    """Number of the agent's commits that the user's branch does not have."""
    uncommitted: int
    """Number of the agent's uncommitted files, which are merged too."""
    is_working: bool
    """Whether the agent is working, so that only its commits are merged."""
    work: str
    """The agent's commit, including a commit for its uncommitted files."""
    commit: str
    """The merged commit; empty if there are conflicts."""
    conflicts: tuple[str, ...]
    stat: str
    """The changed files, as text."""

    @property
    def is_needed(self) -> bool:
        return bool(self.commits or (self.uncommitted and (self.stat or self.conflicts)))


def require_workspace(project: Project, name: str) -> AgentWorkspace:
    """Return an agent's own checkout.

    Raises:
        UsageError: The agent works in the user's checkout.
        NotFoundError: The checkout does not exist.
    """
    declared = find_workspace(project, name)
    if declared is not None:
        declared.repair()
    workspace = find_stored_workspace(project.path, name) or declared
    if workspace is not None:
        workspace.repair()
    else:
        raise UsageError(
            f"{name} works in your checkout, so there is nothing to merge or to remove",
            hint="an agent with `workspace: clone` in rekindle.yaml has its own",
        )
    if not workspace.exists:
        checkout = workspace.checkout
        has_branch = WorkingCopy(checkout.repository).find_ref(f"refs/heads/{checkout.branch}")
        by_hand = f"`git merge {checkout.branch}` merges its commits, or " if has_branch else ""
        raise NotFoundError(
            f"{name} has no clone or work tree at the moment",
            hint=f"{by_hand}`rekindle run {name}` creates one",
        )
    return workspace


def plan_merge(project: Project, name: str) -> WorkMerge:
    """Publish the agent's work and merge it in memory. The user's checkout is not changed."""
    workspace = require_workspace(project, name)
    is_working = name in RunningAgents().find(project.path)
    if is_working:
        workspace.publish(clock.read_clock())
    else:
        save_work(workspace)
    checkout = workspace.checkout
    source, copy = WorkingCopy(checkout.repository), WorkingCopy(checkout.folder)
    head = copy.read_head().head
    work = CommittedWork(head, 0)
    if not is_working:
        _refuse_unfinished(name, copy)
        with copy.capture() as captured:
            work = commit_captured(workspace, copy, captured)
    # The branch may lack the newest commits, if the user has checked it out.
    copy_objects(copy, source, (work.commit,), excluded=parse_refs(os.fsdecode(source.refs())))
    here = require_mergeable(source, checkout.branch, work.commit)
    target = here.branch or "HEAD"
    prefix = f"{PROJECT_REMOTE}/" if checkout.kind == "clone" else ""
    message = f"Merge branch '{checkout.branch}' into {target}\n"
    merged = branch_merge.merge_commits(source, here.head, work.commit, message)
    snapshots = WorkSnapshots(checkout.repository)
    stat = snapshots.compare(here.head, merged.commit, stat=True) if merged.commit else ""
    return WorkMerge(
        agent=name,
        branch=checkout.branch,
        target=target,
        source=f"{prefix}{here.branch}" if here.branch else here.head,
        commits=_count_commits(source, head, (here.head, workspace.read_base())),
        uncommitted=work.count,
        is_working=is_working,
        work=work.commit,
        commit=merged.commit,
        conflicts=merged.conflicts,
        stat=stat,
    )


def require_mergeable(source: WorkingCopy, branch: str, theirs: str) -> HeadPosition:
    """Return the user's HEAD if a branch's commit can be merged into it.

    Raises:
        WorkspaceError: The user's branch has no commit, or no commit in common with the other
            branch.
    """
    here = source.read_head()
    target = here.branch or "HEAD"
    if not here.head:
        raise WorkspaceError(
            "unborn",
            f"your branch {target} has no commit yet, so nothing can be merged into it",
            hint="check out a branch with a commit: git checkout BRANCH",
        )
    if not branch_merge.is_related(source, here.head, theirs):
        raise WorkspaceError(
            "unrelated",
            f"{branch} and {target} have no commit in common",
            hint=f"merge it with git: git merge --allow-unrelated-histories {branch}",
        )
    return here


def _refuse_unfinished(name: str, copy: WorkingCopy) -> None:
    """Refuse to merge while the agent's checkout has an unfinished merge or rebase."""
    is_open = any((copy.git_folder / file).exists() for file in _UNFINISHED)
    if is_open or copy.call("ls-files", "--unmerged"):
        raise WorkspaceError(
            "unfinished",
            f"{name} has not finished a merge or a rebase in {copy.folder}",
            hint=f"let it finish (`rekindle run {name}`), or do it there yourself",
        )


def _count_commits(source: WorkingCopy, head: str, without: tuple[str, ...]) -> int:
    """Return the number of the agent's own commits that the user's branch does not have.

    Commits that the agent started from do not count, because the user may have removed them from
    the branch.
    """
    excluded = (f"^{commit}" for commit in without if commit)
    return int(source.call("rev-list", "--count", head, *excluded, "--"))


def bring_in(project: Project, merge: WorkMerge) -> None:
    """Move the user's checkout to the merged commit."""
    workspace = require_workspace(project, merge.agent)
    branch_merge.fast_forward(WorkingCopy(workspace.checkout.repository), merge.commit)


def commit_work(project: Project, merge: WorkMerge) -> None:
    """Commit the agent's uncommitted files to its branch.

    After a merge, the agent's checkout is clean and follows the user's branch. If there was a
    conflict, the user or the agent can merge the branch with git, which refuses to overwrite
    uncommitted files.
    """
    workspace = require_workspace(project, merge.agent)
    if merge.uncommitted:
        with workspace.hold():
            copy = WorkingCopy(workspace.checkout.folder)
            if not copy.is_kept((copy.read_head().head,), by=(merge.work,)):
                return  # the agent was started in the meantime and has committed
            move_branch(copy, merge.work)
        workspace.publish(clock.read_clock())
