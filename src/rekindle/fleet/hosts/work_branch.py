"""Push a fleet agent's workspace, and restore it on the host that continues.

Each push is a snapshot on the branch `rekindle/<agent>/work`, made with git's --force-with-lease on
the previous snapshot. A host that takes over the agent first claims the branch with its own commit.
From then on, git refuses pushes from the previous owner.

Submodules and nested repositories are pushed only as a commit id, and LFS files as they are on
disk.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from rekindle.documents.commits import work_commit as document
from rekindle.documents.commits.work_commit import PushedWork, WorkSnapshot
from rekindle.errors import AuditError, StalePushError, WorkspaceError
from rekindle.fleet.hosts import snapshot_chain
from rekindle.fleet.hosts.secret_search import SecretSearch
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.settings.runtime_settings import WORKSPACE_TRIES, WORKTREE_CALL_SECONDS
from rekindle.system.git.push_queue import PushQueue
from rekindle.system.git.remote_repository import RemoteRepository, RemoteState
from rekindle.system.git.repository import Repository
from rekindle.system.git.shared_mirror import MIRRORS, SharedMirror
from rekindle.system.git.tree_snapshot import (
    OWN_FOLDER,
    CapturedTree,
    HeadPosition,
    RefCommit,
    WorkingCopy,
)

_BRANCH = "main"
"""Name of the agent's branch if the remote has no default branch."""


