"""Share one copy of a remote's commits among all clones of that remote on a host.

The mirror is a bare repository with the remote's branches, except those of agents. Each clone reads
the mirror's objects through `objects/info/alternates`, and stores only its own. Nothing is ever
removed from a mirror, because a clone may need it. Everything in a mirror can be fetched again: an
agent's commits are in its clone and on the remote, never only here.

Mirrors are complete, not partial: Rekindle's git does not fetch objects on demand, and an agent in
a sandbox may not be able to.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rekindle.documents import clone_files
from rekindle.documents.commits.work_commit import strip_user
from rekindle.errors import WorkspaceError, translate_os_errors
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.settings.runtime_settings import WORKSPACE_TRANSFER_SECONDS
from rekindle.system.files import durable_files, file_locks
from rekindle.system.git.push_queue import PushQueue
from rekindle.system.git.remote_repository import RemoteRepository, RemoteState
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.thresholds.storage import MIRROR_FRESH_SECONDS

MIRRORS = "mirrors"
"""Name of the folder with a host's mirrors."""
_FILE = "info/alternates"
_ARRIVING, _REMOVED = ".arriving", ".removed"


class SharedMirror:
    """A host's mirror of one remote. Remotes never share a mirror."""

    def __init__(self, mirrors: Path, url: str) -> None:
        self._url, self._remote = url, RemoteRepository(url, "")
        self.folder = find_mirror(mirrors, url)

    def clone(self, folder: Path, state: RemoteState) -> None:
        """Make a folder a clone atomically, without checking out any files.

        A folder that already is a repository is not changed.
        """
        half_made = folder.with_name(f".{folder.name}.arriving")
        with translate_os_errors(folder):
            # If an earlier clone was killed, remove its leftovers and start again.
            if half_made.exists():
                shutil.rmtree(half_made)
            if (folder / ".git").exists():
                return
            folder.mkdir(parents=True, exist_ok=True)
            self.update(state.head)
            self._write_clone(half_made, state)
            durable_files.rename_durably(half_made / ".git", folder / ".git")
            durable_files.sync_folder(folder)
            half_made.rmdir()

    def update(self, commit: str = "") -> None:
        """Create the mirror, or fetch the remote's branches if the mirror lacks a commit.

        Without a commit, or if it is empty, a mirror that was just fetched is current. Several
        agents that need the same commit wait for one fetch.
        """
        with self._hold():
            if not self._exists():
                self._create()
            elif not (self._is_fresh() and (not commit or self._has(commit))):
                self._remote.fetch_branches(self.folder)

    def serves(self, copy: WorkingCopy) -> bool:
        """Return whether a clone reads the mirror's objects.

        Clones from earlier versions have all objects themselves.

        Raises:
            WorkspaceError: The agent made its clone read objects from elsewhere. A push could
                publish the commits of another repository.
        """
        named = _read_alternates(copy.objects)
        if named in {b"", self._alternates}:
            return bool(named)
        path = copy.objects / _FILE
        raise WorkspaceError(
            "linked",
            f"{path} points outside the repository, and Rekindle does not push from there",
            hint=f"run: git -C {copy.folder} repack -a -d && rm {path}",
        )

    def supply(self, copy: WorkingCopy, commit: str) -> None:
        """Fetch a commit of the remote's branches for a clone that lacks it."""
        if commit and self.serves(copy) and not copy.has(commit):
            with self._hold():
                if self._exists() and not self._has(commit):
                    self._remote.fetch_branches(self.folder)

    def restore(self, copy: WorkingCopy, *refs: str) -> None:
        """Replace a missing or damaged mirror, and fetch what the clone still lacks from `refs`.

        The remote's branches may no longer contain commits that the clone read from the mirror. If
        the remote's URL has changed, the clone reads from another mirror now.
        """
        named = _read_alternates(copy.objects)
        if not named:
            return
        if not self._exists():
            self.update()
        if named != self._alternates:
            copy.refuse_link()
            durable_files.replace_file(copy.objects / _FILE, self._alternates, root=copy.folder)
        if _is_connected(copy):
            return
        self.replace_damaged()
        if not _is_connected(copy):
            self._remote.fetch(copy, *refs, again=True)

    def replace_damaged(self) -> bool:
        """Create the mirror again if it is damaged. Return whether it was."""
        with self._hold():
            if self._exists() and self._remote.is_sound(self.folder):
                return False
            self._create()
        return True

    def is_missing(self, folder: Path) -> bool:
        """Return whether a clone reads from a mirror that is missing, or from another one."""
        named = _read_alternates(folder / ".git/objects")
        return bool(named) and not (named == self._alternates and self._exists())

    @property
    def _alternates(self) -> bytes:
        return os.fsencode(self.folder / "objects") + b"\n"

    @contextmanager
    def _hold(self) -> Iterator[None]:
        for above in (self.folder.parent.parent, self.folder.parent):
            if not above.exists():
                durable_files.make_folder(above)
        lock_file = self.folder.with_suffix(".lock")
        with file_locks.hold_lock(lock_file, WORKSPACE_TRANSFER_SECONDS) as lock:
            if lock is None:
                raise WorkspaceError(
                    "busy",
                    "another process on this host is still fetching from the remote",
                    hint="Rekindle will retry later",
                )
            yield

    def _exists(self) -> bool:
        return (self.folder / "HEAD").exists() and (self.folder / "objects/pack").exists()

    def _is_fresh(self) -> bool:
        with suppress(FileNotFoundError):
            age = time.time() - (self.folder / "FETCH_HEAD").stat().st_mtime
            return 0 <= age < MIRROR_FRESH_SECONDS
        return False

    def _has(self, commit: str) -> bool:
        return self._remote.has_commit(self.folder, commit)

    def _create(self) -> None:
        """Clone the remote, and put the result in place of a missing or damaged mirror."""
        arriving, removed = (self.folder.with_suffix(one) for one in (_ARRIVING, _REMOVED))
        with translate_os_errors(self.folder):
            for leftover in (arriving, removed):
                if leftover.exists():
                    shutil.rmtree(leftover)
            self._remote.clone_branches(arriving)
            if self.folder.exists():
                durable_files.rename_durably(self.folder, removed)
            durable_files.rename_durably(arriving, self.folder)
            shutil.rmtree(removed, ignore_errors=True)

    def _write_clone(self, folder: Path, state: RemoteState) -> None:
        refs = self._remote.read_refs(self.folder)
        default = (self.folder / "HEAD").read_text().strip().removeprefix("ref: refs/heads/")
        branch = state.branch or default
        self._remote.init(folder, like=self.folder, branch=branch)
        git = folder / ".git"
        # A sandbox makes `hooks` read-only, but only if it exists.
        for name in ("hooks", "info", "objects/info", "refs/remotes/origin"):
            (git / name).mkdir(parents=True, exist_ok=True)
        own = clone_files.select_remote_refs(refs)
        if state.branch and state.head and self._has(state.head):
            own[f"refs/heads/{branch}"] = state.head
        (git / "packed-refs").write_bytes(os.fsencode(clone_files.render_refs(own)))
        if state.branch:
            head = f"ref: refs/remotes/origin/{branch}\n"
            (git / "refs/remotes/origin/HEAD").write_text(head)
        with (git / "config").open("ab") as config:
            config.write(os.fsencode(clone_files.render_remote(strip_user(self._url), branch)))
        (git / "objects" / _FILE).write_bytes(self._alternates)


def find_mirror(mirrors: Path, url: str) -> Path:
    """Return the folder of a remote's mirror. Each URL has its own."""
    return mirrors / hash_bytes(url.encode())


def open_queue(mirrors: Path, url: str, per_minute: int) -> PushQueue:
    """Return the host's queue of pushes to a remote."""
    return PushQueue(find_mirror(mirrors, url).with_suffix(".pushes"), per_minute)


def _read_alternates(objects: Path) -> bytes:
    """Return the list of other folders from which a repository reads objects."""
    return (durable_files.read_bytes(objects / _FILE) or b"").lstrip()


def _is_connected(copy: WorkingCopy) -> bool:
    """Return whether every object that the refs need exists, except those that a mirror needs."""
    command = ("rev-list", "--objects", "--quiet", "--all", "--not", "--alternate-refs")
    return copy.ask(*command).code == 0
