"""Take, list, compare and restore snapshots of a work tree.

A snapshot is a commit under `refs/rekindle/`. Taking one does not change the user's index, HEAD,
branches or stash. Git runs with Rekindle's own configuration, so an agent cannot make it run a
program.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from rekindle.documents.clone_files import make_work_branch
from rekindle.documents.commits import snapshot_commit as document
from rekindle.documents.commits.snapshot_commit import (
    LeftOutFile,
    SavedBranch,
    Snapshot,
    SnapshotLabel,
)
from rekindle.errors import WorkspaceError
from rekindle.policy.snapshots.retention import choose_expired
from rekindle.system.git import own_configuration
from rekindle.system.git.kept_index import CapturedFiles, KeptIndex
from rekindle.system.git.path_obstacle import find_obstacle
from rekindle.system.git.tree_snapshot import (
    OWN_FOLDER,
    HeadPosition,
    WorkingCopy,
)
from rekindle.thresholds.storage import (
    REWIND_SECONDS,
    SNAPSHOT_FILE_BYTES,
    SNAPSHOT_NAMES,
    SNAPSHOT_SECONDS,
)

_FIELDS = "%(refname)%00%(objectname)%00%(tree)%00%(contents)%00"
_PLAIN_DIFF = ("--no-ext-diff", "--no-textconv", "--no-renames", "--no-color")
_NEST_MODE = b"160000"


class Unrestored(msgspec.Struct, frozen=True):
    """Paths that a rewind does not restore."""

    left_out: tuple[LeftOutFile, ...]
    """Paths that are missing from the snapshot or from the capture of the current state."""
    repositories: tuple[str, ...]
    """Submodules and nested repositories. Only their commits are known."""
    ignored: tuple[str, ...]
    """Ignored files and folders, which are not changed."""


class WorkSnapshots:
    """The snapshots of the work tree that contains a folder."""

    def __init__(
        self,
        folder: Path,
        *,
        seconds: float = SNAPSHOT_SECONDS,
        file_bytes: int = SNAPSHOT_FILE_BYTES,
    ) -> None:
        """Find the work tree. Every git call must end within `seconds` of this call.

        Raises:
            WorkspaceError: The folder is not in a repository, or git is not installed.
        """
        top = own_configuration.find_top(folder)
        if top is None:
            reason = f"{folder} is not in a git repository"
            raise WorkspaceError("outside", reason, hint="create one: git init")
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self.top = top
        self._copy = WorkingCopy(top, converts=False, timeout=self._left)
        self._kept = KeptIndex(self._copy, file_bytes)
        is_main = self._copy.git_folder == self._copy.common_folder
        self.worktree = "" if is_main else self._copy.git_folder.name

    def _left(self) -> float:
        """Return the remaining seconds.

        Raises:
            WorkspaceError: No time is left.
        """
        left = self._deadline - time.monotonic()
        if left > 0:
            return left
        reason = f"a snapshot took longer than {self._seconds:g} s"
        raise WorkspaceError("slow", reason, hint="the next cycle tries again")

    def list(self) -> list[Snapshot]:
        """Return the snapshots in the repository, by agent and number."""
        fields = self._copy.call("for-each-ref", f"--format={_FIELDS}", document.PREFIX).split(
            b"\0"
        )
        found = []
        for start in range(0, len(fields) - 4, 4):
            ref, commit, tree, message = (
                field.decode(errors="replace") for field in fields[start : start + 4]
            )
            if snapshot := document.parse(ref.strip(), commit, tree, message):
                found.append(snapshot)
        return sorted(found, key=lambda one: (one.label.agent, one.number))

    def take(self, label: SnapshotLabel, *, reuse: bool = False) -> tuple[Snapshot, bool]:
        """Take a snapshot and remove expired ones. Return the snapshot and whether it is new.

        With `reuse`, the agent's newest snapshot is returned if nothing has changed since.
        """
        with self._kept.hold(self._left()):
            listed = self.list()
            content = self._kept.capture({one.tree for one in listed})
            here = self._copy.read_head()
            last = self._find_same(listed, label.agent, content, here) if reuse else None
            if last:
                return last, False
            snapshot = self._store(label, content, listed, here)
            ours = [one for one in (*listed, snapshot) if one.label.agent == label.agent]
            with suppress(WorkspaceError):  # retried with the next snapshot
                self.remove(choose_expired(ours, label.at))
            return snapshot, True

    def capture_tree(self) -> str:
        """Return the tree of the current state, without taking a snapshot."""
        with self._kept.hold(self._left()):
            return self._kept.capture({one.tree for one in self.list()}, keep=False).tree

    def compare(self, before: str, after: str, *, stat: bool) -> str:
        """Return the difference between two trees, as a patch or as a list of files."""
        how = ("--stat=100", "--summary") if stat else ("-p",)
        query = ("diff-tree", "-r", *how, *_PLAIN_DIFF, before, after)
        return self._copy.call(*query).decode(errors="replace")

    def count_commits(self, after: str, before: str) -> int:
        """Return the number of commits that are in `before` but not in `after`."""
        if not before:
            return 0
        without = (f"^{after}",) if after else ()
        return int(self._copy.call("rev-list", "--count", before, *without, "--"))

    def read_head(self) -> HeadPosition:
        return self._copy.read_head()

    def list_unrestored(self, target: Snapshot, now: Snapshot) -> Unrestored:
        left_out = {one.path: one for one in (*target.left_out, *now.left_out)}
        query = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        ignored = self._copy.call(*query, index=self._kept.index).split(b"\0")[:-1]
        entries = [
            entry
            for tree in (target.tree, now.tree)
            for entry in self._copy.call("ls-tree", "-r", "-z", tree).split(b"\0")
        ]
        nested = {_show(entry.partition(b"\t")[2]) for entry in entries if _is_nested(entry)}
        return Unrestored(
            tuple(left_out.values()),
            tuple(sorted(nested)),
            tuple(_show(name) for name in ignored if OWN_FOLDER.encode() not in name.split(b"/")),
        )

    @contextmanager
    def hold(self) -> Iterator["Rewind"]:
        """Hold the snapshot lock, and yield an object that can restore a snapshot."""
        with self._kept.hold(self._left()):
            yield Rewind(self, self._copy, self._kept)

    def remove(self, snapshots: Sequence[Snapshot]) -> None:
        """Remove snapshots, unless they were replaced since they were listed."""
        if snapshots:
            refs = [(document.make_ref(one.label.agent, one.number), one) for one in snapshots]
            self._copy.refuse_link(*(ref for ref, _ in refs))
            lines = "".join(f"delete {ref} {one.commit}\n" for ref, one in refs)
            self._copy.call("update-ref", "--no-deref", "--stdin", stdin=lines.encode())

    def store(
        self, label: SnapshotLabel, content: CapturedFiles, other: SavedBranch | None = None
    ) -> Snapshot:
        """Store a work tree as a snapshot, or reuse the newest one if it is the same."""
        listed, here = self.list(), self._copy.read_head()
        last = self._find_same(listed, label.agent, content, here)
        if last and not (other and other.name):
            return last
        return self._store(label, content, listed, here, other or SavedBranch())

    def pack(self, snapshot: Snapshot, file: IO[bytes]) -> str:
        """Write all files of a snapshot to a pack, without history. Return the pack's commit."""
        commit = self._copy.commit(snapshot.tree, (), document.render(snapshot))
        query = ("pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset")
        self._copy.call(*query, stdin=f"{commit}\n".encode(), stdout=file)
        return commit

    def unpack(self, file: IO[bytes], name: str, commit: str) -> Snapshot:
        """Write the objects of a pack, without a ref, and return the snapshot in it.

        Raises:
            WorkspaceError: The pack does not contain the snapshot.
        """
        self._copy.call("unpack-objects", "-q", "--strict", stdin=file)
        if self._copy.has(commit):
            tree, message = self._copy.find_tree(commit), self._copy.message(commit)
            if found := document.parse(f"{document.PREFIX}{name}", commit, tree, message):
                return found
        raise WorkspaceError(
            "refused", f"there is no snapshot {name} in the pack", hint="export the agent again"
        )

    def add(self, moved: Snapshot) -> Snapshot:
        """Add a snapshot of another repository, with the agent's next number here.

        If this repository does not have the snapshot's commit, the snapshot gets the current HEAD.
        """
        with self._kept.hold(self._left()):
            listed, here = self.list(), self._copy.read_head()
            for one in listed:
                if (one.label, one.tree) == (moved.label, moved.tree):
                    return one
            if moved.head and self._is_complete(moved.head):
                here = HeadPosition(moved.head, moved.branch)
                self._add_work_branch(moved)
            change = msgspec.structs.replace
            return self._write(
                change(
                    moved,
                    head=here.head,
                    branch=here.branch,
                    worktree=self.worktree,
                    other=SavedBranch(),
                ),
                listed,
            )

    def _add_work_branch(self, moved: Snapshot) -> None:
        """Create the branch of an agent with its own clone, which will continue from there."""
        ref = f"refs/heads/{make_work_branch(moved.label.agent)}"
        if ref == f"refs/heads/{moved.branch}" and self._copy.find_ref(ref) is None:
            self._copy.move(ref, moved.head)

    def _is_complete(self, commit: str) -> bool:
        """Return whether a commit is here with its history, which a ref guarantees."""
        return self._copy.has(commit) and self._copy.is_kept((commit,), by=("--all",))

    def _find_same(
        self, listed: Sequence[Snapshot], agent: str, content: CapturedFiles, here: HeadPosition
    ) -> Snapshot | None:
        """Return the agent's newest snapshot if nothing has changed since."""
        last = document.find_newest(listed, agent, self.worktree)
        state = (content.tree, here.head, here.branch)
        return last if last and (last.tree, *last.position) == state else None

    def _store(
        self,
        label: SnapshotLabel,
        content: CapturedFiles,
        listed: Sequence[Snapshot],
        here: HeadPosition,
        other: SavedBranch = SavedBranch(),  # noqa: B008 - frozen
    ) -> Snapshot:
        names = list(content.left_out.items())
        snapshot = Snapshot(
            label=label,
            number=0,
            head=here.head,
            branch=here.branch,
            worktree=self.worktree,
            left_out=tuple(LeftOutFile(_show(name), why) for name, why in names[:SNAPSHOT_NAMES]),
            more_left_out=max(len(names) - SNAPSHOT_NAMES, 0),
            other=other,
            tree=content.tree,
        )
        return self._write(snapshot, listed)

    def _write(self, snapshot: Snapshot, listed: Sequence[Snapshot]) -> Snapshot:
        """Write a snapshot with the agent's next number."""
        agent = snapshot.label.agent
        numbers = [one.number for one in listed if one.label.agent == agent]
        snapshot = msgspec.structs.replace(snapshot, number=max(numbers, default=0) + 1)
        parents = (snapshot.head, snapshot.other.head)
        commit = self._copy.commit(snapshot.tree, parents, document.render(snapshot))
        ref = document.make_ref(agent, snapshot.number)
        self._copy.refuse_link(ref)
        self._copy.call("update-ref", "--no-deref", ref, commit, "0" * len(commit))
        return msgspec.structs.replace(snapshot, commit=commit)


