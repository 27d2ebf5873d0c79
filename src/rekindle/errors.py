"""All exceptions that Rekindle raises on purpose.

The exception tree, with the exit code that a command returns for each:

    RekindleError                     1
    ├── UsageError                    2
    │   └── AnswerError               2
    ├── ManifestError                 3
    │   ├── ManifestMissingError      3
    │   ├── NotifyError               3
    │   │   └── NotifyVariableError   3
    │   ├── UnacceptedError           3
    │   └── UnenforceableError        3
    ├── DocumentError                 4
    │   ├── ForgedCommandError        4
    │   ├── LogMissingError           4
    │   ├── NewerSchemaError          4
    │   └── TamperedLogError          4
    ├── StoreError                    5
    │   ├── AuditError                5
    │   ├── OversizedError            5
    │   ├── StopUnrecordedError       13
    │   ├── UnsafePathError           5
    │   └── WorkspaceError            5
    ├── OwnershipError                6
    │   ├── BusyError                 6
    │   │   └── ConfinedError         6
    │   ├── FencedError               6
    │   ├── FolderLostError           12
    │   ├── ForeignOwnerError         6
    │   │   └── OnFleetError          6
    │   ├── StalePushError            6
    │   └── SupervisedError           6
    ├── NotFoundError                 7
    │   ├── ClosedQuestionError       7
    │   ├── NotOnFleetError           7
    │   ├── UnknownAgentError         7
    │   └── UnknownQuestionError      7
    ├── CheckFailedError              8
    ├── AgentError                    9
    │   ├── PluginError               9
    │   ├── ProgramMissingError       9
    │   ├── StoppedError              9
    │   ├── SummaryError              9
    │   │   └── OverBudgetError       9
    │   └── UnfinishedError           9
    ├── EngineError                   10
    │   ├── CodecKeyError             10
    │   └── PlainTextError            10
    ├── UntrustedError                11
    └── CalledByAgentError            14

An error states what happened (`str(error)`), carries its data as attributes, and tells the user
what to do next (`error.hint`).
"""

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

__all__ = [
    "AgentError",
    "AnswerError",
    "AuditError",
    "BusyError",
    "CalledByAgentError",
    "CheckFailedError",
    "ClosedQuestionError",
    "CodecKeyError",
    "ConfinedError",
    "DocumentError",
    "EngineError",
    "FencedError",
    "FolderLostError",
    "ForeignOwnerError",
    "ForgedCommandError",
    "LogMissingError",
    "ManifestError",
    "ManifestMissingError",
    "NewerSchemaError",
    "NotFoundError",
    "NotOnFleetError",
    "NotifyError",
    "NotifyVariableError",
    "OnFleetError",
    "OverBudgetError",
    "OversizedError",
    "OwnershipError",
    "PlainTextError",
    "PluginError",
    "ProgramMissingError",
    "RekindleError",
    "StalePushError",
    "StopUnrecordedError",
    "StoppedError",
    "StoreError",
    "SummaryError",
    "SupervisedError",
    "TamperedLogError",
    "UnacceptedError",
    "UnenforceableError",
    "UnfinishedError",
    "UnknownAgentError",
    "UnknownQuestionError",
    "UnsafePathError",
    "UntrustedError",
    "UsageError",
    "WorkspaceError",
    "translate_os_errors",
]


class RekindleError(Exception):
    """The root: catch this to catch everything that Rekindle raises on purpose."""

    exit_code = 1
    meaning = "an error without a more specific code"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(RekindleError):
    """A name or an option is not valid."""

    exit_code = 2
    meaning = "the command line is wrong"


class AnswerError(UsageError):
    """The question does not take this answer."""

    def __init__(self, question: str, reason: str, choices: Iterable[str]) -> None:
        self.question, self.reason, self.choices = question, reason, tuple(choices)
        super().__init__(
            f"question {question}: the answer {reason}",
            hint=f"its choices: {', '.join(self.choices)}; `rekindle questions` shows it",
        )


