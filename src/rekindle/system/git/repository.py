"""Read a git repository and update a single ref, using plumbing commands.

The audit trail needs only to read refs, write objects and move one ref. Only `versions` reads HEAD,
and only `look` runs commands that read the index and the work tree. Git's configuration can make it
run programs, so every command gets an allow-listed environment (`git_process`) and Rekindle's own
configuration (`own_configuration`).
"""

import hashlib
import os
import posixpath
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from rekindle.errors import AuditError, RekindleError
from rekindle.system.git import git_process, own_configuration
from rekindle.system.git.own_configuration import RepositoryPlace
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_UPGRADE = "pip install --upgrade rekindle-agents"
_KINDS = {"commit": 1, "tree": 2, "blob": 3}
_IN_THE_WAY = re.compile(r"'refs/heads/([^']+)' exists; cannot create")
_REFUSALS = (
    # Text to find in git's message, error code, Rekindle's message (empty to show git's), hint.
    ("not a git repository", "outside", "", "create one: git init"),
    (
        "dubious ownership",
        "unsafe",
        "git refused a repository that belongs to another user",
        "`git status` shows how to allow it",
    ),
    ("bad revision 'HEAD'", "unborn", "there is no commit yet", "git log"),
    ("is outside repository", "elsewhere", "", "give the file's path relative to the repository"),
)
_TIP = "%(refname)%00%(objectname)%00%(symref)%00%(worktreepath)%00%(contents)"
_READ_SETTINGS = {"remote", "config"}
"""Git commands that read the repository's own settings but run no other programs."""


class BranchTip(msgspec.Struct, frozen=True):
    oid: str
    message: str
    symref: str
    """Target of a symbolic branch; empty for an ordinary branch."""
    checked_out: str
    """Work tree that has the branch checked out; empty if there is none."""


class GitCommit(msgspec.Struct, frozen=True):
    oid: str
    message: str


class FileVersion(msgspec.Struct, frozen=True):
    """A file's content in a commit."""

    seconds: int
    """Commit time, in seconds since 1970."""
    data: bytes
    oid: str = ""
    """Id of the commit."""


