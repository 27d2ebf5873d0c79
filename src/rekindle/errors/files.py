"""Errors about files: rekindle.yaml, documents and the file system."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from rekindle.errors.root import RekindleError


class ManifestError(RekindleError):
    """Raised when rekindle.yaml is not valid. The message names the line."""

    exit_code = 3
    meaning = "rekindle.yaml is missing or invalid (the message names the line)"

    def __init__(
        self, message: str, *, file: str = "rekindle.yaml", line: int | None = None, hint: str = ""
    ) -> None:
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.message = message
        self.file = file
        self.line = line


class ManifestMissingError(ManifestError):
    """Raised when there is no rekindle.yaml in this folder or any folder above."""

    def __init__(self, start: str) -> None:
        super().__init__(
            f"not found in {start} or any folder above it",
            hint="run `rekindle init` in the folder that your agent works in",
        )
        self.start = start


class NotifyError(ManifestError):
    """Raised when an address in `notify:` cannot be used. The message omits the address."""


class NotifyVariableError(NotifyError):
    """Raised when a variable in `notify:` is empty or not set on the sending host."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"`notify:` names the variable ${variable}, which is empty or not set here",
            hint=f"set {variable} in the environment that starts Rekindle (on a fleet, on every "
            "host); write a literal dollar sign as %24",
        )
        self.variable = variable


class UnacceptedError(ManifestError):
    """Raised when the operator must accept settings that an agent may have written."""

    def __init__(self, settings: str, reason: str, accepted_by: str) -> None:
        super().__init__(f"{settings}: {reason}", hint=f"check rekindle.yaml, then {accepted_by}")
        self.settings = settings
        self.reason = reason


class UnenforceableError(ManifestError):
    """Raised when a persona has a permission rule that its CLI cannot enforce."""

    def __init__(self, program: str, rule: str, *, hint: str) -> None:
        super().__init__(f"{program} cannot enforce the permission {rule!r}", hint=hint)
        self.program = program
        self.rule = rule


class ContractError(ManifestError):
    """Raised when a pipeline's contract cannot be checked on this host."""


class UntrustedError(RekindleError):
    """Raised when this user has not accepted the folder's manifest and state on this host."""

    exit_code = 11
    meaning = "you have not accepted this folder and its rekindle.yaml on this host"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(
            f"{folder} is not trusted: you have not accepted its rekindle.yaml on this host",
            hint="read rekindle.yaml, then repeat the command with --trust; for a command without"
            " that option, set REKINDLE_TRUST=1",
        )