class ManifestError(RekindleError):
    """rekindle.yaml is not valid; the error names the line."""

    exit_code = 3
    meaning = "rekindle.yaml is missing or wrong; the line is named"

    def __init__(
        self, message: str, *, file: str = "rekindle.yaml", line: int | None = None, hint: str = ""
    ) -> None:
        where = file if line is None else f"{file}:{line}"
        super().__init__(f"{where}: {message}", hint=hint)
        self.message = message
        self.file = file
        self.line = line


class ManifestMissingError(ManifestError):
    """There is no rekindle.yaml here or in any folder above."""

    def __init__(self, start: str) -> None:
        super().__init__(
            f"not found in {start} or any folder above it",
            hint="run `rekindle init` in the folder that your agent works in",
        )
        self.start = start


class NotifyError(ManifestError):
    """An address under `notify:` cannot be used. The error does not show the address."""


class NotifyVariableError(NotifyError):
    """A variable that `notify:` names is empty or not set on the host that sends."""

    def __init__(self, variable: str) -> None:
        super().__init__(
            f"`notify:` names the variable ${variable}, which is empty or not set here",
            hint=f"set {variable} where Rekindle is started, on a fleet on every host; for a dollar"
            " sign itself write %24",
        )
        self.variable = variable


class UnacceptedError(ManifestError):
    """The operator has not accepted settings of this manifest; an agent may have written them."""

    def __init__(self, settings: str, reason: str, accepted_by: str) -> None:
        super().__init__(f"{settings}: {reason}", hint=f"check rekindle.yaml, then {accepted_by}")
        self.settings = settings
        self.reason = reason


class UnenforceableError(ManifestError):
    """A persona has a permission rule that its CLI cannot enforce."""

    def __init__(self, program: str, rule: str, *, hint: str) -> None:
        super().__init__(f"{program} cannot hold an agent to the permission {rule!r}", hint=hint)
        self.program = program
        self.rule = rule


