"""The front door of the file store."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from rekindle.documents import event as events
from rekindle.documents import jsontext
from rekindle.documents.background import Record
from rekindle.documents.event import (
    OPERATOR_COMMANDS,
    AnyEvent,
    DesiredSaid,
    Event,
    RelayCommitted,
    Unrecognised,
)
from rekindle.errors import (
    AuditError,
    BusyError,
    ConfinedError,
    OwnershipError,
    RekindleError,
    StoreError,
    SupervisedError,
    TamperedLogError,
    storing,
)
from rekindle.policy import loops
from rekindle.policy.fold import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import COLD_LOG_BYTES, LOCK_WAIT_SECONDS, Settings
from rekindle.stores import background
from rekindle.stores import private as private_files
from rekindle.stores.files import (
    inbox,
    inspection,
    log,
    ownership,
    seal,
    snapshot,
    spending,
    view,
)
from rekindle.stores.files.layout import AgentFolder, Root
from rekindle.stores.files.supervision import Supervision, outer_lock
from rekindle.stores.files.view import View
from rekindle.stores.private import PrivateProject
from rekindle.system import disk

if TYPE_CHECKING:
    from rekindle.ports import Register
    from rekindle.stores.files.writer import Writer


class Audit(Protocol):
    """Where committed relays are kept a second time, for whoever wants to check on us."""

    def follow(self, folder: AgentFolder, confirmed: int, *, is_asked_for: bool = False) -> int: ...

    def inspect(self, folder: AgentFolder, confirmed: int) -> list[inspection.Problem]: ...

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
        harnesses: inbox.Harnesses | None = None,
        redaction: Redaction | None = None,
        audit: Audit | None = None,
        register: "Register | None" = None,
        private: PrivateProject | None = None,
    ) -> None:
        """`private`: the project's files outside it; default: those of the folder's path.

        A store whose register numbers the events has none: its commands come with the lease.
        """
        if private is None and register is None:
            private = private_files.of_project(project)
        self.root = Root(project, private)
        self.redaction = redaction or Redaction()
        self._harnesses = {} if harnesses is None else harnesses
        self._host = host
        self._settings = settings
        self._clock = clock
        self._audit = audit
        self._register = register
        self._recovered: set[str] = set()
        self._seen: dict[str, View] = {}
        """As each agent was when we looked last: whoever stays looks many times a minute."""
        self._folders: dict[str, AgentFolder] = {}
        self._held: dict[str, Supervision] = {}
        """The agents that this process supervises."""

    def folder(self, agent: str) -> AgentFolder:
        found = self._folders.get(agent)
        if found is None:
            found = self._folders[agent] = self.root.agent(agent)
        return found

    def create(self, agent: str) -> None:
        """Make an agent's folder; one that is there already is left as it is.

        So is one with a log that is not as sealed: a command that needs more is refused later.
        """
        with suppress(TamperedLogError), self.writer(agent):
            pass

    def log_condition(self, agent: str) -> seal.Condition:
        """Return how the log compares to its seal; `seal.TAMPERED` has those not to be trusted."""
        return self._look(self.folder(agent)).condition

    def accept_log(self, agent: str, *, take_over: bool = False) -> str:
        """Seal the log as it is now, and return what was wrong with it; empty if nothing was.

        Only by the operator's own command. Lines that nothing outside the workspace confirms are
        set aside; if nothing there knows any line, those that decide in the operator's place are.
        """
        from rekindle.stores.files import acceptance  # noqa: PLC0415 - few commands need it

        folder = self.folder(agent)
        if not self._look(folder).is_tampered:
            return ""
        self._make(folder)
        self.open_private(agent)
        with disk.locked(folder.lock, LOCK_WAIT_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, LOCK_WAIT_SECONDS)
            ownership.refuse(agent, ownership.read(folder), self._host, take_over=take_over)
            seen = self._look(folder)
            if not seen.is_tampered:
                return ""
            # Killed after the log is sealed, the next writer notes it.
            spending.claim(folder, acceptance.known_spending(folder))
            kept = acceptance.accept(folder, seen, self._clock())
            self._seen.pop(agent, None)
        with self.writer(agent, take_over=take_over) as writer:
            words = TamperedLogError(agent, seen.condition).reason
            reason = f"{words}; the operator accepted it"
            writer.append(
                events.DocumentRejected(ts=self._clock(), document="log", path=kept, reason=reason)
            )
            writer.snapshot()
        return words

    def exists(self, agent: str) -> bool:
        return self.folder(agent).exists()

    def has_lived(self, agent: str) -> bool:
        """Whether anything happened to it here, but that it was made."""
        if not disk.exists(self.folder(agent).log):
            return False
        seen = self.read(agent)
        return seen.committed.seq > 1 or bool(seen.pending)

    def read(self, agent: str) -> View:
        """What is known of an agent now, whether folded yet or not. Never waits."""
        return self._look(self.folder(agent))

    def submit(self, agent: str, *records: Event, take_over: bool = False) -> bool:
        """Acknowledge records durably, then fold them; False where the agent's writer will.

        Once the inbox has them they count: readers see them, and whoever writes next folds them.
        """
        folder = self.folder(agent)
        self._make(folder)
        if not disk.exists(folder.log):
            folder.confirm()
        owner = ownership.read(folder)
        ownership.refuse(agent, owner, self._host, take_over=take_over)
        cleaned = [self.redaction.event(record) for record in records]
        commands = [record for record in cleaned if isinstance(record, OPERATOR_COMMANDS)]
        if commands:
            self._command(folder, commands)
        if others := [record for record in cleaned if record not in commands]:
            inbox.append(folder.inbox, others, durable=True)
        try:
            with self.writer(agent, take_over=take_over) as writer:
                writer.fold()
        except (BusyError, TamperedLogError):
            return False
        except RekindleError as error:
            error.hint = (
                "what you handed in is kept and counts already: do not repeat it; when this is"
                f" fixed, `rekindle doctor --fix` folds it ({error.hint})"
            )
            raise
        return True

    @contextmanager
    def writer(
        self, agent: str, *, wait: float = LOCK_WAIT_SECONDS, take_over: bool = False
    ) -> Iterator["Writer"]:
        """The agent's only writer, with everything that a crash left behind already mended."""
        # Here, and not above: who only reads, as `status` does, need not wait for all of it.
        from rekindle.stores.files import recovery  # noqa: PLC0415 - see above
        from rekindle.stores.files.writer import Writer  # noqa: PLC0415 - see above

        folder = self.folder(agent)
        self._make(folder)
        self.open_private(agent)
        with disk.locked(folder.lock, wait) as lock:
            if lock is None:
                raise BusyError(agent, wait)
            seen = self._look(folder)
            ownership.refuse(agent, ownership.read(folder), self._host, take_over=take_over)
            aside = ""
            if seen.condition == "unsealed" and take_over:
                # The operator has just said that this host has it from now on, with its log.
                from rekindle.stores.files import acceptance  # noqa: PLC0415 - see above

                aside = acceptance.accept(folder, seen, self._clock())
                seen = self._look(folder)
            if seen.is_tampered:
                raise TamperedLogError(agent, seen.condition)
            view.require_whole_log(folder, seen.committed.seq)
            owner, previous = ownership.claim(
                folder, self._host, seen.committed.gen, take_over=take_over
            )
            if previous is not None:
                # Until it was taken over, the old owner may have gone on writing.
                seen = self._look(folder)
            writer = Writer(
                folder,
                noted=self._noted(folder),
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
            recovery.recover(writer, is_first=agent not in self._recovered)
            self._recovered.add(agent)
            writer.project()
            yield writer
        # The lock is free: a slow git keeps nobody else waiting.
        if self._audit and _relay_of(writer.projection) != _relay_of(seen.committed):
            self._audit.follow(folder, writer.projection.seq)

    def _restore_spending(self, folder: AgentFolder, writer: "Writer") -> None:
        """Note spending again that the log which the operator accepts leaves out."""
        if (known := spending.load_claimed(folder)) is None:
            return
        from rekindle.stores.files import acceptance  # noqa: PLC0415 - few commands need it

        if lost := acceptance.lost_spending(known, writer.projection, self._clock()):
            writer.append(lost)
        spending.drop_claim(folder)

    def _command(self, folder: AgentFolder, commands: Sequence[Event]) -> None:
        """Keep the operator's commands where no sandboxed agent can write."""
        if folder.private is None:
            raise OwnershipError(
                f"agent {folder.name}: this copy of it takes no commands",
                hint="give the command where the fleet's manifest is",
            )
        self.open_private(folder.name)
        inbox.append(folder.private.inbox, commands, durable=True)

    def open_private(self, agent: str) -> None:
        """Make the agent's private files, or refuse a process that may not write them."""
        folder = self.folder(agent)
        if self.root.private is None or folder.private is None:
            return
        try:
            self.root.private.make_agent(folder.name)
            # By trying: a sandbox's own rules do not show in the file's mode.
            with storing(folder.private.seal):
                os.close(disk.open_plain(folder.private.seal, os.O_WRONLY | os.O_CREAT))
        except StoreError as error:
            # A supervisor could write there when it began: its disk became read-only.
            if error.errno not in disk.REFUSED or agent in self._held:
                raise
            raise ConfinedError(folder.name, str(folder.private.path)) from error

    @contextmanager
    def supervising(self, agent: str) -> Iterator[None]:
        """Be the only one that starts this agent, and be known to be there."""
        folder = self.folder(agent)
        self._make(folder)
        outside = outer_lock(self.root.project, agent)
        if outside is None:
            raise StoreError(
                str(self.root.project), "the folder is gone", hint="run it where the project is"
            )
        with outside.hold(LOCK_WAIT_SECONDS) as outer, ExitStack() as stack:
            if outer is None:
                raise SupervisedError(agent)
            inner = stack.enter_context(disk.locked(folder.supervisor, LOCK_WAIT_SECONDS))
            if inner is None:
                raise SupervisedError(agent)
            held = self._held[agent] = Supervision(folder, inner, outer)
            try:
                yield
            finally:
                del self._held[agent]
                held.close()

    def is_supervised(self, agent: str) -> bool:
        """Whether a supervisor lives: it holds one of its two locks, or both."""
        return self.is_held_outside(agent) or disk.is_locked(self.folder(agent).supervisor)

    def is_held_outside(self, agent: str) -> bool:
        """Whether a supervisor holds the lock outside the project's folder."""
        outside = outer_lock(self.root.project, agent)
        return outside is not None and outside.is_held()

    def background(self, agent: str) -> Record:
        """Return what a supervisor has recorded of the agent's background processes."""
        return background.read(self.root.project, agent)

    def record_background(self, agent: str, record: Record) -> None:
        background.write(self.root.project, agent, record)

    def is_deserted(self, agent: str) -> bool:
        """Whether a supervisor lives whose folder was wiped or replaced: it is about to end."""
        if not self.is_held_outside(agent):
            return False
        try:
            return not disk.is_locked(self.folder(agent).supervisor)
        except StoreError:
            return True

    def check_supervision(self, agent: str) -> None:
        """Check that what this process holds as the agent's supervisor is what is on disk.

        Raises:
            FolderLostError: The folder was removed or replaced.
        """
        if held := self._held.get(agent):
            held.check()

    def signal_supervisor(self, agent: str) -> bool:
        """Tell the agent's supervisor by a signal to stop; False if none could be identified."""
        outside = outer_lock(self.root.project, agent)
        return outside is not None and outside.signal_holder()

    def resume_supervisor(self, agent: str) -> None:
        """Continue the agent's supervisor if it is suspended (Ctrl-Z, SIGSTOP)."""
        outside = outer_lock(self.root.project, agent)
        if outside is not None:
            outside.resume_holder()

    def kill_supervisor(self, agent: str) -> bool:
        """Kill the agent's supervisor; False if none could be identified."""
        outside = outer_lock(self.root.project, agent)
        return outside is not None and outside.kill_holder()

    def note_stop(self, agent: str, command: DesiredSaid) -> None:
        """Keep a stop outside the agent's folder, which could not take it."""
        outside = outer_lock(self.root.project, agent)
        if outside is not None:
            outside.note_stop(command)

    def stamp(self, agent: str) -> object:
        """Return a value that changes whenever an event, a record or a stop was written."""
        outside = outer_lock(self.root.project, agent)
        return self.folder(agent).stamp(), outside.stamp() if outside else None

    def _noted(self, folder: AgentFolder) -> DesiredSaid | None:
        outside = outer_lock(self.root.project, folder.name)
        return outside.noted_stop() if outside else None

    def _look(self, folder: AgentFolder) -> View:
        held = self._held.get(folder.name)
        if held is not None:
            held.check()
        before, noted = self._seen.get(folder.name), self._noted(folder)
        found = view.read(folder, self._harnesses, self.redaction, before, noted)
        if held is not None:
            held.check()  # what was read is of this log, not of one that took its place meanwhile
            held.know_log(found.end)
        self._seen[folder.name] = found
        if found.end - found.snapshot_end >= COLD_LOG_BYTES and not found.is_tampered:
            self._keep_snapshot(folder, found)
        return found

    def _keep_snapshot(self, folder: AgentFolder, seen: View) -> None:
        """Keep what a long log added up to, if its writer is idle: the next reader starts there."""
        with suppress(RekindleError), disk.locked(folder.lock, 0.0) as lock:
            owner = ownership.read(folder)
            if lock is None or owner is None or owner.host != self._host:
                return
            # A snapshot hides these events from the writer, which would append them.
            resolving = [*seen.resolving, *loops.select_resolving(seen.tail)]
            from rekindle.stores.files import resolutions  # noqa: PLC0415 - few readers need it

            resolutions.append(folder, resolving, seen.committed.seq)
            snapshot.save(folder, seen.committed, seen.end, seen.chain)

    def _make(self, folder: AgentFolder) -> None:
        if held := self._held.get(folder.name):
            held.check()
            return  # a folder that is wiped now must not be made again by its own supervisor
        folder.verify()
        self.root.make()
        folder.make()

    def clear_the_way(self, agent: str, *, fresh: bool = False) -> None:
        """Have nothing stand in the way of another start; `fresh`: nor of another session."""
        folder = self.folder(agent)
        if fresh:
            folder.ask_for_fresh()
        disk.remove(folder.clean_exit)

    def events_since(self, agent: str, offset: int) -> log.Tail:
        """Events from a place in the log on, for whoever follows it."""
        return log.read(self.folder(agent).log, offset)

    def entries_since(self, agent: str, offset: int) -> Iterator[log.Entry]:
        """The log's own lines from a place on."""
        return log.entries(self.folder(agent).log, offset)

    def newest_entries(self, agent: str) -> Iterator[log.Entry]:
        """The log's own lines from the newest back; reading stops when the caller does."""
        return log.backwards(self.folder(agent).log)

    def newest_events(self, agent: str) -> Iterator[AnyEvent | Unrecognised]:
        return (entry.event for entry in self.newest_entries(agent))

    def document(self, agent: str, name: str) -> bytes | None:
        """A document as readers should see it: an edit counts, a file that lags does not.

        An edit may hold secrets until a writer takes it over: no reader sees them.
        """
        folder = self.folder(agent)
        seen = self._look(folder)
        if name == "relay" and seen.proposed is not None:
            return seen.proposed.text.encode()
        standing = seen.committed.documents.get(name)
        condition = inspection.condition_of(folder, name, standing)
        if standing and condition in {"missing", "behind"}:
            kept = disk.read(folder.path / standing.path)
            if kept is None:
                raise StoreError(
                    standing.path,
                    f"the {name} and its copy in the archive are gone",
                    hint=f"restore it from a backup, or set the {name} again",
                )
            return kept
        data = disk.read(folder.document(name))
        return data if data is None or condition == "clean" else self.redaction.data(data)

    def has_edited_state(self, agent: str) -> bool:
        """Whether somebody else wrote state.json since we did."""
        data = disk.read(self.folder(agent).state)
        return data is not None and inspection.is_edited(data)

    def take_over_edits(self, agent: str) -> None:
        """Adopt what was edited by hand, so that a command knows it; a busy writer will do it."""
        if not self.exists(agent) or not (
            self.has_edited_state(agent) or self._has_edited_relay(agent)
        ):
            return
        with suppress(BusyError), self.writer(agent) as writer:
            writer.fold()

    def _has_edited_relay(self, agent: str) -> bool:
        standing = self.read(agent).committed.documents.get("relay")
        return inspection.condition_of(self.folder(agent), "relay", standing) == "edited"

    def inspect(self, agent: str) -> list[inspection.Problem]:
        """What is wrong with an agent's folder, and the command that mends it."""
        folder = self.folder(agent)
        found = inspection.inspect(folder, self._host, self._harnesses, self.redaction)
        with suppress(RekindleError):  # what cannot be read was found already
            committed = self.read(agent).committed
            if self._audit and _relay_of(committed):
                found += self._audit.inspect(folder, committed.seq)
        return found

    def catch_up_audit(self, agent: str) -> None:
        """Bring the audit trail up to the log, however far it lags."""
        committed = self.read(agent).committed
        if self._audit is None or not _relay_of(committed):
            return
        left = None
        while left != 0:
            before = left
            left = self._audit.follow(self.folder(agent), committed.seq, is_asked_for=True)
            if before is not None and left >= before:
                return  # it gets no further, whatever git says

    def archived(self, agent: str, path: str) -> bytes | None:
        """A document as the archive keeps it."""
        return disk.read(self.folder(agent).path / path)

    def committed_relay(self, agent: str, event: RelayCommitted) -> bytes | None:
        """A relay of the past: from the archive, else from the audit trail."""
        kept = self.archived(agent, event.path)
        if kept is not None:
            return kept
        commit = self.audit_commits(agent).get((event.seq, event.sha256))
        with suppress(AuditError):
            kept = self._audit.read(commit) if self._audit and commit else None
        return kept if kept and jsontext.fingerprint(kept) == event.sha256 else None

    def audit_commits(self, agent: str) -> dict[tuple[int, str], str]:
        """The git commit of each relay that has one, by the event's number and hash."""
        if self._audit is None:
            return {}
        try:
            return self._audit.commits(self.folder(agent))
        except AuditError:
            return {}


def _relay_of(projection: Projection) -> int:
    """The event that committed the relay; 0 where there is none."""
    standing = projection.documents.get("relay")
    return standing.seq if standing else 0