class Rewind:
    """Restores a snapshot. If the process is killed, a second call finishes the work."""

    def __init__(self, snapshots: WorkSnapshots, copy: WorkingCopy, kept: KeptIndex) -> None:
        self._snapshots, self._copy, self._kept = snapshots, copy, kept
        self.target_tree = ""

    def save(self, label: SnapshotLabel, target: Snapshot) -> Snapshot:
        """Take a snapshot of the current state, including everything that the rewind would replace.

        This includes ignored files that are in the way, and the commits of the branch that the
        rewind moves.
        """
        self.target_tree = self._copy.strip_own_folder(target.tree)
        self._refuse_branch_elsewhere(target.branch)
        here = self._copy.read_head()
        content = self._kept.capture({one.tree for one in self._snapshots.list()})
        content = self._cover(content)
        other = SavedBranch()
        if target.branch and target.branch != here.branch:
            tip = self._copy.find_ref(f"refs/heads/{target.branch}")
            other = SavedBranch(target.branch, tip.oid if tip else "")
        return self._snapshots.store(label, content, other)

    def is_needed(self, target: Snapshot, saved: Snapshot) -> bool:
        """Return whether the current state differs from the target."""
        is_there = (saved.tree, *saved.position) == (self.target_tree, *target.position)
        return not is_there or self._is_to_move(target.other, saved)

    def restore(self, target: Snapshot, saved: Snapshot) -> None:
        """Restore the work tree, HEAD and the branch. `saved` is the current state.

        The user's index is set first and HEAD last. If the process is killed halfway, the next
        attempt still sees a difference.
        """
        plain = WorkingCopy(self._copy.folder, timeout=lambda: REWIND_SECONDS)
        plain.sweep()
        plain.reset_index(target.head)
        with self._kept.work_on_copy() as index:
            self._copy.call("read-tree", "-m", "-u", saved.tree, self.target_tree, index=index)
            self._kept.install(index, CapturedFiles(self.target_tree, {}))
        if self._is_to_move(target.other, saved):
            plain.move(f"refs/heads/{target.other.name}", target.other.head)
        plain.set_head(HeadPosition(target.head, target.branch))
        plain.refresh()

    def _cover(self, content: CapturedFiles) -> CapturedFiles:
        """Also capture other files that the target's files would overwrite."""
        query = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A")
        added = self._copy.call(*query, content.tree, self.target_tree).split(b"\0")[:-1]
        folder = self._copy.folder
        in_the_way = {find_obstacle(folder, os.fsdecode(name)) for name in added} - {""}
        if not in_the_way:
            return content
        with self._kept.work_on_copy() as index:
            specs = "\0".join(f":(top,literal){name}" for name in sorted(in_the_way))
            listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self._copy.call("add", "-A", "-f", *listed, stdin=os.fsencode(specs), index=index)
            tree = os.fsdecode(self._copy.call("write-tree", index=index)).strip()
            covered = CapturedFiles(tree, content.left_out)
            self._kept.install(index, covered)
        return covered

    def _is_to_move(self, branch: SavedBranch, saved: Snapshot) -> bool:
        """Return whether the rewind restores a branch, which it does only if no commit is lost."""
        if not branch.head:
            return False
        tip = self._copy.find_ref(f"refs/heads/{branch.name}")
        if tip is None or tip.oid == branch.head:
            return tip is None
        return self._copy.is_kept((tip.oid,), by=(branch.head, saved.head, saved.other.head))

    def _refuse_branch_elsewhere(self, branch: str) -> None:
        """Raise WorkspaceError if another work tree has the target's branch checked out."""
        if shown := self._copy.find_checkout(branch):
            raise WorkspaceError(
                "elsewhere",
                f"the rewind moves the branch {branch}, which is checked out in {shown}",
                hint="check out another branch there with `git switch`",
            )


def _is_nested(entry: bytes) -> bool:
    return entry.startswith(_NEST_MODE)


def _show(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