class DocumentError(RekindleError):
    """The bytes do not form a valid document."""

    exit_code = 4
    meaning = "a document could not be read"

    def __init__(self, document: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{document}: {reason}", hint=hint)
        self.document = document
        self.reason = reason


class ForgedCommandError(DocumentError):
    """A record in the workspace claims to be the operator's command; it is rejected."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            "inbox record",
            f"{kind} is a command that only the operator can give",
            hint="look at what the agent did: it, or a program it started, wrote the record",
        )
        self.kind = kind


class LogMissingError(DocumentError):
    """An agent's log is gone, and other files show that there was one."""

    def __init__(self, folder: str, trace: str) -> None:
        super().__init__(
            "ops.jsonl",
            f"is missing or empty, but {trace}",
            hint=f"restore it from a backup; to start again without it, move {folder} away",
        )
        self.folder = folder
        self.trace = trace


class NewerSchemaError(DocumentError):
    """A newer Rekindle wrote this; reading it here would lose data."""

    def __init__(self, document: str, found: int, known: int) -> None:
        super().__init__(
            document,
            f"has schema {found}, this Rekindle knows up to {known}",
            hint="upgrade Rekindle: pip install --upgrade rekindle-agents",
        )
        self.found = found
        self.known = known


_TAMPERED = {
    "appended": "lines were added to its log that Rekindle did not write; they do not count",
    "missing": "its log is gone",
    "unsealed": "its log is new to Rekindle at this path: it was copied, cloned or moved here",
}


class TamperedLogError(DocumentError):
    """The log is not the one that Rekindle wrote on this host, so it starts no agent."""

    def __init__(self, agent: str, condition: str) -> None:
        super().__init__(
            f"agent {agent}",
            _TAMPERED.get(condition, "its log was changed by something other than Rekindle"),
            hint="look at what the agent did, and at ops.jsonl; then `rekindle restart"
            f" {agent}` continues",
        )
        self.agent = agent
        self.condition = condition


class StoreError(RekindleError):
    """The file system refused an operation; everything acknowledged before is intact."""

    exit_code = 5
    meaning = "the file system refused; what was acknowledged before is intact"

    def __init__(self, path: str, reason: str, *, errno: int | None = None, hint: str = "") -> None:
        super().__init__(f"{path}: {reason}", hint=hint)
        self.path = path
        self.reason = reason
        self.errno = errno


class AuditError(StoreError):
    """The git audit trail cannot be written or read; log and archive have everything."""

    def __init__(self, cause: str, reason: str, *, hint: str) -> None:
        super().__init__("git audit trail", reason, hint=hint)
        self.cause = cause
        """A word that identifies the obstacle, for as long as it persists."""


class StopUnrecordedError(StoreError):
    """The agent's folder could not record a stop; a live supervisor was stopped by a signal."""

    exit_code = 13
    meaning = "the agent was stopped, and its folder could not record that"

    def __init__(self, agent: str, reason: str, *, was_running: bool, kept: bool) -> None:
        outcome = "stopped by a signal" if was_running else "is not running"
        RekindleError.__init__(
            self,
            f"{agent}: {outcome}; its folder could not record the stop ({reason})",
            hint="the stop is noted outside the folder, so that nothing starts the agent again"
            " on this host; when the folder is writable again, the next command records it"
            if kept
            else "the stop could not be noted outside the folder either: a watchdog may start the"
            " agent again; free some space or make the disk writable, then repeat the command",
        )
        self.path, self.reason, self.errno = "", reason, None
        self.agent = agent
        self.was_running = was_running
        self.kept = kept
        """Whether the stop is recorded outside the folder."""


class OversizedError(StoreError):
    """A file is too large to read at once."""

    def __init__(self, path: str, most: int) -> None:
        super().__init__(
            path,
            f"is larger than {most:,} bytes",
            hint="it does not look like one of Rekindle's files: move it away, or make it shorter",
        )
        self.most = most


class UnsafePathError(StoreError):
    """A symbolic link or an unsafe name takes the place of one of Rekindle's files."""


class WorkspaceError(StoreError):
    """A workspace could not be fetched or pushed; earlier pushes are safe at its remote."""

    def __init__(self, cause: str, reason: str, *, hint: str) -> None:
        super().__init__("workspace", reason, hint=hint)
        self.cause = cause
        """A word that identifies the obstacle, for as long as it persists."""


class OwnershipError(RekindleError):
    """Another process or host is this agent's writer."""

    exit_code = 6
    meaning = "another process or host owns the agent"


class BusyError(OwnershipError):
    """Another process on this host holds the agent's lock."""

    def __init__(self, agent: str, waited: float) -> None:
        super().__init__(
            f"agent {agent} is busy: another process still held its lock after {waited:g} s"
            if waited
            else f"agent {agent} is busy: another process is already using it",
            hint="wait until it is done, then try again",
        )
        self.agent = agent
        self.waited = waited


class ConfinedError(BusyError):
    """This process may not write to the user's folder, because it runs in an agent's sandbox.

    A process outside the sandbox must write instead, as if it held the lock.
    """

    def __init__(self, agent: str, path: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent}: {path} is read-only for this process, as in an agent's sandbox",
            hint="run the command in a terminal, outside the agent's sandbox",
        )
        self.agent = agent
        self.waited = 0.0
        self.path = path


class FolderLostError(OwnershipError):
    """The folder that a supervisor works from was removed or replaced under it."""

    exit_code = 12
    meaning = "the agent's folder was removed or replaced under its supervisor; the agent was ended"

    def __init__(self, agent: str, path: str, reason: str) -> None:
        super().__init__(
            f"agent {agent}: its folder {path} is not the one it was started in: {reason};"
            " the agent was ended",
            hint=f"look at the folder, then `rekindle up {agent}` (in its new place, if you moved"
            " the project)",
        )
        self.agent = agent
        self.path = path
        self.reason = reason


class FencedError(OwnershipError):
    """Another host took the agent over; this writer's generation is outdated."""

    def __init__(self, agent: str, ours: int, current: int) -> None:
        super().__init__(
            f"agent {agent} was taken over: its generation is {current}, ours was {ours}",
            hint="stop working on it here, or take it back with --take-over",
        )
        self.agent = agent
        self.ours = ours
        self.current = current


class ForeignOwnerError(OwnershipError):
    """The folder's owner record names another host."""

    def __init__(self, agent: str, owner: str) -> None:
        super().__init__(
            f"agent {agent} belongs to host {owner}",
            hint="if that host no longer works on it, repeat the command with --take-over",
        )
        self.agent = agent
        self.owner = owner