class Repository:
    """The repository that contains a folder."""

    def __init__(self, folder: Path, *, timeout: float, may_be_bare: bool = False) -> None:
        self._folder = folder
        self._timeout = timeout
        self._place: RepositoryPlace | None = None
        is_bare = may_be_bare and all((folder / name).exists() for name in ("HEAD", "objects"))
        top = folder if is_bare else own_configuration.find_top(folder)
        if top is None:
            raise AuditError(
                "outside",
                f"{folder} is not in a git repository",
                hint="create one: git init",
            )
        self.top = top
        """Top folder of the work tree, or the repository itself if it is bare."""
        self._discovery = {} if is_bare else own_configuration.DISCOVERY_SETTINGS
        program = git_process.find_git()
        if program is None:
            raise AuditError(
                "absent",
                "git is not installed",
                hint="install git; everything else works without it",
            )
        self._program = program

    def tip(self, ref: str) -> BranchTip | None:
        fields = self._run_git("for-each-ref", f"--format={_TIP}%00", ref).split("\0")
        for position in range(0, len(fields) - 5, 5):
            name, oid, symref, checked_out, message = fields[position : position + 5]
            if name.strip() == ref:
                return BranchTip(oid, message, symref, checked_out)
        return None

    def is_checked_out(self, ref: str) -> bool:
        """Return whether a work tree is on this branch, even before its first commit."""
        return f"branch {ref}" in self._run_git("worktree", "list", "--porcelain").splitlines()

    def history(self, ref: str) -> list[GitCommit]:
        """Return a branch's commits, newest first."""
        raw = self._run_git("rev-list", "--first-parent", "--header", ref, "--")
        commits = []
        for entry in raw.split("\0"):
            head, _, body = entry.partition("\n\n")
            # The message is indented, as in `git log`.
            message = "\n".join(line.removeprefix("    ") for line in body.split("\n"))
            if head:
                commits.append(GitCommit(head.split("\n", 1)[0], message))
        return commits

    def read(self, oid: str, path: str) -> bytes:
        """Return a file's content as stored in a commit, without filters or textconv."""
        return self._call(("cat-file", "blob", f"{oid}:{path}"))

    def versions(self, path: str) -> list[FileVersion]:
        """Return all versions of a file in the first-parent history, oldest first.

        The path is relative to this folder and is not a pattern. Commits that removed the file are
        skipped.
        """
        full_path = self.find_full_path(path)
        listed = self._call(
            ("rev-list", "--first-parent", "--reverse", "--timestamp", "HEAD", "--", path),
            more={"GIT_LITERAL_PATHSPECS": "1"},
        )
        commits = [line.split() for line in listed.decode().splitlines()]
        requests = "".join(f"{oid}:{full_path}\n" for _, oid in commits)
        blobs = parse_blobs(self._call(("cat-file", "--batch"), stdin=os.fsencode(requests)))
        return [
            FileVersion(int(seconds), data, oid)
            for (seconds, oid), data in zip(commits, blobs, strict=True)
            if data is not None
        ]

    def find_full_path(self, path: str) -> str:
        """Return a path in this folder relative to the repository's root."""
        prefix = os.fsdecode(self._call(("rev-parse", "--show-prefix")).removesuffix(b"\n"))
        return posixpath.normpath(prefix + path)

    def list_changes(self, old: str, new: str) -> tuple[str, ...]:
        """Return the files that differ between two commits, relative to the repository's root."""
        output = self._call(("diff-tree", "-r", "--name-only", "--no-renames", "-z", old, new))
        return tuple(os.fsdecode(path) for path in output.split(b"\0") if path)

    def new_pack(self, like: str = "") -> "GitPack":
        """Return an empty pack in the object format of the id `like` or of the repository."""
        if like:
            return GitPack("sha256" if len(like) == hashlib.sha256().digest_size * 2 else "sha1")
        object_format = self._run_git("rev-parse", "--show-object-format").strip()
        if object_format not in {"sha1", "sha256"}:
            raise AuditError(
                "newer",
                f"git's object format {object_format[:QUOTED_CHARACTERS]!r} is not supported",
                hint=_UPGRADE,
            )
        return GitPack(object_format)

    def add(self, pack: "GitPack", ref: str) -> None:
        """Write a pack's objects for a ref. Existing objects are not overwritten."""
        self._refuse_link(ref)
        self._call(("unpack-objects", "-q"), stdin=pack.data())

    def move(self, ref: str, new: str, old: str) -> bool:
        """Move a ref from `old`, or create it if `old` is empty. Return False if it has changed."""
        self._refuse_link(ref)
        try:
            self._call(("update-ref", "--no-deref", ref, new, old))
        except AuditError:
            current = self.tip(ref)
            if (current.oid if current else "") != old:
                return False
            raise
        return True

    def look(self, *arguments: str) -> str:
        """Return the output of a command that reads the work tree or the repository's settings."""
        own = arguments[0] in _READ_SETTINGS
        output = self._call_in_repository(arguments) if own else self._call(arguments)
        return output.decode(errors="surrogateescape")

    def _refuse_link(self, ref: str) -> None:
        """Raise AuditError if an agent created a symbolic link that would redirect the write."""
        try:
            place = self._find_place()
            link = place.find_link(ref)
        except OSError as error:
            raise AuditError("broken", str(error), hint="git fsck") from error
        if link is not None:
            reason, hint = place.explain_link(link)
            raise AuditError("linked", reason, hint=hint)

    def _run_git(self, *arguments: str) -> str:
        return self._call(arguments).decode(errors="replace")

    def _find_place(self) -> RepositoryPlace:
        if self._place is None:
            self._place = own_configuration.find_place(self.top, self._call_in_repository)
        return self._place

    def _call(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        more: Mapping[str, str] | None = None,
    ) -> bytes:
        try:
            own = self._find_place().make_environment()
            return self._start_git(arguments, self._folder, {**own, **(more or {})}, stdin=stdin)
        except AuditError:
            self._place = None  # an agent may have replaced the repository
            raise
        except (RekindleError, OSError) as error:
            raise AuditError("broken", str(error), hint="rekindle doctor") from error

    def _call_in_repository(self, arguments: Sequence[str]) -> bytes:
        """Read settings using the repository's own configuration."""
        # If this repository is broken, git must not fall back to one in a parent folder.
        above = {"GIT_CEILING_DIRECTORIES": str(self.top.parent)}
        return self._start_git(arguments, self.top, above, settings=self._discovery)

    def _start_git(
        self,
        arguments: Sequence[str],
        folder: Path,
        more: Mapping[str, str],
        *,
        settings: Mapping[str, str] | None = None,
        stdin: bytes = b"",
    ) -> bytes:
        try:
            ended = git_process.run_git(
                self._program,
                arguments,
                folder=folder,
                environment=git_process.inherit_variables(git_process.ENVIRONMENT)
                | git_process.OWN_ENVIRONMENT
                | dict(more),
                settings=git_process.SAFE_SETTINGS | dict(settings or {}),
                timeout=self._timeout,
                stdin=stdin,
            )
        except TimeoutError as late:
            raise AuditError(
                "slow",
                str(late),
                hint="Rekindle will retry later; to retry now: rekindle doctor --fix",
            ) from late
        except OSError as error:
            raise AuditError(
                "broken", f"git could not be started: {error.strerror}", hint="git --version"
            ) from error
        if ended.code:
            raise _make_refusal(arguments[0], ended.complaint)
        return ended.out


