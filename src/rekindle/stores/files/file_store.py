"""The entry point of the file store."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rekindle.documents import events
from rekindle.documents.events import (
    OPERATOR_COMMANDS,
    AnyEvent,
    DesiredSet,
    Event,
    RelayCommitted,
    UnknownEvent,
)
from rekindle.documents.launches.background_record import BackgroundRecord
from rekindle.errors import (
    AuditError,
    BusyError,
    ConfinedError,
    OwnershipError,
    RekindleError,
    StoreError,
    SupervisedError,
    TamperedLogError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import (
    COLD_LOG_BYTES,
    LOCK_WAIT_SECONDS,
    Settings,
)
from rekindle.stores.files import (
    folder_check,
    ownership,
)
from rekindle.stores.files.supervisor_locks import (
    SupervisorLocks,
    find_outer_lock,
)
from rekindle.stores.folders import background_file, private_files, spending_file
from rekindle.stores.folders.agent_folder import (
    AgentFolder,
    RekindleFolder,
)
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.stores.log import (
    event_log,
    inbox,
    seal,
    snapshot,
    view,
)
from rekindle.stores.log.view import AgentView
from rekindle.system.files import durable_files, file_locks

if TYPE_CHECKING:
    from rekindle.ports import EventRegister
    from rekindle.stores.files.writer import Writer


class AuditStore(Protocol):
    """A second copy of committed relays, for independent checks."""

    def follow(self, folder: AgentFolder, confirmed: int, *, is_asked_for: bool = False) -> int: ...

    def inspect(self, folder: AgentFolder, confirmed: int) -> list[folder_check.FolderProblem]: ...

    def commits(self, folder: AgentFolder) -> dict[tuple[int, str], str]: ...

    def read(self, oid: str) -> bytes: ...


class FileStore:
    """The agents of one project, as plain files below its .rekindle folder."""

    def __init__(
        self,
        project: Path,
        *,
        host: str,
        settings: Settings,
        clock: Callable[[], datetime],
        harnesses: inbox.HookParsers | None = None,
        redaction: Redaction | None = None,
        audit: AuditStore | None = None,
        register: "EventRegister | None" = None,
        private: PrivateProject | None = None,
    ) -> None:
        """Open the store of a project.

        `private` holds the project's files outside its folder; by default, its place follows from
        the folder's path. A store with a `register` has no private files, because its commands come
        with the lease.
        """
        if private is None and register is None:
            private = private_files.find_private_project(project)
        self.root = RekindleFolder(project, private)
        self.redaction = redaction or Redaction()
        self._harnesses = {} if harnesses is None else harnesses
        self._host = host
        self._settings = settings
        self._clock = clock
        self._audit = audit
        self._register = register
        self._recovered: set[str] = set()
        self._seen: dict[str, AgentView] = {}
        """The last view of each agent, reused because a supervisor reads it many times a minute."""
        self._folders: dict[str, AgentFolder] = {}
        self._held: dict[str, SupervisorLocks] = {}
        """The locks of the agents that this process supervises."""

    def folder(self, agent: str) -> AgentFolder:
        cached = self._folders.get(agent)
        if cached is None:
            cached = self._folders[agent] = self.root.agent(agent)
        return cached

    def create(self, agent: str) -> None:
        """Create an agent's folder; leave an existing one as it is.

        A log that does not match its seal is also left as it is; commands that need it are refused
        later.
        """
        with suppress(TamperedLogError), self.writer(agent):
            pass

    def log_condition(self, agent: str) -> seal.LogCondition:
        """Return how the log compares to its seal; see `seal.TAMPERED_CONDITIONS`."""
        return self._read_current(self.folder(agent)).condition

    def accept_log(self, agent: str, *, take_over: bool = False) -> str:
        """Seal the log as it is now, and return the defect that it had; empty if it had none.

        Called only for the operator's explicit command. Lines that no record outside the workspace
        confirms are set aside. If no such record exists, only the operator's decisions are set
        aside.
        """
        from rekindle.stores.log import log_acceptance  # noqa: PLC0415 - few commands need it

        folder = self.folder(agent)
        if not self._read_current(folder).is_tampered:
            return ""
        self._make_folder(folder)
        self.open_private(agent)
        with file_locks.hold_lock(folder.lock, LOCK_WAIT_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, LOCK_WAIT_SECONDS)
            ownership.refuse_other_host(
                agent, ownership.read_owner(folder), self._host, take_over=take_over
            )
            seen = self._read_current(folder)
            if not seen.is_tampered:
                return ""
            # If the process is killed after sealing, the next writer records the claimed spending.
            spending_file.claim(folder, log_acceptance.read_known_spending(folder))
            aside = log_acceptance.accept_log(folder, seen, self._clock())
            self._seen.pop(agent, None)
        with self.writer(agent, take_over=take_over) as writer:
            defect = TamperedLogError(agent, seen.condition).reason
            reason = f"{defect}; the operator accepted it"
            writer.append(
                events.DocumentRejected(ts=self._clock(), document="log", path=aside, reason=reason)
            )
            writer.snapshot()
        return defect

    def exists(self, agent: str) -> bool:
        return self.folder(agent).exists()

    def has_history(self, agent: str) -> bool:
        """Return whether the agent has any event here besides its creation."""
        if not durable_files.path_exists(self.folder(agent).log):
            return False
        seen = self.read(agent)
        return seen.committed.seq > 1 or bool(seen.pending)

    def read(self, agent: str) -> AgentView:
        """Return the agent's current view, including records not folded yet. Never waits."""
        return self._read_current(self.folder(agent))

    def submit(self, agent: str, *records: Event, take_over: bool = False) -> bool:
        """Write records durably, then fold them; return False if another writer will fold them.

        Records count as soon as the inbox has them: readers see them, and the next writer folds
        them.
        """
        folder = self.folder(agent)
        self._make_folder(folder)
        if not durable_files.path_exists(folder.log):
            folder.confirm()
        owner = ownership.read_owner(folder)
        ownership.refuse_other_host(agent, owner, self._host, take_over=take_over)
        cleaned = [self.redaction.event(record) for record in records]
        commands = [record for record in cleaned if isinstance(record, OPERATOR_COMMANDS)]
        if commands:
            self._keep_commands(folder, commands)
        if others := [record for record in cleaned if record not in commands]:
            inbox.append_records(folder.inbox, others, durable=True)
        try:
            with self.writer(agent, take_over=take_over) as writer:
                writer.fold()
        except (BusyError, TamperedLogError):
            return False
        except RekindleError as error:
            error.hint = (
                "the command is saved and already counts: do not repeat it; once this is fixed, run"
                f" `rekindle doctor --fix` ({error.hint})"
            )
            raise
        return True

    @contextmanager
    def writer(
        self, agent: str, *, wait: float = LOCK_WAIT_SECONDS, take_over: bool = False
    ) -> Iterator["Writer"]:
        """Yield the agent's only writer, after repairing everything that a crash left behind."""
        # Imported here, so that commands that only read, such as `status`, start faster.
        from rekindle.stores.files import recovery  # noqa: PLC0415 - see above
        from rekindle.stores.files.writer import Writer  # noqa: PLC0415 - see above

        folder = self.folder(agent)
        self._make_folder(folder)
        self.open_private(agent)
        with file_locks.hold_lock(folder.lock, wait) as lock:
            if lock is None:
                raise BusyError(agent, wait)
            seen = self._read_current(folder)
            ownership.refuse_other_host(
                agent, ownership.read_owner(folder), self._host, take_over=take_over
            )
            aside = ""
            if seen.condition == "unsealed" and take_over:
                # By taking over, the operator has assigned the agent and its log to this host.
                from rekindle.stores.log import log_acceptance  # noqa: PLC0415 - see above

                aside = log_acceptance.accept_log(folder, seen, self._clock())
                seen = self._read_current(folder)
            if seen.is_tampered:
                raise TamperedLogError(agent, seen.condition)
            view.require_whole_log(folder, seen.committed.seq)
            owner, previous = ownership.claim_ownership(
                folder, self._host, seen.committed.gen, take_over=take_over
            )
            if previous is not None:
                # The old owner may have written until the moment of the takeover.
                seen = self._read_current(folder)
            writer = Writer(
                folder,
                noted=self._read_stop(folder),
                lock=lock,
                owner=owner,
                view=seen,
                settings=self._settings,
                harnesses=self._harnesses,
                redaction=self.redaction,
                clock=self._clock,
                register=self._register,
            )
            if seen.committed.seq == 0:
                writer.append(events.AgentCreated(ts=self._clock(), agent=agent))
            if previous is not None:
                writer.append(
                    events.OwnerChanged(ts=self._clock(), host=owner.host, previous=previous.host)
                )
            if aside:
                reason = f"{TamperedLogError(agent, 'unsealed').reason}; it was taken over"
                writer.append(
                    events.DocumentRejected(
                        ts=self._clock(), document="log", path=aside, reason=reason
                    )
                )
            self._restore_spending(folder, writer)
            recovery.recover_files(writer, is_first=agent not in self._recovered)
            self._recovered.add(agent)
            writer.project()
            yield writer
        # After the lock is released, so that a slow git does not make other commands wait.
        if self._audit and _find_relay_seq(writer.projection) != _find_relay_seq(seen.committed):
            self._audit.follow(folder, writer.projection.seq)

    def last_question(self, agent: str) -> int:
        """Return the number of the agent's last question, independent of the log; 0 if unknown."""
        from rekindle.stores.log import question_numbers  # noqa: PLC0415 - only questions need it

        return question_numbers.load(self.folder(agent))

    def keep_question_number(self, agent: str, number: int) -> None:
        """Record that the operator may have seen a question with this number."""
        from rekindle.stores.log import question_numbers  # noqa: PLC0415 - as above

        question_numbers.keep(self.folder(agent), number)

    def _restore_spending(self, folder: AgentFolder, writer: "Writer") -> None:
        """Record spending again if it is missing from the log that the operator accepted."""
        if (claimed := spending_file.load_claimed(folder)) is None:
            return
        from rekindle.stores.log import log_acceptance  # noqa: PLC0415 - few commands need it

        if lost := log_acceptance.find_lost_spending(claimed, writer.projection, self._clock()):
            writer.append(lost)
        spending_file.drop_claim(folder)

    def _keep_commands(self, folder: AgentFolder, commands: Sequence[Event]) -> None:
        """Store the operator's commands where no sandboxed agent can write."""
        if folder.private is None:
            raise OwnershipError(
                f"agent {folder.name}: this copy of the agent takes no commands",
                hint="run the command in the folder of the fleet's manifest",
            )
        self.open_private(folder.name)
        inbox.append_records(folder.private.inbox, commands, durable=True)

    def open_private(self, agent: str) -> None:
        """Create the agent's private files, or refuse a process that may not write them."""
        folder = self.folder(agent)
        if self.root.private is None or folder.private is None:
            return
        try:
            self.root.private.make_agent(folder.name)
            # Try to open it: the file's mode does not show what a sandbox forbids.
            with translate_os_errors(folder.private.seal):
                os.close(durable_files.open_plain(folder.private.seal, os.O_WRONLY | os.O_CREAT))
        except StoreError as error:
            # A supervisor could write there when it started, so its disk is now read-only.
            if error.errno not in durable_files.REFUSED_ERRNOS or agent in self._held:
                raise
            raise ConfinedError(folder.name, str(folder.private.path)) from error

    @contextmanager
    def supervising(self, agent: str) -> Iterator[None]:
        """Hold both supervisor locks, so that no other process starts this agent."""
        folder = self.folder(agent)
        self._make_folder(folder)
        outside = find_outer_lock(self.root.project, agent)
        if outside is None:
            raise StoreError(
                str(self.root.project),
                "the project's folder is gone",
                hint="run the command in the project's folder",
            )
        with outside.hold(LOCK_WAIT_SECONDS) as outer, ExitStack() as stack:
            if outer is None:
                raise SupervisedError(agent)
            inner = stack.enter_context(file_locks.hold_lock(folder.supervisor, LOCK_WAIT_SECONDS))
            if inner is None:
                raise SupervisedError(agent)
            held = self._held[agent] = SupervisorLocks(folder, inner, outer)
            try:
                yield
            finally:
                del self._held[agent]
                held.close()

    def is_supervised(self, agent: str) -> bool:
        """Return whether a supervisor is alive, that is, holds at least one of its two locks."""
        return self.is_outer_lock_held(agent) or file_locks.is_locked(self.folder(agent).supervisor)

    def is_outer_lock_held(self, agent: str) -> bool:
        """Return whether a supervisor holds the lock outside the project's folder."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.is_held()

    def background(self, agent: str) -> BackgroundRecord:
        """Return a supervisor's record of the agent's background processes."""
        return background_file.read_background(self.root.project, agent)

    def write_background_record(self, agent: str, record: BackgroundRecord) -> None:
        background_file.write_background(self.root.project, agent, record)

    def has_lost_folder(self, agent: str) -> bool:
        """Return whether a live supervisor's folder was wiped or replaced; it is about to exit."""
        if not self.is_outer_lock_held(agent):
            return False
        try:
            return not file_locks.is_locked(self.folder(agent).supervisor)
        except StoreError:
            return True

    def check_supervision(self, agent: str) -> None:
        """Check that the locks and log this process holds as supervisor are the ones on disk.

        Raises:
            FolderLostError: The folder was removed or replaced.
        """
        if held := self._held.get(agent):
            held.check()

    def signal_supervisor(self, agent: str) -> bool:
        """Send the agent's supervisor the stop signal; return False if none could be identified."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.signal_holder()

    def resume_supervisor(self, agent: str) -> None:
        """Continue the agent's supervisor if it is suspended (Ctrl-Z, SIGSTOP)."""
        outside = find_outer_lock(self.root.project, agent)
        if outside is not None:
            outside.resume_holder()

    def kill_supervisor(self, agent: str) -> bool:
        """Kill the agent's supervisor; return False if none could be identified."""
        outside = find_outer_lock(self.root.project, agent)
        return outside is not None and outside.kill_holder()

    def note_stop(self, agent: str, command: DesiredSet) -> None:
        """Store a stop outside the agent's folder, for when the folder cannot be written."""
        outside = find_outer_lock(self.root.project, agent)
        if outside is not None:
            outside.note_stop(command)

    def stamp(self, agent: str) -> object:
        """Return a value that changes with every written event, record or stop."""
        outside = find_outer_lock(self.root.project, agent)
        return self.folder(agent).stamp(), outside.stamp() if outside else None

    def _read_stop(self, folder: AgentFolder) -> DesiredSet | None:
        outside = find_outer_lock(self.root.project, folder.name)
        return outside.read_noted_stop() if outside else None

    def _read_current(self, folder: AgentFolder) -> AgentView:
        held = self._held.get(folder.name)
        if held is not None:
            held.check()
        before, noted = self._seen.get(folder.name), self._read_stop(folder)
        current = view.read_view(folder, self._harnesses, self.redaction, before, noted)
        if held is not None:
            held.check()  # the view is of this log, not of a replacement
            held.remember_log(current.end)
        self._seen[folder.name] = current
        if current.end - current.snapshot_end >= COLD_LOG_BYTES and not current.is_tampered:
            self._keep_snapshot(folder, current)
        return current

    def _keep_snapshot(self, folder: AgentFolder, seen: AgentView) -> None:
        """Save a snapshot of a long log for the next reader, if its writer is idle."""
        with suppress(RekindleError), file_locks.hold_lock(folder.lock, 0.0) as lock:
            owner = ownership.read_owner(folder)
            if lock is None or owner is None or owner.host != self._host:
                return
            # Appended now: the next writer starts from the snapshot and does not see these events.
            resolving = [*seen.resolving, *open_loops.select_resolving_events(seen.tail)]
            from rekindle.stores.files import resolved_file  # noqa: PLC0415 - few readers need it

            resolved_file.append_resolutions(folder, resolving, seen.committed.seq)
            snapshot.save_snapshot(folder, seen.committed, seen.end, seen.chain)

    def _make_folder(self, folder: AgentFolder) -> None:
        if held := self._held.get(folder.name):
            held.check()
            return  # the supervisor must not recreate its folder after it was wiped
        folder.verify()
        self.root.make()
        folder.make()

    def prepare_start(self, agent: str, *, fresh: bool = False) -> None:
        """Remove the obstacles to another start; with `fresh`, also request a fresh session."""
        folder = self.folder(agent)
        if fresh:
            folder.request_fresh_session()
        durable_files.remove_file(folder.clean_exit)

    def events_since(self, agent: str, offset: int) -> event_log.LogTail:
        """Return the events from an offset in the log on, for commands that follow it."""
        return event_log.read_log(self.folder(agent).log, offset)

    def entries_since(self, agent: str, offset: int) -> Iterator[event_log.LogEntry]:
        """Return the log's raw entries from an offset on."""
        return event_log.read_entries(self.folder(agent).log, offset)

    def newest_entries(self, agent: str) -> Iterator[event_log.LogEntry]:
        """Yield the log's raw entries, newest first; reading stops when the caller does."""
        return event_log.read_backwards(self.folder(agent).log)

    def newest_events(self, agent: str) -> Iterator[AnyEvent | UnknownEvent]:
        return (entry.event for entry in self.newest_entries(agent))

    def document(self, agent: str, name: str) -> bytes | None:
        """Return a document as readers should see it: an edit counts, an outdated file does not.

        An edit may hold secrets until a writer adopts it, so it is redacted here.
        """
        folder = self.folder(agent)
        seen = self._read_current(folder)
        if name == "relay" and seen.proposed is not None:
            return seen.proposed.text.encode()
        last_commit = seen.committed.documents.get(name)
        condition = folder_check.compare_document(folder, name, last_commit)
        if last_commit and condition in {"missing", "behind"}:
            copy = durable_files.read_bytes(folder.path / last_commit.path)
            if copy is None:
                raise StoreError(
                    last_commit.path,
                    f"the {name} and its copy in the archive are gone",
                    hint=f"restore it from a backup, or set the {name} again",
                )
            return copy
        data = durable_files.read_bytes(folder.document(name))
        return data if data is None or condition == "clean" else self.redaction.data(data)

    def has_edited_state(self, agent: str) -> bool:
        """Return whether state.json was edited since Rekindle last wrote it."""
        data = durable_files.read_bytes(self.folder(agent).state)
        return data is not None and folder_check.is_state_edited(data)

    def adopt_edits(self, agent: str) -> None:
        """Adopt manual edits before a command runs, unless another writer is already doing so."""
        if not self.exists(agent) or not (
            self.has_edited_state(agent) or self._has_edited_relay(agent)
        ):
            return
        with suppress(BusyError), self.writer(agent) as writer:
            writer.fold()

    def _has_edited_relay(self, agent: str) -> bool:
        last_commit = self.read(agent).committed.documents.get("relay")
        return folder_check.compare_document(self.folder(agent), "relay", last_commit) == "edited"

    def inspect(self, agent: str) -> list[folder_check.FolderProblem]:
        """Return the problems of an agent's folder, each with the command that fixes it."""
        folder = self.folder(agent)
        problems = folder_check.inspect_folder(folder, self._host, self._harnesses, self.redaction)
        with suppress(RekindleError):  # an unreadable log was already reported above
            committed = self.read(agent).committed
            if self._audit and _find_relay_seq(committed):
                problems += self._audit.inspect(folder, committed.seq)
        return problems

    def catch_up_audit(self, agent: str) -> None:
        """Bring the audit trail up to date with the log, however far it lags."""
        committed = self.read(agent).committed
        if self._audit is None or not _find_relay_seq(committed):
            return
        remaining = None
        while remaining != 0:
            before = remaining
            remaining = self._audit.follow(self.folder(agent), committed.seq, is_asked_for=True)
            if before is not None and remaining >= before:
                return  # git makes no progress

    def archived(self, agent: str, path: str) -> bytes | None:
        """Return a document's copy from the archive."""
        return durable_files.read_bytes(self.folder(agent).path / path)

    def committed_relay(self, agent: str, event: RelayCommitted) -> bytes | None:
        """Return a past relay, from the archive or else from the audit trail."""
        data = self.archived(agent, event.path)
        if data is not None:
            return data
        commit = self.audit_commits(agent).get((event.seq, event.sha256))
        with suppress(AuditError):
            data = self._audit.read(commit) if self._audit and commit else None
        return data if data and json_codec.hash_bytes(data) == event.sha256 else None

    def audit_commits(self, agent: str) -> dict[tuple[int, str], str]:
        """Return the git commit of each relay that has one, by the event's number and hash."""
        if self._audit is None:
            return {}
        try:
            return self._audit.commits(self.folder(agent))
        except AuditError:
            return {}


def _find_relay_seq(projection: Projection) -> int:
    """Return the number of the event that committed the relay; 0 if there is none."""
    last_commit = projection.documents.get("relay")
    return last_commit.seq if last_commit else 0
