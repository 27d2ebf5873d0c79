"""The file store: accepts commands, opens an agent's writer, and reads agents."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rekindle.documents import events
from rekindle.documents.events import (
    OPERATOR_COMMANDS,
    Event,
)
from rekindle.errors import (
    BusyError,
    OwnershipError,
    RekindleError,
    TamperedLogError,
)
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import (
    LOCK_WAIT_SECONDS,
    Settings,
)
from rekindle.stores.files import ownership
from rekindle.stores.files.store_reader import (
    AuditStore,
    StoreReader,
    find_relay_seq,
)
from rekindle.stores.folders import private_files, spending_file
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.stores.log import (
    inbox,
    view,
)
from rekindle.system.files import durable_files, file_locks

if TYPE_CHECKING:
    from rekindle.ports import EventRegister
    from rekindle.stores.files.writer import Writer


class FileStore(StoreReader):
    """One project's agents, stored as plain files in its .rekindle folder."""

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
        """Open a project's store.

        `private` is for the project's files outside its folder. By default, their location depends
        on the project's path. A store with a `register` has no private files, because its commands
        arrive with the lease.
        """
        if private is None and register is None:
            private = private_files.find_private_project(project)
        super().__init__(
            project, private, host=host, harnesses=harnesses, redaction=redaction, audit=audit
        )
        self._settings = settings
        self._clock = clock
        self._register = register
        self._recovered: set[str] = set()

    def create(self, agent: str) -> None:
        """Create an agent's folder if it does not exist.

        A log that does not match its seal is left alone. Commands that need the log report the
        mismatch.
        """
        with suppress(TamperedLogError), self.writer(agent):
            pass

    def submit(self, agent: str, *records: Event, take_over: bool = False) -> bool:
        """Write records durably, then fold them. Return False if another writer will fold them.

        A record counts as soon as it is in the inbox: readers see it, and the next writer folds it.
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
                "the command is saved and already counts, so do not repeat it; once this is "
                f"fixed, run `rekindle doctor --fix` ({error.hint})"
            )
            raise
        return True

    @contextmanager
    def writer(
        self, agent: str, *, wait: float = LOCK_WAIT_SECONDS, take_over: bool = False
    ) -> Iterator["Writer"]:
        """Yield the agent's only writer. Leftovers from a crash are cleaned up first."""
        # Imported here so read-only commands such as `status` start faster.
        from rekindle.stores.files import recovery  # noqa: PLC0415 - see above
        from rekindle.stores.files.writer import Writer  # noqa: PLC0415 - see above

        folder = self.folder(agent)
        self._make_folder(folder)
        self.open_private(agent)
        with file_locks.hold_lock(folder.lock, wait) as lock:
            if lock is None:
                raise BusyError(agent, wait)
            current = self._read_current(folder)
            ownership.refuse_other_host(
                agent, ownership.read_owner(folder), self._host, take_over=take_over
            )
            aside = ""
            if current.condition == "unsealed" and take_over:
                # By taking over, the operator accepts this log on this host.
                from rekindle.stores.log import log_acceptance  # noqa: PLC0415 - see above

                aside = log_acceptance.accept_log(folder, current, self._clock())
                current = self._read_current(folder)
            if current.is_tampered:
                raise TamperedLogError(agent, current.condition)
            view.require_whole_log(folder, current.committed.seq)
            owner, previous = ownership.claim_ownership(
                folder, self._host, current.committed.gen, take_over=take_over
            )
            if previous is not None:
                # The previous owner may have kept writing until the takeover.
                current = self._read_current(folder)
            writer = Writer(
                folder,
                noted=self._read_stop(folder),
                lock=lock,
                owner=owner,
                view=current,
                settings=self._settings,
                harnesses=self._harnesses,
                redaction=self.redaction,
                clock=self._clock,
                register=self._register,
            )
            if current.committed.seq == 0:
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
        # Run this after the lock is released, because git may be slow.
        if self._audit and find_relay_seq(writer.projection) != find_relay_seq(current.committed):
            self._audit.follow(folder, writer.projection.seq)

    def adopt_edits(self, agent: str) -> None:
        """Adopt manual edits before a command runs, unless another writer is doing that."""
        if not self.exists(agent) or not (
            self.has_edited_state(agent) or self._has_edited_relay(agent)
        ):
            return
        with suppress(BusyError), self.writer(agent) as writer:
            writer.fold()

    def accept_log(self, agent: str) -> str:
        """Seal the log as it is now. Return what was wrong with it, or "".

        Call this only for an explicit command from the operator. Lines are checked against records
        outside the workspace, and unconfirmed lines are set aside. If there are no such records,
        only the operator's decisions are set aside.
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
            owner = ownership.read_owner(folder)
            ownership.refuse_other_host(agent, owner, self._host, take_over=False)
            current = self._read_current(folder)
            if not current.is_tampered:
                return ""
            # Save the spending first. If the process is killed after sealing, the next writer
            # restores it.
            spending_file.claim(folder, log_acceptance.read_known_spending(folder))
            aside = log_acceptance.accept_log(folder, current, self._clock())
            self._seen.pop(agent, None)
        with self.writer(agent) as writer:
            defect = TamperedLogError(agent, current.condition).reason
            reason = f"{defect}; the operator accepted the log"
            writer.append(
                events.DocumentRejected(ts=self._clock(), document="log", path=aside, reason=reason)
            )
            writer.snapshot()
        return defect

    def keep_question_number(self, agent: str, number: int) -> None:
        """Record that the operator may already have seen a question with this number."""
        from rekindle.stores.log import question_numbers  # noqa: PLC0415 - few commands need it

        question_numbers.keep(self.folder(agent), number)

    def catch_up_audit(self, agent: str) -> None:
        """Bring the audit trail up to date with the log."""
        committed = self.read(agent).committed
        if self._audit is None or not find_relay_seq(committed):
            return
        remaining = None
        while remaining != 0:
            before = remaining
            remaining = self._audit.follow(self.folder(agent), committed.seq, is_asked_for=True)
            if before is not None and remaining >= before:
                return  # git is not making progress

    def _restore_spending(self, folder: AgentFolder, writer: "Writer") -> None:
        """Record spending that is missing from an accepted log."""
        if (claimed := spending_file.load_claimed(folder)) is None:
            return
        from rekindle.stores.log import log_acceptance  # noqa: PLC0415 - few commands need it

        if lost := log_acceptance.find_lost_spending(claimed, writer.projection, self._clock()):
            writer.append(lost)
        spending_file.drop_claim(folder)

    def _keep_commands(self, folder: AgentFolder, commands: Sequence[Event]) -> None:
        """Write the operator's commands where sandboxed agents cannot write."""
        if folder.private is None:
            raise OwnershipError(
                f"agent {folder.name}: this copy of the agent does not accept commands",
                hint="run the command in the folder of the fleet's manifest",
            )
        self.open_private(folder.name)
        inbox.append_records(folder.private.inbox, commands, durable=True)
