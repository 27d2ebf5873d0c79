"""Git, by plumbing alone. The only module that starts it.

What is called here for the audit trail reads refs, unpacks objects and moves one ref. Only
`versions` looks at HEAD; `look` alone is for commands that look at the index and the work tree, and
these write nothing. Git can still be told by its configuration to run programs, so every call is
given an environment from an allow-list and settings that turn all of that off.
"""

import hashlib
import os
import posixpath
import re
import shutil
import signal
import struct
import subprocess
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents.identity import one_line
from rekindle.errors import AuditError

_ENVIRONMENT = (
    # Where git finds itself, and the user's own word on which folders are safe. Above all not
    # GIT_DIR, GIT_INDEX_FILE and their like, which a hook that runs us hands down.
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "SUDO_UID",
    "TMPDIR",
)
_OWN_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_COMMITTER_NAME": "Rekindle",
    "GIT_COMMITTER_EMAIL": "rekindle@localhost",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # what an older git would fetch lazily all the same
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_TRACE2": "0",
    "GIT_TRACE2_EVENT": "0",
    "GIT_TRACE2_PERF": "0",
}
_SETTINGS = {
    "core.hooksPath": "/dev/null",  # update-ref runs reference-transaction
    "core.fsmonitor": "false",
    "core.sshCommand": "false",
    "core.askPass": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "core.logAllRefUpdates": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "color.ui": "false",
    # A ref that outlives the objects it names breaks the user's repository after a power loss.
    "core.fsync": "loose-object,reference",
}
_UPGRADE = "pip install --upgrade rekindle"
_SECONDS_TO_DIE = 0.5
_COMPLAINT_CHARACTERS = 1000
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
        program = shutil.which("git")
        if program is None:
            raise AuditError(
                "absent", "git is not installed", hint="install git; all else works without it"
            )
        self._program = str(Path(program).absolute())

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
                "newer", f"object ids of the kind {found[:20]!r} are not known here", hint=_UPGRADE
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
        """What a command says that reads the work tree; the filters that it would run are off."""
        pattern = r"^filter\..*\.(clean|process|required)$"
        off = {name: "false" if name.endswith("required") else "" for name in self._named(pattern)}
        return self._call(arguments, more=_configured(off)).decode(errors="surrogateescape")

    def _configured_hooks_off(self) -> dict[str, str]:
        """From git 2.54 on a hook can be a mere setting, which core.hooksPath does not turn off."""
        names = self._named(r"^hook\..*\.event$")
        return _configured({f"{name.removesuffix('.event')}.enabled": "false" for name in names})

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
        settings = [word for key, value in _SETTINGS.items() for word in ("-c", f"{key}={value}")]
        inherited = {key: os.environ[key] for key in _ENVIRONMENT if key in os.environ}
        try:
            process = subprocess.Popen(  # noqa: S603 - argv, no shell, a program found beforehand
                [self._program, "--no-pager", *settings, *arguments],
                cwd=self._folder,
                env=inherited | _OWN_ENVIRONMENT | dict(more or {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C ends us, not a git between its lock and its ref; and no terminal to ask on.
                start_new_session=True,
            )
        except OSError as error:
            raise AuditError(
                "broken", f"git could not be started: {error.strerror}", hint="git --version"
            ) from error
        try:
            out, complaint = process.communicate(stdin, self._timeout)
        except subprocess.TimeoutExpired as late:
            _end(process)
            raise AuditError(
                "slow",
                f"git {arguments[0]} took longer than {self._timeout:g} s",
                hint="it is tried again later, or now with: rekindle doctor --fix",
            ) from late
        if process.returncode not in {0, may_fail_with}:
            raise _refused(arguments[0], complaint.decode(errors="replace"))
        return out


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


def _configured(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as an environment; a name may hold what no `-c` could."""
    more = {"GIT_CONFIG_COUNT": str(len(settings))} if settings else {}
    for number, (name, value) in enumerate(settings.items()):
        more |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return more


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


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a git that hangs: asked first, for then it removes its lock files; never waited for."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)  # it leads a session of its own: its children too
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_SECONDS_TO_DIE)
            return
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _refused(command: str, complaint: str) -> AuditError:
    """What git said, with the command that mends it where we know one."""
    said = _reason(complaint) or "it did not say why"
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


def _reason(complaint: str) -> str:
    """The first line that says what failed, without warnings before it and advice after it."""
    lines = [line for line in complaint.splitlines() if line.strip()]
    failed = [line for line in lines if line.startswith(("error: ", "fatal: "))]
    return one_line([*failed, *lines, ""][0], _COMPLAINT_CHARACTERS)