class DocumentError(RekindleError):
    """Raised when a file or record is not a valid document."""

    exit_code = 4
    meaning = "a document could not be parsed"

    def __init__(self, document: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{document}: {reason}", hint=hint)
        self.document = document
        self.reason = reason


class ForgedCommandError(DocumentError):
    """Raised when a record in the workspace claims to be a command from the operator."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            "inbox record",
            f"{kind} is a command that only the operator can give",
            hint=(
                "check what the agent did: the agent, or a program that it started, wrote the "
                "record"
            ),
        )
        self.kind = kind


class LogMissingError(DocumentError):
    """Raised when an agent's log is missing, although other files show that it existed."""

    def __init__(self, folder: str, trace: str) -> None:
        super().__init__(
            "ops.jsonl",
            f"is missing or empty, although {trace}",
            hint=f"restore it from a backup; to start again without it, move {folder} away",
        )
        self.folder = folder
        self.trace = trace


class NewerSchemaError(DocumentError):
    """Raised for a file from a newer version of Rekindle, because reading it would lose data."""

    def __init__(self, document: str, found: int, known: int) -> None:
        super().__init__(
            document,
            f"has schema {found}, and this version of Rekindle reads up to {known}",
            hint="upgrade it with `uv tool upgrade rekindle-agents` or"
            " `pip install --upgrade rekindle-agents`",
        )
        self.found = found
        self.known = known


_TAMPERED = {
    "appended": "lines were added to its log that Rekindle did not write; they do not count",
    "missing": "its log is gone",
    "unsealed": "its log is new to Rekindle at this path: it was copied, cloned or moved here",
}


class TamperedLogError(DocumentError):
    """Raised when the log is not as Rekindle wrote it on this host. The agent is not started."""

    def __init__(self, agent: str, condition: str) -> None:
        super().__init__(
            f"agent {agent}",
            _TAMPERED.get(condition, "its log was changed by something other than Rekindle"),
            hint=f"check what the agent did, and ops.jsonl; then run `rekindle restart {agent}` to "
            "continue",
        )
        self.agent = agent
        self.condition = condition


class StoreError(RekindleError):
    """Raised when the file system refuses an operation. Acknowledged data is intact."""

    exit_code = 5
    meaning = "a file operation failed, but all acknowledged data is intact"

    def __init__(self, path: str, reason: str, *, errno: int | None = None, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason
        self.errno = errno


class AuditError(StoreError):
    """Raised when the git audit trail cannot be used. The log and the archive are complete."""

    def __init__(self, cause: str, reason: str, *, hint: str) -> None:
        super().__init__("git audit trail", reason, hint=hint)
        self.cause = cause
        """Name of the obstacle, which stays the same until the obstacle is removed."""


class StopUnrecordedError(StoreError):
    """Raised when a stop could not be recorded. A running supervisor was stopped by a signal."""

    exit_code = 13
    meaning = "the agent was stopped, but the stop could not be recorded in its folder"

    def __init__(self, agent: str, reason: str, *, was_running: bool, kept: bool) -> None:
        outcome = "stopped by a signal" if was_running else "is not running"
        RekindleError.__init__(
            self,
            f"{agent}: {outcome}; the stop could not be recorded in its folder ({reason})",
            hint="the stop is recorded outside the folder, so nothing starts the agent again on "
            "this host; once the folder is writable again, the next command records it there"
            if kept
            else "the stop could not be recorded outside the folder either, so a watchdog may "
            "start the agent again; free some space or make the disk writable, then repeat "
            "the command",
        )
        self.path, self.reason, self.errno = "", reason, None
        self.agent = agent
        self.was_running = was_running
        self.kept = kept
        """Whether the stop is recorded outside the agent's folder."""


class OversizedError(StoreError):
    """Raised when a file is too large to read in one piece."""

    def __init__(self, path: str, most: int) -> None:
        super().__init__(
            path,
            f"is larger than {most:,} bytes",
            hint=(
                "the file does not look like one of Rekindle's: move it away, or make it shorter"
            ),
        )
        self.most = most


class UnsafePathError(StoreError):
    """Raised when one of Rekindle's files is a symbolic link or has an unsafe name."""


class WorkspaceError(StoreError):
    """Raised when a workspace cannot be fetched or pushed. Earlier pushes are safe."""

    def __init__(self, cause: str, reason: str, *, hint: str) -> None:
        super().__init__("workspace", reason, hint=hint)
        self.cause = cause
        """Name of the obstacle, which stays the same until the obstacle is removed."""


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and repeat the command",
    errno.EDQUOT: "the disk quota is used up: free some space and repeat the command",
    errno.EROFS: "the file system is read-only: remount it, or move the project",
    errno.EACCES: "give your user access to the file and to its folder",
    errno.EPERM: "give your user access to the file and to its folder",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n) and repeat the command",
    errno.ENFILE: "too many open files on this machine: close some and repeat the command",
    errno.EIO: "the disk reported an error: check it before you continue (dmesg, smartctl)",
    errno.ENOLCK: "this file system has no locks: move the project (see `rekindle torture`)",
    errno.EOPNOTSUPP: "this file system cannot do this: move the project (see `rekindle torture`)",
    errno.ELOOP: "there is a symbolic link instead of a regular file: remove the link",
}


@contextmanager
def translate_os_errors(path: object) -> Iterator[None]:
    """Convert an OSError into a StoreError that names the path."""
    try:
        yield
    except OSError as refused:
        number = refused.errno or 0
        kind = UnsafePathError if number == errno.ELOOP else StoreError
        raise kind(
            str(path),
            refused.strerror or str(refused),
            errno=refused.errno,
            hint=_HINTS.get(number, "run `rekindle doctor` to see what is wrong"),
        ) from refused
