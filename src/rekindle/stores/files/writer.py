"""The writer: the only code that changes an agent's files, apart from the inbox.

A writer exists only while the agent's lock is held. Every change follows the same steps:

    1. new content is written to the archive
    2. the event is appended to the log and synced to disk: the commit point
    3. the files that people and agents read are replaced

If the process is killed before step 2, the old state remains. If it is killed after step 2, the new
state counts, and the next writer completes step 3.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from rekindle.documents import (
    events,
    state,
)
from rekindle.documents import relay as relays
from rekindle.documents.events import AnyEvent
from rekindle.errors import (
    CheckFailedError,
    DocumentError,
    NewerSchemaError,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.operator import answers
from rekindle.policy.projection.hook_reports import is_repeated, make_report_key
from rekindle.policy.projection.state_document import adopt_state, make_state
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import (
    SNAPSHOT_EVERY_BYTES,
    Settings,
)
from rekindle.policy.setup.adoption import ResolvedLine
from rekindle.policy.supervision import run_moves as policy
from rekindle.ports import EventRegister
from rekindle.stores.files import resolved_file
from rekindle.stores.files.document_writer import DocumentWriter
from rekindle.stores.files.ownership import AgentOwner
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import inbox
from rekindle.stores.log.view import (
    AgentView,
    find_folded_end,
)
from rekindle.system.files import durable_files, file_locks, file_status
from rekindle.thresholds.storage import ASIDE_BYTES
from rekindle.thresholds.texts import REASON_CHARACTERS


class Writer(DocumentWriter):
    """The only writer of an agent's files. It folds the inbox and updates derived files."""

    def __init__(
        self,
        folder: AgentFolder,
        *,
        lock: file_locks.FileLock,
        owner: AgentOwner,
        view: AgentView,
        settings: Settings,
        harnesses: inbox.HookParsers,
        redaction: Redaction,
        clock: Callable[[], datetime],
        register: EventRegister | None = None,
        noted: events.DesiredSet | None = None,
    ) -> None:
        """Create the writer. `noted` is a stop stored outside the folder. The log may lack it."""
        super().__init__(
            folder,
            lock=lock,
            owner=owner,
            view=view,
            settings=settings,
            redaction=redaction,
            clock=clock,
            register=register,
        )
        self._noted = noted
        self._harnesses = harnesses

    def fold(self, *also: AnyEvent) -> None:
        """Move the records in the inbox to the log, then update the derived files.

        The inbox is read only once, so a command finishes even if other processes keep adding
        records. Events in `also` are appended with the first records, because on a fleet each
        append is a call to the engine.
        """
        for segment in inbox.list_agent_segments(self.folder):
            start = find_folded_end(segment, self.projection)
            records = list(inbox.read_records(segment, start))
            if records:
                inbox.sync_segment(segment)
                self._take_records(records, also)
                also = ()
            torn = inbox.retire_segment(segment, records[-1].end if records else start)
            if torn is not None:
                self._take_records([torn])
                inbox.retire_segment(segment, torn.end)
        self.append(*also)
        self._record_noted_stop()
        self.project()

    def project(self) -> None:
        """Update the files derived from the log."""
        self._project_state()
        self._append_resolutions()
        if self._end - self._snapshot_end >= SNAPSHOT_EVERY_BYTES:
            self.snapshot()

    def rotate_resolutions(self) -> tuple[list[ResolvedLine], bool]:
        """Rotate resolved.jsonl, and return the resolutions that other tools added to it.

        The second value is True if any of them is not in a brief yet. The file is renamed first, so
        lines added later either go to the new file or are returned by the next call.
        """
        self.project()
        resolved_file.rotate_resolved(self.folder, self.projection.seq)
        return resolved_file.read_foreign_lines(self.folder, self.projection.briefed.resolved)

    def _record_noted_stop(self) -> None:
        """Record a stop that could not be written to the log at the time."""
        noted, run = self._noted, self.projection.run
        if noted is not None and policy.apply_desired(run, noted).command != run.command:
            self.append(noted)

    def _take_records(
        self, records: list[inbox.InboxRecord], also: Sequence[AnyEvent] = ()
    ) -> None:
        batch: list[AnyEvent] = []
        reports = dict(self.projection.seen)
        try:
            for record in records:
                event = self._accept_record(record)
                if event is None or is_repeated(reports, event):
                    continue
                if key := make_report_key(event):
                    reports[key] = event.ts
                if isinstance(event, events.RelayProposed):
                    self.append(*batch)
                    batch = []
                    self._commit_proposed(event, record.at)
                elif isinstance(event, events.QuestionAnswered):
                    # Append the batch first: if two answers arrive together, the first one counts.
                    self.append(*batch)
                    batch = []
                    judged = answers.judge_answer(self.projection, event, self.now())
                    self.append(msgspec.structs.replace(judged, at=record.at))
                else:
                    batch.append(msgspec.structs.replace(event, at=record.at))
        except DocumentError:
            # A record that needs a newer Rekindle must not block the records before it.
            self.append(*batch, *also)
            raise
        self.append(*batch, *also)

    def _accept_record(self, record: inbox.InboxRecord) -> AnyEvent | None:
        try:
            event = record.event(self._harnesses, self._redaction)
        except NewerSchemaError as error:
            if record.is_from_operator:
                raise  # it needs a newer Rekindle, so leave it in the inbox
            return self._set_record_aside(record, error.reason)
        except DocumentError as error:
            return self._make_rejection(record, error.reason)
        if not isinstance(event, events.UnknownEvent):
            return event
        reason = f"has a record of an unknown kind: {event.kind}"
        if record.is_from_operator:  # it needs a newer Rekindle, so leave it in the inbox
            raise DocumentError(
                "inbox", reason, hint="upgrade Rekindle: pip install --upgrade rekindle-agents"
            )
        return self._set_record_aside(record, reason)

    def _set_record_aside(self, record: inbox.InboxRecord, reason: str) -> events.InboxRejected:
        """Set aside a record from the workspace that needs a newer Rekindle.

        If the writer waited instead, an agent could block its supervisor with a forged record.
        """
        path, line = self.folder.rejected_records, self._redaction.data(record.line) + b"\n"
        size, *_ = file_status.make_file_stamp(path) or (0,)
        if size + len(line) > ASIDE_BYTES:
            return self._make_rejection(
                record, f"{reason}; the record was dropped, because {path.name} is full"
            )
        durable_files.append_durably(path, line)
        return self._make_rejection(record, f"{reason}; moved to {path.parent.name}/{path.name}")

    def _make_rejection(self, record: inbox.InboxRecord, reason: str) -> events.InboxRejected:
        return events.InboxRejected(
            ts=self.now(), bytes=len(record.line), reason=to_one_line(reason, REASON_CHARACTERS)
        )

    def _commit_proposed(self, proposal: events.RelayProposed, at: str) -> None:
        try:
            self._require_base(proposal.base)
            self.commit_relay(relays.parse(proposal.text), by=proposal.by, at=at)
        except (DocumentError, CheckFailedError) as unusable:
            path = self._archive_bytes("rejected", proposal.text.encode())
            self.append(
                events.DocumentRejected(
                    ts=self.now(), document="relay", path=path, reason=str(unusable), at=at
                )
            )

    def _require_base(self, base: str) -> None:
        """Refuse a relay that its author based on an older one."""
        current = self.projection.documents.get("relay")
        if base and base != (current.sha256 if current else ""):
            raise CheckFailedError("another relay was committed since the edit began")

    def _project_state(self) -> None:
        current = durable_files.read_bytes(self.folder.state)
        if current is not None:
            self._adopt_state(current)
        data = state.render(make_state(self.projection, self.now(), self._settings.runtime.loops))
        if current != data:
            durable_files.replace_file(self.folder.state, data)

    def _adopt_state(self, current: bytes) -> None:
        """Adopt edits to state.json."""
        try:
            if state.is_unedited(current):
                return
            state.parse(current)  # reject an unreadable file before redaction changes it
            edited = state.parse(self._redaction.json(current.removeprefix(BOM_UTF8)))
        except DocumentError as unreadable:
            self.set_aside("state", self.folder.state, str(unreadable))
            return
        when = min(self.now(), file_status.read_modified_time(self.folder.state))
        event = adopt_state(self._project_at(edited.seq), edited, when)
        if event is not None:
            self.append(event)