class OnFleetError(ForeignOwnerError):
    """The folder's owner record names a fleet; the files here date from before the agent moved."""

    def __init__(self, agent: str, fleet: str) -> None:
        OwnershipError.__init__(
            self,
            f"agent {agent} lives on the fleet {fleet}",
            hint="with `fleet:` in rekindle.yaml the same commands act on it there;"
            f" `rekindle fleet remove {agent}` brings it home; where that fleet is gone for good,"
            " remove owner.json from its folder",
        )
        self.agent = agent
        self.owner = fleet


class StalePushError(OwnershipError):
    """The work branch has another owner's commit; pushes from here no longer count."""

    def __init__(self, agent: str, generation: int, found: str) -> None:
        super().__init__(
            f"agent {agent} was taken over: its work branch is at {found[:12] or 'no commit'}, "
            f"which generation {generation} has not pushed",
            hint="stop working on it here; what is in this folder stays, and can be pushed by hand",
        )
        self.agent = agent
        self.generation = generation
        self.found = found


class SupervisedError(OwnershipError):
    """Another `rekindle run` supervises this agent."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"agent {agent} is being run already",
            hint=f"`rekindle status {agent}` shows its state; `rekindle stop {agent}` stops it",
        )
        self.agent = agent


class NotFoundError(RekindleError):
    """A name does not match anything."""

    exit_code = 7
    meaning = "no such agent, loop, revision or open question"


class UnknownAgentError(NotFoundError):
    """The manifest has no agent of this name."""

    def __init__(self, agent: str, known: Iterable[str]) -> None:
        names = ", ".join(known) or "none yet"
        super().__init__(
            f"no agent named {agent!r} in rekindle.yaml (there: {names})",
            hint=f"add it with `rekindle init --agent {agent}`, or correct the name",
        )
        self.agent = agent


class NotOnFleetError(NotFoundError):
    """The agent is in the manifest but not on the fleet."""

    def __init__(self, agent: str) -> None:
        super().__init__(
            f"agent {agent} is not on the fleet",
            hint=f"`rekindle run {agent}` starts it there",
        )
        self.agent = agent


class UnknownQuestionError(NotFoundError):
    """No question has this id, or none is open."""

    def __init__(self, question: str = "") -> None:
        message = f"no question with id {question!r}" if question else "no question is open"
        answers = '; one is answered with `rekindle answer ID "TEXT"`' if question else ""
        super().__init__(message, hint=f"list them with `rekindle questions --all`{answers}")
        self.question = question


class ClosedQuestionError(NotFoundError):
    """The question no longer takes answers."""

    def __init__(self, question: str, reason: str, command: str = "") -> None:
        """`command` continues the agent without an answer, if it does not run."""
        shows = "`rekindle status` shows what the agent needs now"
        super().__init__(
            f"question {question} is closed: {reason}",
            hint=f"`{command}` continues" if command else shows,
        )
        self.question = question
        self.reason = reason


class CheckFailedError(RekindleError):
    """A check found problems; the findings were printed."""

    exit_code = 8
    meaning = "a check found problems and printed them"


class AgentError(RekindleError):
    """The agent could not be started, or its run stopped before the work was done."""

    exit_code = 9
    meaning = "the agent, or a program that it needs, could not be started or did not answer"


class PluginError(AgentError):
    """A harness from another package does not work."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"the plugged-in harness {name!r} {reason}",
            hint="upgrade or remove the package that provides it",
        )
        self.name = name
        self.reason = reason


class ProgramMissingError(AgentError):
    """The agent's program is not installed, or not in the search path."""

    def __init__(self, program: str, reason: str, *, hint: str = "") -> None:
        super().__init__(f"{program} could not be started: {reason}", hint=hint)
        self.program = program
        self.reason = reason


class StoppedError(AgentError):
    """A stop was requested, so Rekindle no longer waits for the answer."""

    def __init__(self) -> None:
        super().__init__("stopped before it was answered", hint="the next run asks for it again")


