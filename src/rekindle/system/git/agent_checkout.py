"""Create an agent's own clone or work tree of the user's repository.

A clone reads the objects of the user's repository in place, so creating one copies only the files
of the work tree. Its git folder is written file by file: git itself is started only to check out
the files.
"""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from rekindle.documents import clone_files
from rekindle.documents.commits.snapshot_commit import Snapshot
from rekindle.errors import RekindleError, WorkspaceError, translate_os_errors
from rekindle.system.files import durable_files
from rekindle.system.git import own_configuration
from rekindle.system.git.repository import Repository
from rekindle.system.git.tree_snapshot import HeadPosition, WorkingCopy
from rekindle.system.git.work_snapshots import WorkSnapshots
from rekindle.system.remove_folder import remove_folder
from rekindle.thresholds.storage import WORKTREE_CALL_SECONDS

CheckoutKind = Literal["clone", "worktree"]
HALF_MADE = ".new-"
"""Part of a folder's name while a checkout is being created in it."""
_POINTER = "gitdir: "
_LOCK_REASON = "an agent of Rekindle works here; remove it with `rekindle clean`\n"


class NewCheckout(msgspec.Struct, frozen=True):
    """A newly created clone or work tree."""

    base: str
    """Commit that the checkout starts from."""
    moved: str = ""
    """Where a broken checkout was moved to make room; empty if there was none."""