class GitPack:
    """A pack of git objects, so that one `unpack-objects` call can write them all."""

    def __init__(self, object_format: str) -> None:
        self._hash = object_format
        self._objects: list[bytes] = []

    def blob(self, data: bytes) -> str:
        return self._add_object("blob", data)

    def tree(self, files: Mapping[str, str]) -> str:
        """Add a flat tree of regular files. `files` maps each name to its blob."""
        return self._add_object(
            "tree",
            b"".join(
                b"100644 %s\0%s" % (name.encode(), bytes.fromhex(blob))
                for name, blob in sorted(files.items())
            ),
        )

    def commit(self, tree: str, parents: Iterable[str], message: str, seconds: int) -> str:
        author = f"Rekindle <rekindle@localhost> {max(seconds, 0)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {author}",
            f"committer {author}",
            "",
            message,
        ]
        return self._add_object("commit", "\n".join(lines).encode())

    def data(self) -> bytes:
        pack = b"PACK" + struct.pack(">II", 2, len(self._objects)) + b"".join(self._objects)
        return pack + self._digest(pack)

    def _add_object(self, kind: str, data: bytes) -> str:
        # The first byte holds four bits of the size, and each following byte seven more.
        size, byte = len(data) >> 4, _KINDS[kind] << 4 | len(data) & 0x0F
        head = bytearray()
        while size:
            head.append(byte | 0x80)
            size, byte = size >> 7, size & 0x7F
        head.append(byte)
        self._objects.append(bytes(head) + zlib.compress(data))
        return self._digest(b"%s %d\0%s" % (kind.encode(), len(data), data)).hex()

    def _digest(self, data: bytes) -> bytes:
        return hashlib.new(self._hash, data, usedforsecurity=False).digest()


def parse_blobs(batch: bytes) -> list[bytes | None]:
    """Parse the output of `cat-file --batch`. Missing objects and non-blobs are None."""
    blobs: list[bytes | None] = []
    position = 0
    while position < len(batch):
        end = batch.index(b"\n", position)
        words = batch[position:end].split(b" ")
        position = end + 1
        if words[-1] in {b"missing", b"submodule"}:
            blobs.append(None)
            continue
        size = int(words[-1])
        blobs.append(batch[position : position + size] if words[-2] == b"blob" else None)
        position += size + 1
    return blobs


def _make_refusal(command: str, complaint: str) -> AuditError:
    """Return git's message as an error, if possible with a hint that fixes the problem."""
    stated = git_process.find_reason(complaint)
    if match := _IN_THE_WAY.search(complaint):
        branch = match[1]
        return AuditError(
            "in-the-way",
            f"the existing branch {branch} blocks the audit branch",
            hint=f"git branch -m {branch} {branch.replace('/', '-')}-old",
        )
    if match := git_process.LOCKED.search(complaint):
        return AuditError(
            "locked",
            f"git {command}: {stated}",
            hint=f"if no git process is running: rm '{match[1]}'",
        )
    for phrase, cause, reason, hint in _REFUSALS:
        if phrase in complaint:
            return AuditError(cause, reason or stated, hint=hint)
    return AuditError("refused", f"git {command}: {stated}", hint="run: git status; git fsck")
