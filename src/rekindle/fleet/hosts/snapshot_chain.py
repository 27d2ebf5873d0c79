"""Keep the history of an agent's work branch short.

Each snapshot has the previous one as a parent, so the branch would grow with every push. After a
while, a snapshot replaces all earlier ones. It keeps every commit of the agent and of people that
they contained, even if it is no longer on any branch.
"""

import os

from rekindle.documents.commits import work_commit
from rekindle.system.git.tree_snapshot import HeadPosition, WorkingCopy
from rekindle.thresholds.storage import WORK_SNAPSHOTS


def squash(copy: WorkingCopy, agent: str, last: str, position: HeadPosition) -> tuple[str, ...]:
    """Return the parents for a snapshot that replaces all earlier ones, or () if they are few.

    The parents are the commits below the snapshots. HEAD is not among them if it contains all of
    them, so there is always at least one parent.
    """
    excluded = ("--not", position.head) if position.head else ()
    count = copy.call("rev-list", "--count", last, *excluded, "--")
    if int(count) < WORK_SNAPSHOTS:
        return ()
    snapshots, below = set(), []
    for entry in copy.call("log", "--format=%H%x00%P%x00%B%x01", last, *excluded, "--").split(
        b"\x01"
    ):
        if b"\0" not in entry:
            continue
        commit, parents, message = os.fsdecode(entry).strip("\n").split("\0", 2)
        snapshot = work_commit.parse(message)
        if snapshot is not None and snapshot.agent == agent:
            snapshots.add(commit)
            below += parents.split()
    kept = [*dict.fromkeys(parent for parent in (position.head, *below) if parent)]
    outside = [commit for commit in kept if commit not in snapshots]
    if len(snapshots) < WORK_SNAPSHOTS or not outside:
        return ()
    # Leave out commits that others contain.
    listed = copy.call("merge-base", "--independent", *outside)
    return tuple(os.fsdecode(listed).split())
