"""Git, by plumbing alone: a repository that is read, and where one ref is moved.

What is called here for the audit trail reads refs, unpacks objects and moves one ref. Only
`versions` looks at HEAD; `look` alone is for commands that look at the index and the work tree, and
these write nothing. Git can still be told by its configuration to run programs, so every call is
given an environment from an allow-list and settings that turn all of that off (`gitprocess`).
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

from rekindle.errors import AuditError
from rekindle.system import gitprocess
from rekindle.system.gitprocess import configured
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_UPGRADE = "pip install --upgrade rekindle-agents"
_KINDS = {"commit": 1, "tree": 2, "blob": 3}
_IN_THE_WAY = re.compile(r"'refs/heads/([^']+)' exists; cannot create")
_LOCKED = re.compile(r"Unable to create '([^']+\.lock)': File exists")
_REFUSALS = (
    # What git says, our word for it, what we say (empty: what git said), and what mends it.
    ("not a git repository", "outside", "", "to have one: git init"),
    (
        "dubious ownership",
        "unsafe",
        "git refuses a repository that belongs to another user",
        "git status says how to allow it",
    ),
    ("bad revision 'HEAD'", "unborn", "there is no commit yet", "git log"),
    ("is outside repository", "elsewhere", "", "name the file as it is seen from the repository"),
)
_TIP = "%(refname)%00%(objectname)%00%(symref)%00%(worktreepath)%00%(contents)"
_READ_NO_FILE = {"rev-parse", "log", "remote", "config"}
"""Commands that look at objects and settings alone."""


class Tip(msgspec.Struct, frozen=True):
    """Where a branch stands."""

    oid: str
    message: str
    symref: str
    """The branch that it is only another name for."""
    checked_out: str
    """The work tree that has it checked out."""


class Commit(msgspec.Struct, frozen=True):
    oid: str
    message: str


class Version(msgspec.Struct, frozen=True):
    """A file as a commit has it."""

    seconds: int
    """When it was committed."""
    data: bytes


class Repository:
    """The repository that a folder belongs to."""

    def __init__(self, folder: Path, *, timeout: float, may_be_bare: bool = False) -> None:
        self._folder = folder
        self._timeout = timeout
        absolute = folder.absolute()
        is_bare = may_be_bare and all(_is_there(absolute / name) for name in ("HEAD", "objects"))
        places = (absolute, *absolute.parents)
        if not is_bare and not any(_is_there(place / ".git") for place in places):
            raise AuditError(
                "outside",
                f"{folder} is in no git repository",
                hint="to have one: git init",
            )
        program = gitprocess.find()
        if program is None:
            raise AuditError(
                "absent", "git is not installed", hint="install git; all else works without it"
            )
        self._program = program

    def tip(self, ref: str) -> Tip | None:
        found = self._run("for-each-ref", f"--format={_TIP}%00", ref).split("\0")
        for place in range(0, len(found) - 5, 5):
            name, oid, symref, checked_out, message = found[place : place + 5]
            if name.strip() == ref:
                return Tip(oid, message, symref, checked_out)
        return None

    def is_checked_out(self, ref: str) -> bool:
        """Whether a work tree is on this branch, be it that nobody has committed to it yet."""
        return f"branch {ref}" in self._run("worktree", "list", "--porcelain").splitlines()

    def history(self, ref: str) -> list[Commit]:
        """The commits of a branch, newest first."""
        raw = self._run("rev-list", "--first-parent", "--header", ref, "--")
        found = []
        for one in raw.split("\0"):
            head, _, body = one.partition("\n\n")
            # The message is indented, as git log has it.
            message = "\n".join(line.removeprefix("    ") for line in body.split("\n"))
            if head:
                found.append(Commit(head.split("\n", 1)[0], message))
        return found

    def read(self, oid: str, path: str) -> bytes:
        """A file of a commit, as it is stored: no filter, no textconv."""
        return self._call(("cat-file", "blob", f"{oid}:{path}"))

    def versions(self, path: str) -> list[Version]:
        """What a file was in each commit that changed it, along the first parents, oldest first.

        The path is seen from this folder, and taken literally. Where it was removed it is left out.
        """
        prefix = os.fsdecode(self._call(("rev-parse", "--show-prefix")).removesuffix(b"\n"))
        place = posixpath.normpath(prefix + path)
        listed = self._call(
            ("rev-list", "--first-parent", "--reverse", "--timestamp", "HEAD", "--", path),
            more={"GIT_LITERAL_PATHSPECS": "1"},
        )
        commits = [line.split() for line in listed.decode().splitlines()]
        asked = "".join(f"{oid}:{place}\n" for _, oid in commits)
        found = _blobs(self._call(("cat-file", "--batch"), stdin=os.fsencode(asked)))
        return [
            Version(int(seconds), data)
            for (seconds, _), data in zip(commits, found, strict=True)
            if data is not None
        ]

    def new_pack(self, like: str = "") -> "Pack":
        """An empty pack for this repository's kind of object id; `like` is one of them."""
        if like:
            return Pack("sha256" if len(like) == hashlib.sha256().digest_size * 2 else "sha1")
        found = self._run("rev-parse", "--show-object-format").strip()
        if found not in {"sha1", "sha256"}:
            raise AuditError(
                "newer",
                f"object ids of the kind {found[:QUOTED_CHARACTERS]!r} are not known here",
                hint=_UPGRADE,
            )
        return Pack(found)

    def add(self, pack: "Pack") -> None:
        """Write the objects of a pack; those that are there already stay as they are."""
        self._call(("unpack-objects", "-q"), stdin=pack.data())

    def move(self, ref: str, new: str, old: str) -> bool:
        """Point a ref elsewhere if it still stands at `old`; an empty `old`: if it is not there."""
        try:
            self._call(
                ("update-ref", "--no-deref", ref, new, old), more=self._configured_hooks_off()
            )
        except AuditError:
            found = self.tip(ref)
            if (found.oid if found else "") != old:
                return False
            raise
        return True

    def look(self, *arguments: str) -> str:
        """What a command says that reads the work tree; the filters that it would run are off.

        Those that read no file run none: who waits for them is spared the question.
        """
        pattern = r"^filter\..*\.(clean|process|required)$"
        named = [] if arguments[0] in _READ_NO_FILE else self._named(pattern)
        off = {name: "false" if name.endswith("required") else "" for name in named}
        return self._call(arguments, more=configured(off)).decode(errors="surrogateescape")

    def _configured_hooks_off(self) -> dict[str, str]:
        """From git 2.54 on a hook can be a mere setting, which core.hooksPath does not turn off."""
        names = self._named(r"^hook\..*\.event$")
        return configured({f"{name.removesuffix('.event')}.enabled": "false" for name in names})

    def _named(self, pattern: str) -> list[str]:
        """The settings whose names fit."""
        listed = self._call(
            ("config", "--null", "--name-only", "--get-regexp", pattern),
            may_fail_with=1,  # there is none
        )
        return listed.decode(errors="replace").split("\0")[:-1]

    def _run(self, *arguments: str) -> str:
        return self._call(arguments).decode(errors="replace")

    def _call(
        self,
        arguments: Sequence[str],
        *,
        stdin: bytes = b"",
        more: Mapping[str, str] | None = None,
        may_fail_with: int = 0,
    ) -> bytes:
        try:
            ended = gitprocess.run(
                self._program,
                arguments,
                folder=self._folder,
                environment=gitprocess.inherited(gitprocess.ENVIRONMENT)
                | gitprocess.OWN_ENVIRONMENT
                | dict(more or {}),
                settings=gitprocess.SETTINGS,
                timeout=self._timeout,
                stdin=stdin,
            )
        except TimeoutError as late:
            raise AuditError(
                "slow",
                str(late),
                hint="it is tried again later, or now with: rekindle doctor --fix",
            ) from late
        except OSError as error:
            raise AuditError(
                "broken", f"git could not be started: {error.strerror}", hint="git --version"
            ) from error
        if ended.code not in {0, may_fail_with}:
            raise _refused(arguments[0], ended.complaint)
        return ended.out