class SummaryError(AgentError):
    """A summarizer did not answer; the attempt may still have cost something."""

    def __init__(self, message: str, *, hint: str = "", usd: float = 0.0, tokens: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.usd = usd
        self.tokens = tokens


class OverBudgetError(SummaryError):
    """The input exceeds the summarizer's limit. It is never truncated silently."""

    def __init__(self, size: int, cap: int) -> None:
        super().__init__(
            f"at least {size:,} tokens are to be summarized, and a summarizer is given {cap:,} at "
            "most",
            hint="raise `runtime.relay.summarizer_max_input_tokens`, or do without a model",
        )
        self.size = size
        self.cap = cap


class UnfinishedError(AgentError):
    """A run stopped or paused before its work was done; the exit code is that of its outcome."""

    def __init__(self, message: str, *, hint: str, outcome: str, exit_code: int) -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.exit_code = exit_code


class CalledByAgentError(RekindleError):
    """An agent called a command that decides which agents of its project run."""

    exit_code = 14
    meaning = "an agent called a command that is the operator's"

    def __init__(self, command: str, agent: str) -> None:
        super().__init__(
            f"`{command}` was called by agent {agent}, or by a process that it started",
            hint="run the command in a terminal of your own; to let the agent use it, set"
            f" `may_control: true` for {agent} in rekindle.yaml and run it again",
        )
        self.command = command
        self.agent = agent


class EngineError(RekindleError):
    """A fleet's engine could not be reached, or refused access. Keys are never shown."""

    exit_code = 10
    meaning = "the engine of the fleet could not be reached, or refused"

    def __init__(self, cause: str, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.cause = cause
        """One word: unreachable, namespace, tls, credentials, keys, attributes, program or extra;
        for an agent: unanswered, ended or refused.
        """


class CodecKeyError(EngineError):
    """A document was encrypted with a key that is not configured here."""

    def __init__(self, wanted: str, known: Iterable[str]) -> None:
        available = ", ".join(known) or "none"
        super().__init__(
            "keys",
            f"a document in the engine was encrypted with the key {wanted}, which is not among"
            f" ours ({available})",
            hint="add that key at the end of `fleet: codec:`; the first one encrypts, all decrypt",
        )
        self.wanted = wanted


class PlainTextError(EngineError):
    """The engine has plain text where only encrypted documents are accepted."""

    def __init__(self, workflow: str) -> None:
        of = f" of {workflow}" if workflow else ""
        super().__init__(
            "plain",
            f"a document{of} in the engine is plain text, and only encrypted ones are accepted",
            hint="if the fleet has just begun with encryption, set `fleet: codec: strict: false`"
            " until no agent has plain text (`rekindle doctor` reports it); otherwise check who can"
            " write to the engine",
        )
        self.workflow = workflow


class UntrustedError(RekindleError):
    """This user has not accepted the folder's manifest and state on this host."""

    exit_code = 11
    meaning = "this folder is not trusted: the user has not accepted its rekindle.yaml here"

    def __init__(self, folder: str) -> None:
        self.folder = folder
        super().__init__(
            f"{folder} is not trusted: you have not accepted its rekindle.yaml on this host",
            hint="read rekindle.yaml, then repeat the command with --trust"
            " (`run`, `up`, `restart`, `hooks install`, `fleet worker`), or set REKINDLE_TRUST=1",
        )


_HINTS = {
    errno.ENOSPC: "the disk is full: free some space and repeat the command",
    errno.EDQUOT: "the disk quota is used up: free some space and repeat the command",
    errno.EROFS: "the file system is read-only: remount it, or move the project",
    errno.EACCES: "give your user access to it and to the folder it is in",
    errno.EPERM: "give your user access to it and to the folder it is in",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n) and repeat the command",
    errno.ENFILE: "too many open files on this machine: close some and repeat the command",
    errno.EIO: "the disk reported an error: check it before you continue (dmesg, smartctl)",
    errno.ENOLCK: "this file system cannot lock: move the project (`rekindle torture` shows where)",
    errno.EOPNOTSUPP: "this file system cannot do it: move the project (see `rekindle torture`)",
    errno.ELOOP: "there is a symbolic link in place of a plain file: remove the link",
}


@contextmanager
def translate_os_errors(path: object) -> Iterator[None]:
    """Turn an OSError into a StoreError that names the path."""
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