class WorkBranch:
    """One agent's workspace on one host, for one generation."""

    def __init__(
        self,
        folder: Path,
        *,
        remote: str,
        agent: str,
        generation: int,
        host: str,
        mirrors: Path | None = None,
        queue: PushQueue | None = None,
        search: SecretSearch | None = None,
        base: str = "",
    ) -> None:
        """Use the host's folder of mirrors, or one next to the agent's folder.

        With a queue, the host's agents push together. With a search, work that contains a key is
        not pushed. A new agent starts from the branch `base`, or else from the default branch.
        """
        self._base = base
        self._search = search
        self._folder = folder
        self._agent = agent
        self._generation = generation
        self._host = to_one_line(host)
        self._remote = RemoteRepository(remote, document.make_work_ref(agent), queue)
        self._mirror = SharedMirror(mirrors or folder.parent / MIRRORS, remote)
        self._ours = f"refs/rekindle/{agent}"
        self.left: list[str] = []
        """Refs under which `bring` saved this host's unpushed files and commits."""
        self.successor: tuple[int, PushedWork] | None = None
        """Generation and work of the push because of which this host's push was refused."""
        self.uncommitted = 0
        """Number of files pushed by `publish` that differ from the person's last commit."""

    def has(self, revision: str) -> bool:
        """Return whether the folder has this generation's claim, and this revision or a later one.

        A host may return under the same name with an empty disk or an old copy of its disk.
        """
        if not (self._folder / ".git").exists() or self._mirror.is_missing(self._folder):
            return False
        copy = self._open_copy()
        last = self._find_last_push(copy)
        if last is None or revision in {last.oid, document.find_replaced(last.message)}:
            return last is not None
        return copy.has(revision) and copy.is_kept((revision,), by=(last.oid,))

    def bring(self, pushed: PushedWork | None) -> PushedWork:
        """Restore the pushed work in the folder, then claim the branch for this generation.

        If `pushed` is None, the agent is new on the fleet and starts from its base branch. If the
        process is killed at any point, a second call completes the work.
        """
        try:
            return self._bring(pushed)
        except WorkspaceError as error:
            if error.cause != "refused" or not self._mirror.replace_damaged():
                raise
        return self._bring(pushed)

    def _bring(self, pushed: PushedWork | None) -> PushedWork:
        look = self._remote.look if pushed else partial(self._remote.look_up_base, self._base)
        remote = look()
        copy = self._make_copy(remote)
        for attempt in range(WORKSPACE_TRIES):
            self._fetch_missing(copy, remote)
            if pushed and not copy.has(pushed.revision):
                pushed = self._fetch_lost(copy, pushed, remote.work)
            # At first, the branch may be from an earlier registration, with a higher generation.
            if remote.work and (pushed or attempt):
                self._refuse_successor(copy, remote.work)
            tree, position = self._arrange_folder(copy, remote, pushed)
            parents = (position.head, pushed.revision if pushed else "", remote.work)
            claim = self._commit_snapshot(copy, tree, position, parents)
            if self._remote.push(copy, claim.revision, remote.work):
                copy.move(f"{self._ours}/pushed", claim.revision)
                return claim
            remote = look()  # the previous owner pushed again
        raise StalePushError(self._agent, self._generation, remote.work)

    def publish(self, never: Iterable[str] = ()) -> PushedWork:
        """Push a person's folder, as it is, for the first host. The folder is not changed.

        An existing branch from an earlier registration becomes a parent commit. An error is raised
        if a path in `never`, relative to the repository, would be pushed.
        """
        copy = WorkingCopy(self._folder)
        position = copy.read_head()
        with copy.capture() as captured:
            tree = captured.tree
        for path in never:
            if copy.has_file(tree, path):
                raise WorkspaceError(
                    "secret",
                    f"{path} would be pushed, but contains a secret of the fleet according to "
                    "rekindle.yaml",
                    hint="add it to .gitignore (and run `git rm --cached` on it), or move it "
                    "elsewhere",
                )
        self.uncommitted = copy.count_differing(position.head, tree)
        for _ in range(WORKSPACE_TRIES):
            remote = self._remote.look()
            if remote.work and not copy.has(remote.work):
                self._remote.fetch(copy, document.make_work_ref(self._agent))
            pushed = self._commit_snapshot(copy, tree, position, (position.head, remote.work))
            if self._remote.push(copy, pushed.revision, remote.work):
                return pushed
        raise StalePushError(self._agent, self._generation, self._remote.look().work)

    def push(self) -> PushedWork | None:
        """Push the work tree as it is, or return None if nothing changed since the last push."""
        copy = self._open_copy()
        last = self._require_last_push(copy)
        position = copy.read_head()
        with copy.capture() as captured:
            tree = captured.tree
        if last.tree == tree and document.parse(last.message) == self._make_snapshot(position):
            return None
        self._require_no_secrets(copy, (tree, position.head), (last.oid,))
        expected = last.oid
        for attempt in range(2):
            before = () if attempt else snapshot_chain.squash(copy, self._agent, last.oid, position)
            parents = (position.head, *(before or (last.oid, expected)))
            replaced = last.oid if before else ""
            pushed = self._commit_snapshot(copy, tree, position, parents, replaced)
            if self._remote.push(copy, pushed.revision, expected):
                copy.move(f"{self._ours}/pushed", pushed.revision)
                return pushed
            # The branch may contain our last push, whose answer was lost. Then continue from it.
            remote = self._remote.look()
            self._fetch_missing(copy, remote)
            expected = remote.work
            snapshot = document.parse(copy.message(expected)) if expected else None
            if not (snapshot and self._is_ours(snapshot)):
                break
        raise StalePushError(self._agent, self._generation, expected)

    def read_last_push(self) -> PushedWork | None:
        """Return this generation's last push from this host, or None if there is none."""
        last = self._find_last_push(self._open_copy())
        snapshot = document.parse(last.message) if last else None
        return PushedWork(last.oid, snapshot.head, snapshot.branch) if last and snapshot else None

    def reclaim_branch(self) -> PushedWork:
        """Push to a branch that a person moved or removed.

        The caller has just confirmed that its lease is valid. The person's commits become a parent,
        but their changes do not become part of the work.
        """
        copy = self._open_copy()
        return self._claim_with(copy, copy.read_head(), self._require_last_push(copy).oid)

    def adopt(self) -> PushedWork:
        """Claim the branch with the files that the agent created here before it had a remote.

        A folder without a repository is turned into one, with nothing checked out.
        """
        remote = self._remote.look()
        if (self._folder / ".git").exists():
            self._open_copy()
        copy = self._make_copy(remote)
        position = copy.read_head()
        if not copy.has_index and position.head == remote.head:
            # This is a fresh clone. With its HEAD, the agent would seem to have removed all of the
            # remote's files.
            position = HeadPosition("", position.branch or _BRANCH)
            copy.set_head(position)
        return self._claim_with(copy, position)

    def has_files(self) -> bool:
        """Return whether the folder contains files created by the agent."""
        with suppress(FileNotFoundError):
            return any(entry.name not in {".git", OWN_FOLDER} for entry in self._folder.iterdir())
        return False

    def _open_copy(self) -> WorkingCopy:
        """Return the clone, unless the agent made it read another repository's objects."""
        copy = WorkingCopy(self._folder)
        self._mirror.serves(copy)
        return copy

    def _make_copy(self, remote: RemoteState) -> WorkingCopy:
        """Return the clone, after creating it or restoring what it lacks."""
        self._mirror.clone(self._folder, remote)
        copy = WorkingCopy(self._folder)
        copy.sweep()
        refs = {remote.work: document.make_work_ref(self._agent), remote.head: remote.ref}
        self._mirror.restore(copy, *(ref for oid, ref in refs.items() if oid))
        return copy

    def _claim_with(self, copy: WorkingCopy, position: HeadPosition, last: str = "") -> PushedWork:
        """Push the work tree on top of the branch, unless another host has claimed the branch.

        Without a `last` push from this host, the branch may be from an earlier registration.
        """
        with copy.capture() as captured:
            tree = captured.tree
        self._require_no_secrets(copy, (tree, position.head), (last,))
        for attempt in range(WORKSPACE_TRIES):
            remote = self._remote.look()
            self._fetch_missing(copy, remote)
            if remote.work and (last or attempt):
                self._refuse_successor(copy, remote.work)
            pushed = self._commit_snapshot(copy, tree, position, (position.head, last, remote.work))
            if self._remote.push(copy, pushed.revision, remote.work):
                copy.move(f"{self._ours}/pushed", pushed.revision)
                return pushed
        raise WorkspaceError(
            "contested",
            "another program keeps pushing to it",
            hint="push to another branch, because this one belongs to the agent",
        )

    def _require_no_secrets(
        self, copy: WorkingCopy, new: tuple[str, ...], known: tuple[str, ...]
    ) -> None:
        if self._search is not None:
            # The remote already has the files of its own branches.
            self._search.require_none(copy, new, (*known, "--remotes=origin"))

    def _require_last_push(self, copy: WorkingCopy) -> RefCommit:
        """Return the last push or claim that this generation made from this host.

        If the agent came back to this host, an old process may find its successor's push here, and
        must not continue from that push.
        """
        if last := self._find_last_push(copy):
            return last
        foreign = copy.find_ref(f"{self._ours}/pushed")
        snapshot = document.parse(foreign.message) if foreign else None
        if foreign and snapshot and snapshot.generation > self._generation:
            raise StalePushError(self._agent, self._generation, foreign.oid)
        raise WorkspaceError(
            "unclaimed",
            f"generation {self._generation} of agent {self._agent} has not claimed the branch here",
            hint="the worker that runs a cycle must claim it first",
        )

    def _find_last_push(self, copy: WorkingCopy) -> RefCommit | None:
        last = copy.find_ref(f"{self._ours}/pushed")
        snapshot = document.parse(last.message) if last else None
        return last if snapshot and self._is_ours(snapshot) else None

    def _fetch_missing(self, copy: WorkingCopy, remote: RemoteState) -> None:
        """Fetch the remote's commits that are missing here."""
        self._mirror.supply(copy, remote.head)
        refs = {remote.work: document.make_work_ref(self._agent), remote.head: remote.ref}
        missing = [ref for oid, ref in refs.items() if oid and not copy.has(oid)]
        if missing:
            self._remote.fetch(copy, *missing)

    def _refuse_successor(self, copy: WorkingCopy, revision: str) -> None:
        snapshot = document.parse(copy.message(revision))
        if snapshot is None or snapshot.generation < self._generation or self._is_ours(snapshot):
            return
        work = PushedWork(revision, snapshot.head, snapshot.branch)
        self.successor = (snapshot.generation, work)
        raise StalePushError(self._agent, self._generation, revision)

    def _arrange_folder(
        self, copy: WorkingCopy, remote: RemoteState, pushed: PushedWork | None
    ) -> tuple[str, HeadPosition]:
        """Make the folder match the pushed work, changing only files that differ."""
        here = copy.read_head()
        with copy.capture() as captured:
            source = pushed.revision if pushed else remote.head
            if not source:
                return captured.tree, here  # the remote is empty, so use the local files
            last = pushed or remote
            target = HeadPosition(last.head, last.branch)
            tree = copy.find_tree(source)
            captured.cover(tree)
            if (here, captured.tree) == (target, tree):
                return tree, target
            self._retain_leftovers(
                copy, here, captured, target=target, tree=tree, safe=(source, remote.work)
            )
            captured.put(tree, target.head)
        copy.set_head(target)
        copy.refresh()
        return tree, target

    def _retain_leftovers(
        self,
        copy: WorkingCopy,
        here: HeadPosition,
        captured: CapturedTree,
        *,
        target: HeadPosition,
        tree: str,
        safe: tuple[str, ...],
    ) -> None:
        """Save this host's unpushed files and commits under a ref before they are replaced."""
        last = copy.find_ref(f"{self._ours}/pushed")
        was_pushed = last and last.tree == captured.tree and copy.is_kept((last.oid,), by=safe)
        tip = copy.find_ref(f"refs/heads/{target.branch}") if target.branch else None
        commits = (here.head, tip.oid if tip else "")
        is_lost = captured.would_lose_files(tree) and not was_pushed
        if not is_lost and copy.is_kept(commits, by=safe):
            return
        left = self._commit_snapshot(copy, captured.tree, here, commits).revision
        ref = f"{self._ours}/left/{left[:12]}"
        copy.move(ref, left)
        self.left.append(ref)

    def _fetch_lost(self, copy: WorkingCopy, pushed: PushedWork, tip: str) -> PushedWork:
        """Fetch a revision that is not on the branch, or return the snapshot that replaced it."""
        try:
            # A person moved the branch. The remote may still have the revision.
            self._remote.fetch(copy, pushed.revision)
        except WorkspaceError:
            message = copy.message(tip) if tip else ""
            snapshot = document.parse(message)
            if snapshot is None or document.find_replaced(message) != pushed.revision:
                raise
            # The host died before it could record its last push.
            return PushedWork(tip, snapshot.head, snapshot.branch)
        return pushed

    def _commit_snapshot(
        self,
        copy: WorkingCopy,
        tree: str,
        position: HeadPosition,
        parents: tuple[str, ...],
        replaced: str = "",
    ) -> PushedWork:
        message = document.render(self._make_snapshot(position), replaced)
        return PushedWork(copy.commit(tree, parents, message), position.head, position.branch)

    def _make_snapshot(self, position: HeadPosition) -> WorkSnapshot:
        return WorkSnapshot(
            agent=self._agent,
            generation=self._generation,
            host=self._host,
            branch=position.branch,
            head=position.head,
        )

    def _is_ours(self, snapshot: WorkSnapshot) -> bool:
        return (snapshot.generation, snapshot.host) == (self._generation, self._host)


def find_remote(folder: Path) -> document.RemoteLocation | None:
    """Return the remote that a folder is pushed to: `origin`, or the only remote."""
    with suppress(AuditError):
        repository = Repository(folder, timeout=WORKTREE_CALL_SECONDS)
        remotes = repository.look("remote").splitlines()
        name = "origin" if "origin" in remotes else remotes[0] if len(remotes) == 1 else ""
        if not name:
            return None
        url = repository.look("config", "--get-all", f"remote.{name}.url").splitlines()[0]
        path = repository.look("rev-parse", "--show-prefix").rstrip("\n").rstrip("/")
        root = repository.look("rev-parse", "--show-toplevel").rstrip("\n")
        # Git resolves a relative URL against the repository.
        if url.startswith(("./", "../")):
            url = str((Path(root) / url).resolve())
        return document.RemoteLocation(url, path)
    return None
