"""Merge a commit into the user's checked-out branch, without writing conflicts to any file."""

import os

import msgspec

from rekindle.errors import WorkspaceError
from rekindle.system.git.repository import Repository
from rekindle.system.git.tree_snapshot import OWN_FOLDER, WorkingCopy
from rekindle.system.git.workspace_git import make_refusal
from rekindle.thresholds.storage import WORKTREE_CALL_SECONDS

_NO_FILTER = {b"unspecified", b"unset"}


class MergedCommit(msgspec.Struct, frozen=True):
    """Result of an in-memory merge."""

    commit: str = ""
    """Commit that contains both sides; empty if there are conflicts."""
    conflicts: tuple[str, ...] = ()
    """Files with conflicts."""


def merge_commits(copy: WorkingCopy, ours: str, theirs: str, message: str) -> MergedCommit:
    """Merge two commits in memory. No file and no ref is changed."""
    if copy.is_kept((theirs,), by=(ours,)):
        return MergedCommit(ours)
    if copy.is_kept((ours,), by=(theirs,)):
        return MergedCommit(theirs)
    command = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    ended = copy.ask(*command)
    if ended.code not in {0, 1}:
        raise make_refusal("merge-tree", ended)
    tree, *names = ended.out.split(b"\0")[:-1]
    if ended.code:
        shown = dict.fromkeys(name.decode("utf-8", "backslashreplace") for name in names if name)
        return MergedCommit(conflicts=tuple(shown))
    author = find_identity(copy)
    return MergedCommit(copy.commit(os.fsdecode(tree), (ours, theirs), message, author))


def is_related(copy: WorkingCopy, ours: str, theirs: str) -> bool:
    """Return whether two commits have a common ancestor."""
    return bool(copy.call("merge-base", ours, theirs, may_fail_with=1))


def fast_forward(copy: WorkingCopy, commit: str) -> None:
    """Move the user's checkout to a commit that contains its HEAD.

    Raises:
        WorkspaceError: A changed file would be overwritten, or a file needs a filter such as LFS.
    """
    names = copy.call("diff-tree", "-r", "-z", "--name-only", "--no-renames", "HEAD", commit)
    _refuse_own_folder(names)
    _refuse_filters(copy, names)
    options = ("--ff-only", "--quiet", "--no-verify", "--no-overwrite-ignore")
    ended = copy.ask("merge", *options, commit)
    if ended.code:
        blocking = [line.strip() for line in ended.complaint.splitlines() if line.startswith("\t")]
        if blocking:
            raise WorkspaceError(
                "changed",
                f"the merge would overwrite your changes to {', '.join(blocking)}",
                hint="commit, stash or move them, then repeat the command",
            )
        raise make_refusal("merge", ended)


def find_identity(copy: WorkingCopy) -> dict[str, str]:
    """Return git's variables for the user's name and email; empty if either is not set."""
    repository = Repository(copy.folder, timeout=WORKTREE_CALL_SECONDS)
    listed = repository.look("config", "--null", "--list").split("\0")
    settings = dict(entry.partition("\n")[::2] for entry in listed)
    name, address = settings.get("user.name"), settings.get("user.email")
    if not name or not address:
        return {}
    return {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", address))
    }


def _refuse_own_folder(names: bytes) -> None:
    """Refuse Rekindle's own files, which an agent may have committed to change its log."""
    for name in names.split(b"\0"):
        if OWN_FOLDER.encode() in name.split(b"/"):
            raise WorkspaceError(
                "own",
                f"the agent committed {name.decode('utf-8', 'backslashreplace')}, a file of "
                "Rekindle's own",
                hint="let the agent remove it from its branch: git rm -r --cached .rekindle",
            )


def _refuse_filters(copy: WorkingCopy, names: bytes) -> None:
    """Refuse files that need a filter, because Rekindle does not run filters."""
    listed = copy.call("check-attr", "-z", "--stdin", "filter", stdin=names).split(b"\0")
    filtered = [
        name.decode("utf-8", "backslashreplace")
        for name, value in zip(listed[::3], listed[2::3], strict=False)
        if value not in _NO_FILTER
    ]
    if filtered:
        raise WorkspaceError(
            "filtered",
            f"git must write {filtered[0]} with a filter, such as LFS, which Rekindle does not run",
            hint="merge the branch with git itself",
        )