class AgentCheckout:
    """An agent's clone or work tree, and the user's repository that it belongs to."""

    def __init__(self, repository: Path, folder: Path, agent: str, kind: CheckoutKind) -> None:
        self.repository, self.folder, self.agent, self.kind = repository, folder, agent, kind
        self.branch = clone_files.make_work_branch(agent)

    def create(self) -> str:
        """Create the checkout, whose folder must not exist. Return the commit that it starts from.

        The checkout continues from the agent's branch, or from the last snapshot if there are no
        newer commits. Without a branch, it starts from the user's HEAD.

        Raises:
            WorkspaceError: There is no commit yet, or git failed.
        """
        # If this process is killed, its git may keep running for a while. Each attempt uses its own
        # folder, so that a leftover git cannot write into the next attempt's folder.
        name = f"{self.folder.name}{HALF_MADE}{secrets.token_hex(4)}"
        attempt = AgentCheckout(self.repository, self.folder.with_name(name), self.agent, self.kind)
        commit = attempt.fill()
        with translate_os_errors(self.folder):
            if self.kind == "worktree":
                registration = Path((attempt.folder / ".git").read_text()[len(_POINTER) : -1])
                _write_back_pointer(registration, self.folder)
            attempt.folder.rename(self.folder)
        attempt.forget_configuration()
        return commit

    def fill(self) -> str:
        """Write the repository and check out the files. Return the commit."""
        source = WorkingCopy(self.repository)
        commit = self._make_branch(source)
        with translate_os_errors(self.folder):
            if self.kind == "clone":
                self._write_clone(source)
            else:
                self._write_worktree(source)
        copy = WorkingCopy(self.folder)
        copy.call("read-tree", "--reset", "-u", commit)
        self._restore_snapshot(commit)
        copy.refresh()
        return commit

    def is_sound(self) -> bool:
        """Return whether git accepts the folder as a repository with a commit."""
        try:
            return bool(WorkingCopy(self.folder).read_head().head)
        except WorkspaceError as error:
            if error.cause != "refused":
                raise
            return False

    def update(self) -> str:
        """Bring in the user's branches. Return the new HEAD if the work tree was moved, or "".

        A work tree in which the agent has changed nothing follows the user's HEAD.
        """
        source, copy = WorkingCopy(self.repository), WorkingCopy(self.folder)
        if self.kind == "clone":
            self._update_project_refs(source, copy)
        here, target = copy.read_head(), source.read_head().head
        if not target or target == here.head or here.branch != self.branch:
            return ""
        if not copy.has(target) or not copy.is_kept((here.head,), by=(target,)):
            return ""
        with copy.capture() as captured:
            if captured.tree != copy.find_tree(here.head):
                return ""
            tree = copy.find_tree(target)
            captured.cover(tree)
            if captured.tree != copy.find_tree(here.head):
                return ""  # an ignored file is in the way
            captured.put(tree, target)
        copy.set_head(HeadPosition(target, self.branch))
        copy.refresh()
        return target

    def repair(self) -> None:
        """Point the checkout to the user's repository again if one of them was moved."""
        with translate_os_errors(self.folder):
            if self.kind == "clone":
                self._repair_clone()
            else:
                self._repair_worktree()

    def clean_up(self) -> None:
        """Remove half-created folders, and a work tree's registration in the user's repository.

        If the git of a killed process is still writing to a folder, a later call removes that
        folder.
        """
        for leftover in self.folder.parent.glob(f"{self.folder.name}{HALF_MADE}*"):
            with suppress(RekindleError):
                remove_folder(leftover)
        registrations = WorkingCopy(self.repository).common_folder / "worktrees"
        for registration in registrations.glob(f"rekindle-{self.agent}.*"):
            with suppress(RekindleError):
                remove_folder(registration)
        self.forget_configuration()

    def forget_configuration(self) -> None:
        """Remove Rekindle's own git configuration for this checkout."""
        for configuration in own_configuration.list_configurations(self.folder):
            remove_folder(configuration)

    def find_missing(self) -> Path | None:
        """Return a folder that the checkout needs but that does not exist, or None."""
        name = "objects/info/alternates" if self.folder.joinpath(".git").is_dir() else ""
        data = durable_files.read_bytes(self.folder / ".git" / name) or b""
        named = Path(os.fsdecode(data.removeprefix(_POINTER.encode()).partition(b"\n")[0]))
        return named if named.is_absolute() and not named.is_dir() else None

    def _repair_worktree(self) -> None:
        pointer = durable_files.read_bytes(self.folder / ".git") or b""
        name = Path(os.fsdecode(pointer).strip()).name
        registration = WorkingCopy(self.repository).common_folder / "worktrees" / name
        if not name.startswith(f"rekindle-{self.agent}.") or not registration.is_dir():
            return  # `is_sound` reports this
        _write_pointer(self.folder, registration)
        _write_back_pointer(registration, self.folder)

    def _repair_clone(self) -> None:
        if self.find_missing() is None:
            return
        source, copy = WorkingCopy(self.repository), WorkingCopy(self.folder)
        copy.refuse_link()
        durable_files.replace_file(
            copy.objects / "info/alternates", os.fsencode(source.objects) + b"\n", root=self.folder
        )
        config = copy.git_folder / "config"
        if config.is_file() and not config.is_symlink():
            name = f"remote.{clone_files.PROJECT_REMOTE}.url"
            copy.call("config", "--file", str(config), name, str(self.repository))

    def _make_branch(self, source: WorkingCopy) -> str:
        """Create the agent's branch in the user's repository if it is missing."""
        ref = f"refs/heads/{self.branch}"
        if existing := source.find_ref(ref):
            return existing.oid
        head = source.read_head().head
        if not head:
            raise WorkspaceError(
                "unborn",
                f"{self.repository} has no commit yet, so there is nothing to clone",
                hint="commit your files first: git add -A && git commit",
            )
        source.refuse_link(ref)
        source.call("update-ref", "--no-deref", ref, head, "0" * len(head))
        return head

    def _write_clone(self, source: WorkingCopy) -> None:
        git = self.folder / ".git"
        # A sandbox makes `hooks` read-only, but only if it exists.
        for name in ("objects/info", "objects/pack", "refs/heads", "info", "hooks"):
            (git / name).mkdir(parents=True)
        refs = clone_files.parse_refs(os.fsdecode(source.refs()))
        settings = Repository(self.repository, timeout=WORKTREE_CALL_SECONDS).look(
            "config", "--null", "--local", "--list"
        )
        config = clone_files.render_config(
            clone_files.parse_settings(settings), str(self.repository), source.object_format
        )
        (git / "objects/info/alternates").write_bytes(os.fsencode(source.objects) + b"\n")
        (git / "config").write_bytes(os.fsencode(config))
        selected = clone_files.select_clone_refs(refs, self.agent)
        (git / "packed-refs").write_bytes(os.fsencode(clone_files.render_refs(selected)))
        for name in ("shallow", "info/exclude"):
            if (source.common_folder / name).is_file():
                shutil.copyfile(source.common_folder / name, git / name)
        (git / "HEAD").write_text(f"ref: refs/heads/{self.branch}\n")

    def _write_worktree(self, source: WorkingCopy) -> None:
        name = f"rekindle-{self.agent}.{secrets.token_hex(4)}"
        registration = source.common_folder / "worktrees" / name
        registration.mkdir(parents=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        # Locked, so that `git worktree prune` and other tools leave it alone.
        (registration / "locked").write_text(_LOCK_REASON)
        (registration / "commondir").write_text("../..\n")
        _write_back_pointer(registration, self.folder)
        (registration / "HEAD").write_text(f"ref: refs/heads/{self.branch}\n")
        _write_pointer(self.folder, registration)

    def _restore_snapshot(self, commit: str) -> None:
        """Restore the files of the newest snapshot, unless commits were added after it."""
        snapshots = WorkSnapshots(self.folder)
        newest = _find_newest(snapshots.list(), self.agent)
        if newest is not None and newest.head == commit:
            # A snapshot contains each file exactly as it was on disk.
            copy = WorkingCopy(self.folder, converts=False)
            with copy.capture() as captured:
                captured.put(copy.strip_own_folder(newest.tree), commit)

    def _update_project_refs(self, source: WorkingCopy, copy: WorkingCopy) -> None:
        theirs = clone_files.parse_refs(os.fsdecode(source.refs()))
        wanted = clone_files.select_project_refs(theirs)
        prefix = f"refs/remotes/{clone_files.PROJECT_REMOTE}/"
        present = {
            name: commit
            for name, commit in clone_files.parse_refs(os.fsdecode(copy.refs())).items()
            if name.startswith(prefix)
        }
        lines = [f"delete {name}" for name in present if name not in wanted]
        lines += [
            f"update {name} {commit}"
            for name, commit in wanted.items()
            if present.get(name) != commit
        ]
        if lines:
            copy.refuse_link(*wanted)
            stdin = os.fsencode("".join(f"{line}\n" for line in lines))
            copy.call("update-ref", "--no-deref", "--stdin", stdin=stdin)


def _write_back_pointer(registration: Path, folder: Path) -> None:
    """Write the path of a work tree to its registration."""
    _replace_changed(registration / "gitdir", os.fsencode(folder / ".git") + b"\n")


def _write_pointer(folder: Path, registration: Path) -> None:
    """Write the path of a work tree's registration to the work tree."""
    _replace_changed(folder / ".git", os.fsencode(f"{_POINTER}{registration}\n"))


def _replace_changed(path: Path, data: bytes) -> None:
    if durable_files.read_bytes(path) != data:
        durable_files.replace_file(path, data)


def _find_newest(snapshots: list[Snapshot], agent: str) -> Snapshot | None:
    ours = [snapshot for snapshot in snapshots if snapshot.label.agent == agent]
    return max(ours, key=lambda snapshot: snapshot.number, default=None)
