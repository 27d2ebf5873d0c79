"""A fleet agent's working copy: taken as a tree, and made to be another one. By git's plumbing.

What a work tree holds is taken with an index of ours, so that the user's own is only read. Filters
are off: nobody's program is run, and a file of LFS comes and goes as it lies there.
"""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rekindle.errors import WorkspaceError, storing
from rekindle.policy.settings import WORKSPACE_CALL_SECONDS
from rekindle.system import gitprocess
from rekindle.system.gitprocess import Ended

OURS = ".rekindle"
# As a pattern: git refuses to leave out by its plain name what is ignored already.
_OURS_BY_PATTERN = f"{OURS[:-1]}[{OURS[-1]}]"
_ALL_BUT_OURS = (
    ":/",
    f":(exclude,top){_OURS_BY_PATTERN}",
    f":(exclude,top){_OURS_BY_PATTERN}/*",
)
_SETTINGS = {
    "advice.addEmbeddedRepo": "false",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.fsyncMethod": "batch",  # one flush for all files of a snapshot
    "submodule.recurse": "false",
    "i18n.commitEncoding": "UTF-8",
}
_PROGRAMS = r"^(filter\..*\.(clean|smudge|process|required)|hook\..*\.event)$"
_LOCKED = re.compile(r"Unable to create '([^']+\.lock)': File exists")
_UNBORN = "does not have a commit checked out"
_HALF_DONE = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
_TEMPORARY = "rekindle-index-"
_REF = "%(objectname)%00%(tree)%00%(contents)"


class Standing(msgspec.Struct, frozen=True):
    head: str
    """The commit that HEAD names; empty: there is none yet."""
    branch: str
    """The branch that is checked out; empty: detached."""


class Named(msgspec.Struct, frozen=True):
    """The commit that a ref names."""

    oid: str
    tree: str
    message: str


