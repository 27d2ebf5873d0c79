"""Move the files of an agent to another repository, as a snapshot without history."""

import tempfile
from collections.abc import Iterable

import msgspec

from rekindle.config import Project
from rekindle.documents.agent_export import ExportedSnapshot
from rekindle.documents.commits.snapshot_commit import Snapshot, SnapshotLabel, find_newest
from rekindle.errors import WorkspaceError
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.wiring import open_snapshots
from rekindle.wiring.agent_workspaces import find_workspace

_WITHOUT = "leave the files out with --no-snapshot"


class AddedSnapshot(msgspec.Struct, frozen=True):
    name: str
    missing: str
    """Commit of the agent that the repository does not have; empty if there is none."""
    is_automatic: bool
    """Whether the agent gets its own checkout, which will start with these files."""


def pack_snapshot(project: Project, name: str, known: Projection) -> tuple[ExportedSnapshot, bytes]:
    """Take a snapshot of an agent's work tree, and return it as a pack.

    Raises:
        WorkspaceError: There is no snapshot, or git fails.
    """
    opened = open_snapshots.make_place(project, name).open()
    if project.settings.runtime.snapshots.take:
        label = SnapshotLabel(name, "export", clock.read_clock(), known.cycle)
        snapshot, _ = opened.take(label)
    else:
        newest = find_newest(opened.list(), name, opened.worktree)
        if newest is None:
            reason = "rekindle.yaml has `snapshots: {take: false}`, and there is no earlier one"
            raise WorkspaceError("off", reason, hint="copy the files yourself")
        snapshot = newest
    with tempfile.TemporaryFile() as file:
        commit = opened.pack(snapshot, file)
        file.seek(0)
        return ExportedSnapshot(snapshot.name, commit), file.read()


def open_repository(project: Project, name: str) -> WorkSnapshots:
    """Return the repository in which an imported agent will work.

    Raises:
        WorkspaceError: There is none.
    """
    try:
        return open_snapshots.make_place(project, name).open()
    except WorkspaceError as error:
        reason = f"{error.reason}, so the files of {name} cannot be kept here"
        hint = f"create a repository with `git init`, or {_WITHOUT}"
        raise WorkspaceError(error.cause, reason, hint=hint) from error


def unpack_snapshot(
    place: WorkSnapshots, exported: ExportedSnapshot, pieces: Iterable[bytes]
) -> Snapshot:
    """Write the objects of an exported snapshot, without a ref.

    Raises:
        WorkspaceError: The pack is not what `pack_snapshot` wrote.
    """
    with tempfile.TemporaryFile() as file:
        file.writelines(pieces)
        file.seek(0)
        try:
            return place.unpack(file, exported.name, exported.commit)
        except WorkspaceError as error:
            reason = f"git cannot read the files of the agent ({error.reason})"
            hint = f"export the agent again, or {_WITHOUT}"
            raise WorkspaceError(error.cause, reason, hint=hint) from error


def add_snapshot(project: Project, place: WorkSnapshots, moved: Snapshot) -> AddedSnapshot:
    """Add an unpacked snapshot, so that `rekindle rewind` can restore it."""
    added = place.add(moved)
    return AddedSnapshot(
        added.name,
        missing="" if added.head == moved.head else moved.head,
        is_automatic=find_workspace(project, moved.label.agent) is not None,
    )