class Pack:
    """Objects for one call of unpack-objects, instead of one call of git for each of them."""

    def __init__(self, object_format: str) -> None:
        self._hash = object_format
        self._objects: list[bytes] = []

    def blob(self, data: bytes) -> str:
        return self._add("blob", data)

    def tree(self, files: Mapping[str, str]) -> str:
        """A flat tree of plain files: name → blob."""
        return self._add(
            "tree",
            b"".join(
                b"100644 %s\0%s" % (name.encode(), bytes.fromhex(blob))
                for name, blob in sorted(files.items())
            ),
        )

    def commit(self, tree: str, parents: Iterable[str], message: str, seconds: int) -> str:
        who = f"Rekindle <rekindle@localhost> {max(seconds, 0)} +0000"
        lines = [
            f"tree {tree}",
            *(f"parent {parent}" for parent in parents),
            f"author {who}",
            f"committer {who}",
            "",
            message,
        ]
        return self._add("commit", "\n".join(lines).encode())

    def data(self) -> bytes:
        pack = b"PACK" + struct.pack(">II", 2, len(self._objects)) + b"".join(self._objects)
        return pack + self._digest(pack)

    def _add(self, kind: str, data: bytes) -> str:
        # The size: four bits beside the kind, then seven to a byte, the lowest first.
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


def _blobs(batch: bytes) -> list[bytes | None]:
    """The answers of `cat-file --batch`, in their order; None for what is not there, or no file."""
    found: list[bytes | None] = []
    place = 0
    while place < len(batch):
        end = batch.index(b"\n", place)
        words = batch[place:end].split(b" ")
        place = end + 1
        if words[-1] in {b"missing", b"submodule"}:
            found.append(None)
            continue
        size = int(words[-1])
        found.append(batch[place : place + size] if words[-2] == b"blob" else None)
        place += size + 1
    return found


def _is_there(path: Path) -> bool:
    """Whether there is something; what we may not even look at is nothing to us."""
    try:
        path.lstat()
    except OSError:
        return False
    return True


def _refused(command: str, complaint: str) -> AuditError:
    """What git said, with the command that mends it where we know one."""
    said = gitprocess.reason(complaint)
    if found := _IN_THE_WAY.search(complaint):
        there = found[1]
        return AuditError(
            "in-the-way",
            f"the branch {there} is in the way",
            hint=f"git branch -m {there} {there.replace('/', '-')}-old",
        )
    if found := _LOCKED.search(complaint):
        return AuditError(
            "locked", f"git {command}: {said}", hint=f"if no git is running: rm '{found[1]}'"
        )
    for phrase, cause, reason, hint in _REFUSALS:
        if phrase in complaint:
            return AuditError(cause, reason or said, hint=hint)
    return AuditError("refused", f"git {command}: {said}", hint="git status; git fsck")
