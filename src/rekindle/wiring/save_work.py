"""Save the work of an agent's own checkout before the folder is removed."""

import os

import msgspec

from rekindle.documents import clone_files
from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel
from rekindle.errors import WorkspaceError
from rekindle.formats.identifiers import to_one_line
from rekindle.system import clock
from rekindle.system.git import branch_merge
from rekindle.system.git.tree_snapshot import CapturedTree, HeadPosition, WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.wiring.agent_workspaces import AgentWorkspace


class CommittedWork(msgspec.Struct, frozen=True):
    commit: str
    """Commit with all of the agent's work; its HEAD if there were no uncommitted files."""
    count: int
    """Number of files that were uncommitted."""


def save_work(workspace: AgentWorkspace) -> str:
    """Save everything in an agent's checkout as git refs. Return the snapshot's name."""
    snapshot = _take_snapshot(workspace)
    workspace.publish(clock.read_clock())
    return snapshot.name


def save_for_removal(workspace: AgentWorkspace) -> str:
    """Save an agent's checkout before it is removed. Return the snapshot's name.

    Raises:
        WorkspaceError: A file or a commit is not in the user's repository.
    """
    snapshot, name = _take_snapshot(workspace), workspace.checkout.agent
    if snapshot.left_out:
        left_out = snapshot.left_out[0]
        raise WorkspaceError(
            "left-out",
            f"{to_one_line(left_out.path)} of {name} would be lost: {left_out.why}",
            hint=f"move it out of {workspace.folder}, then repeat the command",
        )
    _refuse_nested(workspace, snapshot.tree)
    workspace.publish(clock.read_clock())
    _refuse_unpublished(workspace)
    return snapshot.name


def save_on_branch(workspace: AgentWorkspace) -> None:
    """Save everything in an agent's checkout on its branch, without a snapshot.

    Raises:
        WorkspaceError: A file or a commit would be lost.
    """
    copy = WorkingCopy(workspace.folder)
    with workspace.hold(), copy.capture() as captured:
        _refuse_nested(workspace, captured.tree)
        work = commit_captured(workspace, copy, captured)
        if work.count:
            move_branch(copy, work.commit)
    workspace.publish(clock.read_clock())
    _refuse_unpublished(workspace)


def commit_captured(
    workspace: AgentWorkspace, copy: WorkingCopy, captured: CapturedTree
) -> CommittedWork:
    """Write a commit that contains the agent's uncommitted files, without moving its branch."""
    head = copy.read_head().head
    count = copy.count_differing(head, captured.tree)
    if not count:
        return CommittedWork(head, 0)
    author = branch_merge.find_identity(WorkingCopy(workspace.checkout.repository))
    message = f"Uncommitted changes of {workspace.checkout.agent}\n"
    return CommittedWork(copy.commit(captured.tree, (head,), message, author), count)


def move_branch(copy: WorkingCopy, commit: str) -> None:
    """Move the agent's branch and index to a commit that contains the files on disk."""
    branch = copy.read_head().branch
    copy.reset_index(commit)
    copy.set_head(HeadPosition(commit, branch))
    copy.refresh()


def _take_snapshot(workspace: AgentWorkspace) -> Snapshot:
    label = SnapshotLabel(workspace.checkout.agent, "end", clock.read_clock())
    snapshot, _ = WorkSnapshots(workspace.folder).take(label, reuse=True)
    return snapshot


def _refuse_nested(workspace: AgentWorkspace, tree: str) -> None:
    """Refuse to lose a repository that the agent created in its checkout."""
    copy = WorkingCopy(workspace.folder)
    known = set(copy.list_repositories(copy.read_head().head))
    nested = [path for path in copy.list_repositories(tree) if path not in known]
    if nested:
        raise WorkspaceError(
            "nested",
            f"the repository {to_one_line(nested[0])} of {workspace.checkout.agent} would be lost",
            hint=f"move it out of {workspace.folder}, then repeat the command",
        )


def _refuse_unpublished(workspace: AgentWorkspace) -> None:
    """Refuse to lose commits that no branch of the user's repository contains."""
    checkout = workspace.checkout
    source = WorkingCopy(checkout.repository)
    head = WorkingCopy(checkout.folder).read_head()
    refs = clone_files.parse_refs(os.fsdecode(source.refs()))
    branches = [commit for name, commit in refs.items() if name.startswith("refs/heads/")]
    if source.has(head.head) and source.is_kept((head.head,), by=branches):
        return
    if source.is_checked_out(checkout.branch):
        raise WorkspaceError(
            "checked-out",
            f"you have checked out {checkout.branch}, so it does not get the agent's new commits",
            hint="check out another branch, then repeat the command",
        )
    raise WorkspaceError(
        "detached",
        f"the commit {head.head[:12]} of {checkout.agent} is not on a branch",
        hint=f"create one: git -C {checkout.folder} branch NAME {head.head[:12]}",
    )
