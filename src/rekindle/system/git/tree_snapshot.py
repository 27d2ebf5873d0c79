"""A fleet agent's working copy, captured as a git tree or replaced by another tree.

The work tree is captured with a separate index, so that the user's own index is only read. Git uses
Rekindle's own configuration (`own_configuration`), without filters: no configured program is run,
and LFS files are transferred as they are on disk.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rekindle.errors import (
    WorkspaceError,
    translate_os_errors,
)
from rekindle.policy.settings.runtime_settings import WORKSPACE_CALL_SECONDS
from rekindle.system.git import git_process, own_configuration
from rekindle.system.git.git_process import GitResult
from rekindle.system.git.own_configuration import RepositoryPlace

OWN_FOLDER = ".rekindle"
# This is a pattern, because git refuses to exclude an ignored path by its plain name.
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
    "core.fsyncMethod": "batch",  # one flush for all files in a snapshot
    "submodule.recurse": "false",
    "i18n.commitEncoding": "UTF-8",
}
_UNBORN = "does not have a commit checked out"
_HALF_DONE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_TEMPORARY = "rekindle-index-"
_REF = "%(objectname)%00%(tree)%00%(contents)"


class HeadPosition(msgspec.Struct, frozen=True):
    head: str
    """The commit at HEAD; empty if there is none yet."""
    branch: str
    """The branch that is checked out; empty if HEAD is detached."""


class RefCommit(msgspec.Struct, frozen=True):
    """The commit at a ref."""

    oid: str
    tree: str
    message: str


class WorkingCopy:
    """A folder with a work tree and its repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        # If this repository is broken, git must not use one in a folder above.
        self._environment = {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
        self._settings = own_configuration.DISCOVERY_SETTINGS
        self._place: RepositoryPlace | None = None
        with translate_os_errors(self.folder):
            place = own_configuration.find_place(self.folder, lambda asked: self.call(*asked))
            self._environment = place.make_environment()
        self._place = place
        self._settings = _SETTINGS
        self.object_format = place.object_format
        self.git_folder = place.git_folder
        self._index = place.git_folder / "index"
        self.objects = place.common_folder / "objects"
        self.shallow = place.common_folder / "shallow"

    @property
    def has_index(self) -> bool:
        """Return whether any files have ever been checked out or added here."""
        return self._index.exists()

    def read_head(self) -> HeadPosition:
        branch = self._read_git("symbolic-ref", "--quiet", "HEAD", may_fail_with=1)
        head = self._read_git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail_with=1)
        return HeadPosition(head, branch.removeprefix("refs/heads/"))

    def find_ref(self, ref: str) -> RefCommit | None:
        """Return the commit at the ref with exactly this name, or None."""
        output = self._read_git("for-each-ref", f"--format={_REF}", ref)
        if not output:
            return None
        oid, tree, message = output.split("\0", 2)
        return RefCommit(oid, tree, message)

    def refs(self) -> bytes:
        """Return all refs, in the format of packed-refs."""
        return self.call("for-each-ref", "--format=%(objectname) %(refname)")

    def has(self, oid: str) -> bool:
        query = ("cat-file", "--batch-check=%(objecttype)")
        return self.call(*query, stdin=f"{oid}\n".encode()).strip() == b"commit"

    def message(self, oid: str) -> str:
        return self._read_git("cat-file", "commit", oid).partition("\n\n")[2]

    def find_tree(self, commit: str) -> str:
        """Return a commit's tree, without `.rekindle` in case that was committed."""
        return self.strip_own_folder(self._read_git("rev-parse", "--verify", f"{commit}^{{tree}}"))

    def has_file(self, tree: str, path: str) -> bool:
        return bool(self.call("ls-tree", "-z", tree, "--", path))

    def count_differing(self, commit: str, tree: str) -> int:
        """Return how many files in a tree differ from a commit; without a commit, count all."""
        before = f"{commit}^{{tree}}" if commit else self._read_git("mktree")
        query = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, tree)
        return self.call(*query).count(b"\0")

    def commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        unique = dict.fromkeys(parent for parent in parents if parent)
        named = [word for parent in unique for word in ("-p", parent)]
        return self._read_git("commit-tree", tree, *named, stdin=message.encode())

    def move(self, ref: str, new: str) -> None:
        self.refuse_link(ref)
        self.call("update-ref", "--no-deref", ref, new)

    def is_kept(self, commits: Sequence[str], by: Sequence[str]) -> bool:
        """Return whether each commit in `commits` is in `by` or an ancestor of a commit in `by`."""
        wanted = [*filter(None, commits)]
        if not wanted:
            return True
        return not self._read_git("rev-list", "-n", "1", *wanted, "--not", *filter(None, by), "--")

    def sweep(self) -> None:
        """Remove temporary indexes of killed processes; only the workspace's owner may do this."""
        self.refuse_link()
        for leftover in self.git_folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(leftover, ignore_errors=True)

    @contextmanager
    def capture(self) -> Iterator["CapturedTree"]:
        """Capture the work tree with untracked files, but without ignored files and `.rekindle`."""
        self.refuse_link()
        with (
            translate_os_errors(self.git_folder),
            tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self.git_folder) as place,
        ):
            index = Path(place) / "index"
            with suppress(FileNotFoundError):
                # copy2 preserves the index's file time: git would read files again that are as new
                # as the index.
                shutil.copy2(self._index, index)
            yield CapturedTree(self, index)

    def set_head(self, standing: HeadPosition) -> None:
        """Set HEAD; the caller must have updated the work tree and the index."""
        ref = f"refs/heads/{standing.branch}"
        self.refuse_link(ref)
        for name in _HALF_DONE:  # an unfinished merge belongs to another history
            (self.git_folder / name).unlink(missing_ok=True)
        if not standing.branch:
            self.move("HEAD", standing.head)
        elif standing.head:
            self.move(ref, standing.head)
        else:
            self.call("update-ref", "--no-deref", "-d", ref)
        if standing.branch:  # last, so that HEAD shows whether every step is done
            self.call("symbolic-ref", "HEAD", ref)

    def refresh(self) -> None:
        """Refresh the index so that git need not read the files again; ignore failures."""
        with suppress(WorkspaceError):
            self.call("update-index", "-q", "--refresh", may_fail_with=1)

    def install_index(self, index: Path) -> None:
        # This does not use git's lock: a lock left by a killed git would block the agent forever,
        # and no other process is working in this folder.
        index.replace(self._index)

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
        stdin: bytes = b"",
        may_fail_with: int = 0,
        index: Path | None = None,
    ) -> bytes:
        ended = self.ask(*arguments, stdin=stdin, index=index)
        if ended.code not in {0, may_fail_with}:
            raise make_refusal(arguments[0], ended)
        return ended.out

    def refuse_link(self, *refs: str) -> None:
        """Raise WorkspaceError if a link that the agent created leads out of the repository.

        Reads are refused too, because a push would publish another repository's commits.
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

    def ask(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> GitResult:
        self.refuse_link()
        more = {"GIT_INDEX_FILE": str(index)} if index else {}
        return start_git(
            arguments,
            folder=self.folder,
            environment=git_process.inherit_variables(git_process.ENVIRONMENT)
            | git_process.OWN_ENVIRONMENT
            | self._environment
            | more,
            settings=git_process.SAFE_SETTINGS | self._settings,
            timeout=WORKSPACE_CALL_SECONDS,
            stdin=stdin,
        )


class CapturedTree:
    """A work tree, captured with a temporary index."""

    def __init__(self, copy: WorkingCopy, index: Path) -> None:
        self._copy = copy
        self._index = index
        self.tree = self._take_paths("-A", "--", *_ALL_BUT_OURS)

    def put(self, tree: str, head: str) -> None:
        """Replace the work tree with another tree, and set the user's index to the future HEAD.

        Identical files are not touched. The index is set first: if the process is killed in
        between, the next attempt still sees that the work tree differs.
        """
        other = self._index.with_name("other")
        shutil.copy2(self._index, other)
        self._run_git("read-tree", *(("-m", head) if head else ("--empty",)), index=other)
        self._copy.install_index(other)
        self._run_git("read-tree", "-m", "-u", self.tree, tree)

    def cover(self, tree: str) -> None:
        """Also capture ignored files that another tree would overwrite."""
        added = self._run_git(
            *("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A"),
            *(self.tree, tree),
        )
        names = [os.fsdecode(name) for name in added.split(b"\0") if name]
        in_the_way = {
            obstacle for name in names if (obstacle := _find_obstacle(self._copy.folder, name))
        }
        if in_the_way:
            given = "\0".join(f":(top,literal){name}" for name in sorted(in_the_way))
            listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self.tree = self._take_paths("-A", "-f", *listed, stdin=os.fsencode(given))

    def would_lose_files(self, tree: str) -> bool:
        """Return whether another tree lacks a file of this one, or has different content for it."""
        query = ("diff-tree", "-r", "--no-renames", "--name-only", "--diff-filter=MDT")
        return bool(self._run_git(*query, self.tree, tree))

    def _take_paths(self, *what: str, stdin: bytes = b"") -> str:
        ended = self._copy.ask("add", "--ignore-errors", *what, stdin=stdin, index=self._index)
        complaints = [line for line in ended.complaint.splitlines() if line.startswith("error: ")]
        # Nested repositories without a commit are left out; every other failure is an error.
        if ended.code and not (complaints and all(_UNBORN in line for line in complaints)):
            raise make_refusal("add", ended)
        return self._copy.strip_own_folder(os.fsdecode(self._run_git("write-tree")).strip())

    def _run_git(self, *arguments: str, index: Path | None = None) -> bytes:
        return self._copy.call(*arguments, index=index or self._index)


def start_git(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
) -> GitResult:
    """Run git for a workspace; raise a typed error if it cannot be started or times out."""
    program = git_process.find_git()
    if program is None:
        raise WorkspaceError(
            "absent",
            "git is not installed",
            hint="install git, which Rekindle uses to move workspaces",
        )
    try:
        return git_process.run_git(
            program,
            arguments,
            folder=folder,
            environment=environment,
            settings=settings,
            timeout=timeout,
            stdin=stdin,
        )
    except TimeoutError as late:
        raise WorkspaceError("slow", str(late), hint="Rekindle will retry later") from late
    except OSError as error:
        raise WorkspaceError(
            "broken", f"git could not be started: {error.strerror}", hint="git --version"
        ) from error


def make_refusal(command: str, ended: GitResult) -> WorkspaceError:
    message = f"git {command}: {ended.reason}"
    if match := git_process.LOCKED.search(ended.complaint):
        return WorkspaceError(
            "locked", message, hint=f"if no git process is running: rm '{match[1]}'"
        )
    return WorkspaceError("refused", message, hint="run: git status; git fsck")


def _find_obstacle(root: Path, name: str) -> str:
    """Return the path that blocks a file: an entry with its name, or a non-folder above it."""
    parts = name.split("/")
    for length in range(1, len(parts) + 1):
        prefix = "/".join(parts[:length])
        path = root / prefix
        if not os.path.lexists(path):
            return ""
        if length == len(parts) or path.is_symlink() or not path.is_dir():
            return prefix
    return ""
