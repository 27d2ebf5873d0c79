"""Save a working copy as a git tree, and restore it from another tree.

A separate index is used, so the user's own index is only read. Git runs with Rekindle's own
configuration (`own_configuration`) and without filters: no external program is run, and LFS files
are saved as they are on disk.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO

import msgspec

from rekindle.errors import (
    WorkspaceError,
    translate_os_errors,
)
from rekindle.policy.settings.runtime_settings import WORKSPACE_CALL_SECONDS
from rekindle.system.files import durable_files
from rekindle.system.git import git_process, own_configuration
from rekindle.system.git.git_process import GitResult
from rekindle.system.git.own_configuration import RepositoryPlace
from rekindle.system.git.path_obstacle import find_obstacle
from rekindle.system.git.workspace_git import make_refusal, start_git

OWN_FOLDER = ".rekindle"
# Written as a pattern, because git refuses to exclude an ignored path by its plain name.
_OURS_BY_PATTERN = f"{OWN_FOLDER[:-1]}[{OWN_FOLDER[-1]}]"
_ALL_BUT_OURS = (
    ":/",
    f":(exclude,top){_OURS_BY_PATTERN}",
    f":(exclude,top){_OURS_BY_PATTERN}/*",
)
_SETTINGS = {
    "advice.addEmbeddedRepo": "false",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.fsyncMethod": "batch",  # flush once per snapshot instead of once per file
    "submodule.recurse": "false",
    "i18n.commitEncoding": "UTF-8",
}
_EVERY_FILE = {"core.sparseCheckout": "false", "index.sparse": "false"}
UNBORN = "does not have a commit checked out"
_HALF_DONE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_TEMPORARY = "rekindle-index-"
_REF = "%(objectname)%00%(tree)%00%(contents)"
_REPOSITORY_MODE = b"160000 "
_NOTHING: Mapping[str, str] = MappingProxyType({})


class HeadPosition(msgspec.Struct, frozen=True):
    head: str
    """Commit at HEAD; empty if there is none yet."""
    branch: str
    """Name of the checked-out branch; empty if HEAD is detached."""


class RefCommit(msgspec.Struct, frozen=True):
    oid: str
    tree: str
    message: str


class WorkingCopy:
    """A folder with a work tree and its repository."""

    def __init__(
        self,
        folder: Path,
        *,
        converts: bool = True,
        timeout: Callable[[], float] = lambda: WORKSPACE_CALL_SECONDS,
    ) -> None:
        """Find the repository at exactly this folder.

        Without `converts`, git stores each file as it is on disk. `timeout` returns how many
        seconds the next git call may take.
        """
        self.folder = folder.absolute()
        self._timeout = timeout
        # If this repository is broken, git must not fall back to one in a parent folder.
        self._environment = {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        self._settings = own_configuration.DISCOVERY_SETTINGS
        self._place: RepositoryPlace | None = None
        with translate_os_errors(self.folder):
            place = own_configuration.find_place(self.folder, lambda asked: self.call(*asked))
            self._environment = place.make_environment(converts=converts)
        self._place = place
        self._settings = _SETTINGS if converts else _SETTINGS | _EVERY_FILE
        self.common_folder = place.common_folder
        self.own_folder = Path(self._environment["GIT_COMMON_DIR"])
        """Rekindle's folder for this repository, outside the workspace."""
        self.object_format = place.object_format
        self.git_folder = place.git_folder
        self.index = place.git_folder / "index"
        self.objects = place.common_folder / "objects"
        self.shallow = place.common_folder / "shallow"

    @property
    def has_index(self) -> bool:
        """Whether files were ever checked out or added here."""
        return self.index.exists()

    def read_head(self) -> HeadPosition:
        branch = self._read_git("symbolic-ref", "--quiet", "HEAD", may_fail_with=1)
        head = self._read_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail_with=1)
        return HeadPosition(head, branch.removeprefix("refs/heads/"))

    def find_ref(self, ref: str) -> RefCommit | None:
        """Return the commit of a ref, or None if there is no ref with this exact name."""
        output = self._read_git("for-each-ref", f"--format={_REF}", ref)
        if not output:
            return None
        oid, tree, message = output.split("\0", 2)
        return RefCommit(oid, tree, message)

    def refs(self) -> bytes:
        """Return all refs in packed-refs format."""
        return self.call("for-each-ref", "--format=%(objectname) %(refname)")

    def has(self, oid: str) -> bool:
        query = ("cat-file", "--batch-check=%(objecttype)")
        return self.call(*query, stdin=f"{oid}\n".encode()).strip() == b"commit"

    def message(self, oid: str) -> str:
        return self._read_git("cat-file", "commit", oid).partition("\n\n")[2]

    def find_tree(self, commit: str) -> str:
        """Return a commit's tree, without `.rekindle` in case it was committed."""
        return self.strip_own_folder(self._read_git("rev-parse", "--verify", f"{commit}^{{tree}}"))

    def has_file(self, tree: str, path: str) -> bool:
        return bool(self.call("ls-tree", "-z", tree, "--", path))

    def list_repositories(self, tree: str) -> list[str]:
        """Return the paths of submodules and nested repositories in a tree or a commit."""
        entries = self.call("ls-tree", "-r", "-z", tree).split(b"\0")
        return [
            os.fsdecode(entry.partition(b"\t")[2])
            for entry in entries
            if entry.startswith(_REPOSITORY_MODE)
        ]

    def count_differing(self, commit: str, tree: str) -> int:
        """Return the number of files that differ between a commit and a tree."""
        before = f"{commit}^{{tree}}" if commit else self._read_git("mktree")
        query = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, tree)
        return self.call(*query).count(b"\0")

    def commit(
        self, tree: str, parents: Iterable[str], message: str, author: Mapping[str, str] = _NOTHING
    ) -> str:
        """Write a commit. `author` contains git's variables for its author and committer."""
        unique = dict.fromkeys(parent for parent in parents if parent)
        named = [word for parent in unique for word in ("-p", parent)]
        made = self.call("commit-tree", tree, *named, stdin=message.encode(), more=author)
        return os.fsdecode(made).strip()

    def find_checkout(self, branch: str) -> str:
        """Return the work tree that has a branch checked out, except this one, or ""."""
        # `git worktree list` would show Rekindle's own folder for the main work tree.
        for git_folder in (self.common_folder, *self.common_folder.glob("worktrees/*")):
            if git_folder == self.git_folder or not branch:
                continue
            if _is_head_of(git_folder, branch):
                is_main = git_folder == self.common_folder
                return str(git_folder) if is_main else f"work tree {git_folder.name}"
        return ""

    def is_checked_out(self, branch: str) -> bool:
        """Return whether any work tree, including this one, has a branch checked out."""
        return _is_head_of(self.git_folder, branch) or bool(self.find_checkout(branch))

    def move(self, ref: str, new: str) -> None:
        self.refuse_link(ref)
        self.call("update-ref", "--no-deref", ref, new)

    def is_kept(self, commits: Sequence[str], by: Sequence[str]) -> bool:
        """Return whether `by` contains every commit in `commits`, directly or as an ancestor."""
        wanted = [*filter(None, commits)]
        if not wanted:
            return True
        return not self._read_git("rev-list", "-n", "1", *wanted, "--not", *filter(None, by), "--")

    def sweep(self) -> None:
        """Remove temporary indexes left by killed processes.

        Only the workspace's owner may call this.
        """
        self.refuse_link()
        for leftover in self.git_folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    @contextmanager
    def capture(self) -> Iterator["CapturedTree"]:
        """Capture tracked and untracked files, but not ignored files or `.rekindle`."""
        self.refuse_link()
        with (
            translate_os_errors(self.git_folder),
            tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self.git_folder) as place,
        ):
            index = Path(place) / "index"
            with suppress(FileNotFoundError):
                # copy2 keeps the modification time. Otherwise, git would reread every file.
                shutil.copy2(self.index, index)
            yield CapturedTree(self, index)

    def set_head(self, standing: HeadPosition) -> None:
        """Set HEAD. The caller has already updated the work tree and the index."""
        ref = f"refs/heads/{standing.branch}"
        self.refuse_link(ref)
        for name in _HALF_DONE:  # drop an unfinished merge on the old branch
            (self.git_folder / name).unlink(missing_ok=True)
        if not standing.branch:
            self.move("HEAD", standing.head)
        elif standing.head:
            self.move(ref, standing.head)
        else:
            self.call("update-ref", "--no-deref", "-d", ref)
        if standing.branch:  # last, so that HEAD shows that every step is done
            self.call("symbolic-ref", "HEAD", ref)

    def refresh(self) -> None:
        """Refresh the index, so that git does not have to reread the files. Ignore failures."""
        with suppress(WorkspaceError):
            self.call("update-index", "-q", "--refresh", may_fail_with=1)

    def install_index(self, index: Path) -> None:
        # Do not take git's lock, because a stale lock left by a killed git would block the agent
        # forever. Nothing else is running in this folder.
        index.replace(self.index)

    def reset_index(self, head: str) -> None:
        """Set the user's index to a commit, or empty it. The work tree is not changed."""
        self.refuse_link()
        if not head:
            # The index that `read-tree --empty` writes refers to a tree that `git fsck` reports as
            # missing.
            durable_files.remove_file(self.index)
            return
        with (
            translate_os_errors(self.git_folder),
            tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self.git_folder) as place,
        ):
            index = Path(place) / "index"
            with suppress(FileNotFoundError):
                shutil.copy2(self.index, index)
            self.call("read-tree", "--reset", head, index=index)
            self.install_index(index)

    def strip_own_folder(self, tree: str) -> str:
        listed = self.call("ls-tree", "-z", tree)
        entries = [entry for entry in listed.split(b"\0") if entry]
        kept = [entry for entry in entries if entry.partition(b"\t")[2] != OWN_FOLDER.encode()]
        if len(kept) == len(entries):
            return tree
        lines = b"".join(entry + b"\0" for entry in kept)
        return self._read_git("mktree", "-z", stdin=lines)

    def _read_git(self, *arguments: str, stdin: bytes = b"", may_fail_with: int = 0) -> str:
        output = self.call(*arguments, stdin=stdin, may_fail_with=may_fail_with)
        return os.fsdecode(output).rstrip("\n")

    def call(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        stdout: IO[bytes] | None = None,
        may_fail_with: int = 0,
        index: Path | None = None,
        more: Mapping[str, str] = _NOTHING,
    ) -> bytes:
        ended = self.ask(*arguments, stdin=stdin, stdout=stdout, index=index, more=more)
        if ended.code not in {0, may_fail_with}:
            raise make_refusal(arguments[0], ended)
        return ended.out

    def refuse_link(self, *refs: str) -> None:
        """Raise WorkspaceError if the agent created a link that leads out of the repository.

        This applies to reads too, because a push would publish another repository's commits.
        """
        if self._place is None:
            return
        try:
            link = self._place.find_link(*refs)
        except OSError as error:
            raise WorkspaceError("broken", str(error), hint="git fsck") from error
        if link is not None:
            reason, hint = self._place.explain_link(link)
            raise WorkspaceError("linked", reason, hint=hint)

    def ask(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        stdout: IO[bytes] | None = None,
        index: Path | None = None,
        more: Mapping[str, str] = _NOTHING,
    ) -> GitResult:
        """Run git. `more` contains additional environment variables."""
        self.refuse_link()
        own_index = {"GIT_INDEX_FILE": str(index)} if index else {}
        return start_git(
            arguments,
            folder=self.folder,
            environment=git_process.inherit_variables(git_process.ENVIRONMENT)
            | git_process.OWN_ENVIRONMENT
            | self._environment
            | own_index
            | dict(more),
            settings=git_process.SAFE_SETTINGS | self._settings,
            timeout=self._timeout(),
            stdin=stdin,
            stdout=stdout,
        )