class WorkingCopy:
    """The work tree and the repository in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._off: dict[str, str] = {}
        paths = [word for name in ("index", "objects", "shallow") for word in ("--git-path", name)]
        asked = ("rev-parse", "--show-object-format", "--absolute-git-dir", *paths)
        self.object_format, *places = os.fsdecode(self.call(*asked)).split("\n")[:5]
        self.git_folder, self._index, self.objects, self.shallow = (
            self.folder / place for place in places
        )
        self._off = self._nobodys_programs()

    @property
    def has_index(self) -> bool:
        """Whether anything was ever checked out here, or added."""
        return self._index.exists()

    def standing(self) -> Standing:
        branch = self._say("symbolic-ref", "--quiet", "HEAD", may_fail_with=1)
        head = self._say("rev-parse", "--verify", "--quiet", "HEAD^{commit}", may_fail_with=1)
        return Standing(head, branch.removeprefix("refs/heads/"))

    def named(self, ref: str) -> Named | None:
        """What a ref of exactly this name stands at."""
        said = self._say("for-each-ref", f"--format={_REF}", ref)
        if not said:
            return None
        oid, tree, message = said.split("\0", 2)
        return Named(oid, tree, message)

    def refs(self) -> bytes:
        """All refs, as a file of packed ones has them."""
        return self.call("for-each-ref", "--format=%(objectname) %(refname)")

    def has(self, oid: str) -> bool:
        asked = ("cat-file", "--batch-check=%(objecttype)")
        return self.call(*asked, stdin=f"{oid}\n".encode()).strip() == b"commit"

    def message(self, oid: str) -> str:
        return self._say("cat-file", "commit", oid).partition("\n\n")[2]

    def tree_of(self, commit: str) -> str:
        """A commit's tree, without a folder of ours that somebody has committed."""
        return self.without_ours(self._say("rev-parse", "--verify", f"{commit}^{{tree}}"))

    def has_file(self, tree: str, path: str) -> bool:
        return bool(self.call("ls-tree", "-z", tree, "--", path))

    def differing(self, commit: str, tree: str) -> int:
        """How many files a tree has otherwise than a commit; without one, how many it has."""
        before = f"{commit}^{{tree}}" if commit else self._say("mktree")
        asked = ("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, tree)
        return self.call(*asked).count(b"\0")

    def commit(self, tree: str, parents: Iterable[str], message: str) -> str:
        each = dict.fromkeys(parent for parent in parents if parent)
        named = [word for parent in each for word in ("-p", parent)]
        return self._say("commit-tree", tree, *named, stdin=message.encode())

    def move(self, ref: str, new: str) -> None:
        self.call("update-ref", "--no-deref", ref, new)

    def is_kept(self, commits: Sequence[str], by: Sequence[str]) -> bool:
        """Whether each of some commits is an ancestor of one of the others, or one of them."""
        wanted = [*filter(None, commits)]
        if not wanted:
            return True
        return not self._say("rev-list", "-n", "1", *wanted, "--not", *filter(None, by), "--")

    def sweep(self) -> None:
        """Remove what a killed predecessor left of its index; only for the workspace's owner."""
        for left in self.git_folder.glob(f"{_TEMPORARY}*"):
            shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def taken(self) -> Iterator["Taken"]:
        """The work tree as it is: with what is untracked, without what is ignored or ours."""
        with (
            storing(self.git_folder),
            tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=self.git_folder) as place,
        ):
            index = Path(place) / "index"
            with suppress(FileNotFoundError):
                # With its times: git looks into files that are as young as the index itself.
                shutil.copy2(self._index, index)
            yield Taken(self, index)

    def stand(self, standing: Standing) -> None:
        """Where HEAD is from now on; the work tree and the index are made to fit beforehand."""
        for name in _HALF_DONE:  # a merge that was begun here is another history's
            (self.git_folder / name).unlink(missing_ok=True)
        ref = f"refs/heads/{standing.branch}"
        if not standing.branch:
            self.move("HEAD", standing.head)
        elif standing.head:
            self.move(ref, standing.head)
        else:
            self.call("update-ref", "--no-deref", "-d", ref)
        if standing.branch:  # last: by HEAD it is known whether all of this is done
            self.call("symbolic-ref", "HEAD", ref)

    def refresh(self) -> None:
        """Have the index know the files again, so that they need not be read; it may fail."""
        with suppress(WorkspaceError):
            self.call("update-index", "-q", "--refresh", may_fail_with=1)

    def install_index(self, index: Path) -> None:
        # Not by git's lock: one that a killed git has left here would hold the agent up for ever,
        # and nobody else works in this folder now.
        index.replace(self._index)

    def without_ours(self, tree: str) -> str:
        listed = self.call("ls-tree", "-z", tree)
        entries = [one for one in listed.split(b"\0") if one]
        kept = [one for one in entries if one.partition(b"\t")[2] != OURS.encode()]
        if len(kept) == len(entries):
            return tree
        lines = b"".join(one + b"\0" for one in kept)
        return self._say("mktree", "-z", stdin=lines)

    def _nobodys_programs(self) -> dict[str, str]:
        listed = self.call(
            *("config", "--null", "--name-only", "--get-regexp", _PROGRAMS),
            may_fail_with=1,  # there is none
        )
        off = {}
        for name in listed.decode(errors="replace").split("\0")[:-1]:
            if name.startswith("hook."):
                off[f"{name.removesuffix('.event')}.enabled"] = "false"
            else:
                off[name] = "false" if name.endswith("required") else ""
        return gitprocess.configured(off)

    def _say(self, *arguments: str, stdin: bytes = b"", may_fail_with: int = 0) -> str:
        said = self.call(*arguments, stdin=stdin, may_fail_with=may_fail_with)
        return os.fsdecode(said).rstrip("\n")

    def call(
        self,
        *arguments: str,
        stdin: bytes = b"",
        may_fail_with: int = 0,
        index: Path | None = None,
    ) -> bytes:
        ended = self.ask(*arguments, stdin=stdin, index=index)
        if ended.code not in {0, may_fail_with}:
            raise refused(arguments[0], ended)
        return ended.out

    def ask(self, *arguments: str, stdin: bytes = b"", index: Path | None = None) -> Ended:
        more = {"GIT_INDEX_FILE": str(index)} if index else {}
        return start(
            arguments,
            folder=self.folder,
            environment=gitprocess.inherited(gitprocess.ENVIRONMENT)
            | gitprocess.OWN_ENVIRONMENT
            # A broken repository here must not lead to one that this folder happens to lie in.
            | {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}
            | self._off
            | more,
            settings=gitprocess.SETTINGS | _SETTINGS,
            timeout=WORKSPACE_CALL_SECONDS,
            stdin=stdin,
        )


