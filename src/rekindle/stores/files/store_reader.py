"""Read a project's agents (views, logs and documents) without waiting for a writer."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from rekindle.documents.events import (
    AnyEvent,
    RelayCommitted,
    UnknownEvent,
)
from rekindle.errors import (
    AuditError,
    RekindleError,
    StoreError,
)
from rekindle.formats import json_codec
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import COLD_LOG_BYTES
from rekindle.stores.files import (
    folder_check,
    ownership,
)
from rekindle.stores.files.supervised_folders import SupervisedFolders
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.folders.private_files import PrivateProject
from rekindle.stores.log import (
    event_log,
    inbox,
    snapshot,
    view,
)
from rekindle.stores.log.view import AgentView
from rekindle.system.files import durable_files, file_locks


class AuditStore(Protocol):
    """A second copy of committed relays."""

    def follow(self, folder: AgentFolder, confirmed: int, *, is_asked_for: bool = False) -> int: ...

    def inspect(self, folder: AgentFolder, confirmed: int) -> list[folder_check.FolderProblem]: ...

    def commits(self, folder: AgentFolder) -> dict[tuple[int, str], str]: ...

    def read(self, oid: str) -> bytes: ...


class StoreReader(SupervisedFolders):
    """Reads a project's agents."""

    def __init__(
        self,
        project: Path,
        private: PrivateProject | None,
        *,
        host: str,
        harnesses: inbox.HookParsers | None = None,
        redaction: Redaction | None = None,
        audit: AuditStore | None = None,
    ) -> None:
        super().__init__(project, private)
        self.redaction = redaction or Redaction()
        self._host = host
        self._harnesses = {} if harnesses is None else harnesses
        self._audit = audit
        self._seen: dict[str, AgentView] = {}
        """Last view of each agent, cached because a supervisor reads many times a minute."""

    def read(self, agent: str) -> AgentView:
        """Return the current view of an agent, including inbox records, without waiting."""
        return self._read_current(self.folder(agent))

    def has_history(self, agent: str) -> bool:
        """Return whether the agent has any events besides its creation."""
        if not durable_files.path_exists(self.folder(agent).log):
            return False
        current = self.read(agent)
        return current.committed.seq > 1 or bool(current.pending)

    def last_question(self, agent: str) -> int:
        """Return the number of the agent's last question stored outside the log; 0 if unknown."""
        from rekindle.stores.log import question_numbers  # noqa: PLC0415 - only questions need it

        return question_numbers.load(self.folder(agent))

    def events_since(self, agent: str, offset: int) -> event_log.LogTail:
        """Return the events starting at an offset, for commands that follow the log."""
        return event_log.read_log(self.folder(agent).log, offset)

    def entries_since(self, agent: str, offset: int) -> Iterator[event_log.LogEntry]:
        """Return the raw log entries starting at an offset."""
        return event_log.read_entries(self.folder(agent).log, offset)

    def newest_entries(self, agent: str) -> Iterator[event_log.LogEntry]:
        """Yield the raw log entries, newest first, reading only as much as the caller needs."""
        return event_log.read_backwards(self.folder(agent).log)

    def newest_events(self, agent: str) -> Iterator[AnyEvent | UnknownEvent]:
        return (entry.event for entry in self.newest_entries(agent))

    def document(self, agent: str, name: str) -> bytes | None:
        """Return a document as readers should see it, with edits but without outdated content.

        An edit may contain secrets until a writer adopts it, so it is redacted here.
        """
        folder = self.folder(agent)
        current = self._read_current(folder)
        if name == "relay" and current.proposed is not None:
            return current.proposed.text.encode()
        last_commit = current.committed.documents.get(name)
        condition = folder_check.compare_document(folder, name, last_commit)
        if last_commit and condition in {"missing", "behind"}:
            copy = durable_files.read_bytes(folder.path / last_commit.path)
            if copy is None:
                raise StoreError(
                    last_commit.path,
                    f"the {name} and its archived copy are gone",
                    hint=f"restore it from a backup, or set the {name} again",
                )
            return copy
        data = durable_files.read_bytes(folder.document(name))
        return data if data is None or condition == "clean" else self.redaction.data(data)

    def has_edited_state(self, agent: str) -> bool:
        """Return whether state.json was edited since Rekindle last wrote it."""
        data = durable_files.read_bytes(self.folder(agent).state)
        return data is not None and folder_check.is_state_edited(data)

    def inspect(self, agent: str) -> list[folder_check.FolderProblem]:
        """Return the problems in an agent's folder, each with a command that fixes it."""
        folder = self.folder(agent)
        problems = folder_check.inspect_folder(folder, self._host, self._harnesses, self.redaction)
        with suppress(RekindleError):  # an unreadable log was already reported
            committed = self.read(agent).committed
            if self._audit and find_relay_seq(committed):
                problems += self._audit.inspect(folder, committed.seq)
        return problems

    def archived(self, agent: str, path: str) -> bytes | None:
        """Return the archived copy of a document."""
        return durable_files.read_bytes(self.folder(agent).path / path)

    def committed_relay(self, agent: str, event: RelayCommitted) -> bytes | None:
        """Return a past relay from the archive, or from the audit trail if the archive lacks it."""
        data = self.archived(agent, event.path)
        if data is not None:
            return data
        commit = self.audit_commits(agent).get((event.seq, event.sha256))
        with suppress(AuditError):
            data = self._audit.read(commit) if self._audit and commit else None
        return data if data and json_codec.hash_bytes(data) == event.sha256 else None

    def audit_commits(self, agent: str) -> dict[tuple[int, str], str]:
        """Return the git commit of each relay that has one, by event number and hash."""
        if self._audit is None:
            return {}
        try:
            return self._audit.commits(self.folder(agent))
        except AuditError:
            return {}

    def _has_edited_relay(self, agent: str) -> bool:
        last_commit = self.read(agent).committed.documents.get("relay")
        return folder_check.compare_document(self.folder(agent), "relay", last_commit) == "edited"

    def _read_current(self, folder: AgentFolder) -> AgentView:
        held = self._held.get(folder.name)
        if held is not None:
            held.check()
        before, noted = self._seen.get(folder.name), self._read_stop(folder)
        current = view.read_view(folder, self._harnesses, self.redaction, before, noted)
        if held is not None:
            held.check()  # the log may have been replaced since this view was read
            held.remember_log(current.end)
        self._seen[folder.name] = current
        if current.end - current.snapshot_end >= COLD_LOG_BYTES and not current.is_tampered:
            self._keep_snapshot(folder, current)
        return current

    def _keep_snapshot(self, folder: AgentFolder, current: AgentView) -> None:
        """Save a snapshot of a long log for the next reader, unless a writer is active."""
        with suppress(RekindleError), file_locks.hold_lock(folder.lock, 0.0) as lock:
            owner = ownership.read_owner(folder)
            if lock is None or owner is None or owner.host != self._host:
                return
            # Write these now, because the next writer starts at the snapshot and would miss them.
            resolving = [*current.resolving, *open_loops.select_resolving_events(current.tail)]
            from rekindle.stores.files import resolved_file  # noqa: PLC0415 - most readers do not need it

            resolved_file.append_resolutions(folder, resolving, current.committed.seq)
            snapshot.save_snapshot(folder, current.committed, current.end, current.chain)


def find_relay_seq(projection: Projection) -> int:
    """Return the number of the event that committed the relay, or 0."""
    last_commit = projection.documents.get("relay")
    return last_commit.seq if last_commit else 0