class CapturedTree:
    """A work tree captured in a temporary index."""

    def __init__(self, copy: WorkingCopy, index: Path) -> None:
        self._copy = copy
        self._index = index
        self.tree = self._take_paths("-A", "--", *_ALL_BUT_OURS)

    def put(self, tree: str, head: str) -> None:
        """Replace the work tree with another tree, and point the user's index at the new HEAD.

        Unchanged files are not touched. The index is updated first, so if the process is killed
        halfway, the next attempt still sees that the work tree differs.
        """
        other = self._index.with_name("other")
        shutil.copy2(self._index, other)
        self._run_git("read-tree", *(("-m", head) if head else ("--empty",)), index=other)
        self._copy.install_index(other)
        self._run_git("read-tree", "-m", "-u", self.tree, tree)

    def cover(self, tree: str) -> None:
        """Also capture the ignored files that another tree would overwrite."""
        added = self._run_git(
            *("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A"),
            *(self.tree, tree),
        )
        names = [os.fsdecode(name) for name in added.split(b"\0") if name]
        in_the_way = {
            obstacle for name in names if (obstacle := find_obstacle(self._copy.folder, name))
        }
        if in_the_way:
            given = "\0".join(f":(top,literal){name}" for name in sorted(in_the_way))
            listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self.tree = self._take_paths("-A", "-f", *listed, stdin=os.fsencode(given))

    def restore_paths(self, commit: str, paths: Sequence[str]) -> str:
        """Return the captured tree with these paths replaced by their version in a commit.

        Paths that are not in the commit are removed. The work tree is not changed.
        """
        if not paths:
            return self.tree
        named = [f":(top,literal){path}" for path in paths]
        listed = self._run_git("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths)
        self._run_git("rm", "-r", "-q", "--cached", "--ignore-unmatch", "--", *named)
        if listed:
            self._copy.call("update-index", "-z", "--index-info", stdin=listed, index=self._index)
        return self._copy.strip_own_folder(os.fsdecode(self._run_git("write-tree")).strip())

    def would_lose_files(self, tree: str) -> bool:
        """Return whether switching to another tree would delete or overwrite captured files."""
        query = ("diff-tree", "-r", "--no-renames", "--name-only", "--diff-filter=MDT")
        return bool(self._run_git(*query, self.tree, tree))

    def _take_paths(self, *what: str, stdin: bytes = b"") -> str:
        ended = self._copy.ask("add", "--ignore-errors", *what, stdin=stdin, index=self._index)
        complaints = [line for line in ended.complaint.splitlines() if line.startswith("error: ")]
        # Skip nested repositories that have no commit. Any other failure is an error.
        if ended.code and not (complaints and all(UNBORN in line for line in complaints)):
            raise make_refusal("add", ended)
        return self._copy.strip_own_folder(os.fsdecode(self._run_git("write-tree")).strip())

    def _run_git(self, *arguments: str, index: Path | None = None) -> bytes:
        return self._copy.call(*arguments, index=index or self._index)


def _is_head_of(git_folder: Path, branch: str) -> bool:
    with suppress(OSError):
        return (git_folder / "HEAD").read_bytes() == f"ref: refs/heads/{branch}\n".encode()
    return False
