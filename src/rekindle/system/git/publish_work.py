"""Copy an agent's commits and snapshots from its clone into the user's repository.

Only objects and refs of the clone are read, never its configuration, because the agent can write
it.
"""

import os
import tempfile
from collections.abc import Collection, Mapping
from datetime import datetime
from urllib.parse import quote

from rekindle.documents import clone_files
from rekindle.documents.commits import snapshot_commit
from rekindle.errors import translate_os_errors
from rekindle.policy.snapshots.retention import choose_expired
from rekindle.system.git import git_process
from rekindle.system.git.agent_checkout import AgentCheckout
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots

_HEADS, _TAGS = "refs/heads/", "refs/tags/"


def publish_work(checkout: AgentCheckout, now: datetime) -> None:
    """Update the agent's branch and snapshots in the user's repository.

    The branch is not moved while the user has it checked out in a work tree. A work tree shares its
    refs with the user's repository, so nothing is copied for it.
    """
    if checkout.kind != "clone":
        return
    source, clone = WorkingCopy(checkout.repository), WorkingCopy(checkout.folder)
    present = clone_files.parse_refs(os.fsdecode(source.refs()))
    changes = _select_changes(checkout, source, clone, present)
    if not changes:
        return
    copy_objects(clone, source, changes.values(), excluded=present)
    source.refuse_link(*changes)
    lines = (
        f"update {name} {commit} {present.get(name) or '0' * len(commit)}\n"
        for name, commit in changes.items()
    )
    source.call("update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(lines)))
    _remove_expired(checkout, now)


def copy_objects(
    clone: WorkingCopy,
    source: WorkingCopy,
    commits: Collection[str],
    excluded: Mapping[str, str],
) -> None:
    """Copy commits with all their objects, except those that the `excluded` refs contain.

    A commit in the user's repository may be incomplete, because an earlier copy may have been
    killed before it wrote the commit's files. Only commits that a ref contains are complete.
    """
    known = {
        commit
        for name, commit in excluded.items()
        if name.startswith((_HEADS, snapshot_commit.PREFIX))
    }
    asked = [*dict.fromkeys(commits), *(f"^{commit}" for commit in known)]
    # Use a temporary file, because the objects may not fit into memory.
    with (
        translate_os_errors(source.git_folder),
        tempfile.TemporaryFile(dir=source.git_folder) as packed,
    ):
        source.call(
            *("pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset"),
            stdin="".join(f"{line}\n" for line in asked).encode(),
            stdout=packed,
            more={"GIT_ALTERNATE_OBJECT_DIRECTORIES": git_process.quote_path(str(clone.objects))},
        )
        packed.seek(0)
        source.call("unpack-objects", "-q", stdin=packed)


def _select_changes(
    checkout: AgentCheckout, source: WorkingCopy, clone: WorkingCopy, present: Mapping[str, str]
) -> dict[str, str]:
    """Return the refs to create or update in the user's repository."""
    own, wanted = f"{snapshot_commit.PREFIX}{checkout.agent}/", {}
    work, head = f"{_HEADS}{checkout.branch}", clone.read_head().head
    for name, commit in clone_files.parse_refs(os.fsdecode(clone.refs())).items():
        if name.startswith(own) and name not in present:
            wanted[name] = commit
        elif name.startswith(_HEADS) and (name != work or commit != head):
            # Copy the agent's other branches too, so that no commit is lost with the clone. Encode
            # slashes, because git cannot store both `a` and `a/b`, even if the agent has removed
            # one of them.
            wanted[f"{own}heads/{quote(name.removeprefix(_HEADS), safe='')}"] = commit
        elif name == "refs/stash" or (name.startswith(_TAGS) and name not in present):
            wanted[f"{own}{quote(name.removeprefix('refs/'), safe='')}"] = commit
    if head and not source.is_checked_out(checkout.branch):
        wanted[work], before = head, present.get(work, head)
        if not clone.is_kept((before,), by=(head,)):
            # The agent rewrote its history, or the user committed to the branch.
            wanted[f"{own}replaced/{before}"] = before
    return {name: commit for name, commit in wanted.items() if present.get(name) != commit}


def _remove_expired(checkout: AgentCheckout, now: datetime) -> None:
    snapshots = WorkSnapshots(checkout.repository)
    ours = [one for one in snapshots.list() if one.label.agent == checkout.agent]
    snapshots.remove(choose_expired(ours, now))