class Taken:
    """A work tree, taken into an index that is thrown away."""

    def __init__(self, copy: WorkingCopy, index: Path) -> None:
        self._copy = copy
        self._index = index
        self.tree = self._take("-A", "--", *_ALL_BUT_OURS)

    def put(self, tree: str, head: str) -> None:
        """Make the work tree another one, and the user's index what HEAD is to be.

        What does not differ is not touched. The index comes first: killed in between, the next try
        still sees that the work tree is another one.
        """
        other = self._index.with_name("other")
        shutil.copy2(self._index, other)
        self._git("read-tree", *(("-m", head) if head else ("--empty",)), index=other)
        self._copy.install_index(other)
        self._git("read-tree", "-m", "-u", self.tree, tree)

    def cover(self, tree: str) -> None:
        """Take what another tree would overwrite, too: ignored files that it has as its own."""
        added = self._git(
            *("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=A"),
            *(self.tree, tree),
        )
        names = [os.fsdecode(name) for name in added.split(b"\0") if name]
        in_the_way = {found for name in names if (found := _in_the_way(self._copy.folder, name))}
        if in_the_way:
            given = "\0".join(f":(top,literal){name}" for name in sorted(in_the_way))
            listed = ("--pathspec-from-file=-", "--pathspec-file-nul")
            self.tree = self._take("-A", "-f", *listed, stdin=os.fsencode(given))

    def is_lost_in(self, tree: str) -> bool:
        """Whether another tree lacks a file that is here, or has it otherwise."""
        asked = ("diff-tree", "-r", "--no-renames", "--name-only", "--diff-filter=MDT")
        return bool(self._git(*asked, self.tree, tree))

    def _take(self, *what: str, stdin: bytes = b"") -> str:
        ended = self._copy.ask("add", "--ignore-errors", *what, stdin=stdin, index=self._index)
        complaints = [line for line in ended.complaint.splitlines() if line.startswith("error: ")]
        # A repository inside that has no commit yet is left out; all else that fails, fails.
        if ended.code and not (complaints and all(_UNBORN in line for line in complaints)):
            raise refused("add", ended)
        return self._copy.without_ours(os.fsdecode(self._git("write-tree")).strip())

    def _git(self, *arguments: str, index: Path | None = None) -> bytes:
        return self._copy.call(*arguments, index=index or self._index)


def start(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    settings: Mapping[str, str],
    timeout: float,
    stdin: bytes = b"",
) -> Ended:
    """Start git for a workspace; that it could not be started, or hangs, is a typed error."""
    program = gitprocess.find()
    if program is None:
        raise WorkspaceError(
            "absent", "git is not installed", hint="install git; a workspace moves by it"
        )
    try:
        return gitprocess.run(
            program,
            arguments,
            folder=folder,
            environment=environment,
            settings=settings,
            timeout=timeout,
            stdin=stdin,
        )
    except TimeoutError as late:
        raise WorkspaceError("slow", str(late), hint="it is tried again later") from late
    except OSError as error:
        raise WorkspaceError(
            "broken", f"git could not be started: {error.strerror}", hint="git --version"
        ) from error


def refused(command: str, ended: Ended) -> WorkspaceError:
    said = f"git {command}: {ended.reason}"
    if found := _LOCKED.search(ended.complaint):
        return WorkspaceError("locked", said, hint=f"if no git is running: rm '{found[1]}'")
    return WorkspaceError("refused", said, hint="git status; git fsck")


def _in_the_way(root: Path, name: str) -> str:
    """What lies where a file is to be put: something of its name, or no folder above it."""
    parts = name.split("/")
    for length in range(1, len(parts) + 1):
        place = "/".join(parts[:length])
        path = root / place
        if not os.path.lexists(path):
            return ""
        if length == len(parts) or path.is_symlink() or not path.is_dir():
            return place
    return ""
