"""Work-tree snapshots, which are commits under `refs/rekindle/AGENT/NUMBER`.

The commit's tree is the work tree, and its first parent is HEAD at that time. The message contains
everything else, so a snapshot can be listed and restored without Rekindle's own files:

    Snapshot 12 of trades: cycle 3, start

    Rekindle-Snapshot: {"v":1,"agent":"trades","number":12,…}
"""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import msgspec

from rekindle.formats.identifiers import AGENT_NAME

SnapshotReason = Literal["start", "handoff", "end", "rewind", "export"]

PREFIX = "refs/rekindle/"
SCHEMA = 1
_NAME = re.compile(rf"{PREFIX}([a-z0-9][a-z0-9_-]{{0,62}})/([1-9][0-9]{{0,8}})\Z")
_TRAILER = re.compile(r"\n\nRekindle-Snapshot: (\{[^\n]*\})\n*\Z")
_COMMIT = re.compile(r"([0-9a-f]{40}|[0-9a-f]{64})?\Z")


class LeftOutFile(msgspec.Struct, frozen=True):
    """A path that was left out of a snapshot."""

    path: str
    why: str


class SnapshotLabel(msgspec.Struct, frozen=True):
    """When and why a snapshot was taken."""

    agent: str
    reason: SnapshotReason
    at: datetime
    cycle: int = 0
    """Number of the cycle; 0 if unknown."""
    launch: str = ""
    """Id of the cycle's last launch before the snapshot; empty if there was none."""


class SavedBranch(msgspec.Struct, frozen=True):
    """A branch and its commit."""

    name: str = ""
    head: str = ""


class Snapshot(msgspec.Struct, frozen=True):
    """A snapshot of a work tree."""

    label: SnapshotLabel
    number: int
    head: str
    """Commit at HEAD; empty if there was none."""
    branch: str
    """Branch that was checked out, or empty for a detached HEAD."""
    worktree: str = ""
    """Name of the linked work tree; empty for the main one."""
    left_out: tuple[LeftOutFile, ...] = ()
    more_left_out: int = 0
    """Number of paths that were left out but are not listed in `left_out`."""
    other: SavedBranch = SavedBranch()
    """Branch that the rewind moves right after this snapshot, in addition to the current one."""
    commit: str = ""
    tree: str = ""

    @property
    def name(self) -> str:
        return f"{self.label.agent}/{self.number}"

    @property
    def position(self) -> tuple[str, str]:
        return self.head, self.branch


class _Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """JSON data in the snapshot's trailer."""

    agent: str
    number: int
    reason: SnapshotReason
    at: datetime
    v: int = SCHEMA
    cycle: int = 0
    launch: str = ""
    head: str = ""
    branch: str = ""
    worktree: str = ""
    left_out: tuple[LeftOutFile, ...] = ()
    more_left_out: int = 0
    other: SavedBranch = SavedBranch()


_decoder = msgspec.json.Decoder(_Message)


def make_ref(agent: str, number: int) -> str:
    return f"{PREFIX}{agent}/{number}"


def render(snapshot: Snapshot) -> str:
    """Return a snapshot's commit message."""
    label = snapshot.label
    message = _Message(
        agent=label.agent,
        number=snapshot.number,
        reason=label.reason,
        at=label.at,
        cycle=label.cycle,
        launch=label.launch,
        head=snapshot.head,
        branch=snapshot.branch,
        worktree=snapshot.worktree,
        left_out=snapshot.left_out,
        more_left_out=snapshot.more_left_out,
        other=snapshot.other,
    )
    fields = {"v": SCHEMA} | msgspec.to_builtins(message)
    subject = f"Snapshot {snapshot.number} of {label.agent}: {describe_occasion(label)}"
    return f"{subject}\n\nRekindle-Snapshot: {msgspec.json.encode(fields).decode()}\n"


def parse(ref: str, commit: str, tree: str, message: str) -> Snapshot | None:
    """Return the snapshot at a ref, or None if this version does not understand it."""
    named, trailer = _NAME.match(ref), _TRAILER.search(message)
    if not named or not trailer:
        return None
    try:
        found = _decoder.decode(trailer[1])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    if (found.agent, str(found.number)) != named.groups() or found.at.tzinfo is None:
        return None
    if found.v > SCHEMA or not AGENT_NAME.match(found.agent):
        return None
    if not (_COMMIT.match(found.head) and _COMMIT.match(found.other.head)):
        return None
    return Snapshot(
        label=SnapshotLabel(found.agent, found.reason, found.at, found.cycle, found.launch),
        number=found.number,
        head=found.head,
        branch=found.branch,
        worktree=found.worktree,
        left_out=found.left_out,
        more_left_out=found.more_left_out,
        other=found.other,
        commit=commit,
        tree=tree,
    )


def describe_occasion(label: SnapshotLabel) -> str:
    """Describe when a snapshot was taken, such as `cycle 3, start`."""
    words = {
        "start": "start",
        "handoff": "handoff",
        "end": "end",
        "rewind": "before a rewind",
        "export": "export",
    }[label.reason]
    return f"cycle {label.cycle}, {words}" if label.cycle else words


def find_newest(
    snapshots: Sequence[Snapshot], agent: str, worktree: str, *reasons: SnapshotReason
) -> Snapshot | None:
    """Return an agent's newest snapshot of a work tree, optionally limited to certain reasons."""
    fitting = [
        one
        for one in snapshots
        if (one.label.agent, one.worktree) == (agent, worktree)
        and (not reasons or one.label.reason in reasons)
    ]
    return max(fitting, key=lambda one: one.number, default=None)
