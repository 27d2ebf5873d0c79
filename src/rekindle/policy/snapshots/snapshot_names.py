"""Find a snapshot by its name, as printed by `rekindle snapshots`."""

import re
from collections.abc import Sequence

from rekindle.documents.commits.snapshot_commit import Snapshot, find_newest
from rekindle.errors import NotFoundError

_NAME = re.compile(r"(?:([a-z0-9][a-z0-9_-]{0,62})/)?([1-9][0-9]{0,8})\Z")
LIST_HINT = "`rekindle snapshots` lists them"


def is_snapshot_name(text: str) -> bool:
    return _NAME.match(text) is not None


def find_agent(text: str) -> str:
    """Return the agent in a name such as `trades/12`, or "" if there is none."""
    match = _NAME.match(text)
    return (match[1] or "") if match else ""


def find_snapshot(snapshots: Sequence[Snapshot], text: str, agent: str) -> Snapshot:
    """Return the snapshot with this name. A plain number refers to one of `agent`'s snapshots.

    Raises:
        NotFoundError: There is no snapshot with this name.
    """
    match = _NAME.match(text)
    name = f"{match[1] or agent}/{match[2]}" if match else text
    for one in snapshots:
        if one.name == name:
            return one
    raise NotFoundError(f"there is no snapshot {name}", hint=LIST_HINT)


def find_target(snapshots: Sequence[Snapshot], agent: str, worktree: str) -> Snapshot:
    """Return the snapshot that a rewind uses by default: the one from the last cycle start.

    Raises: NotFoundError: There is no such snapshot.
    """
    start = find_newest(snapshots, agent, worktree, "start")
    if start is None:
        raise NotFoundError(f"{agent} has no snapshot of the start of a cycle", hint=LIST_HINT)
    return start
