"""The writer: the only code that changes an agent's files, apart from the inbox.

It exists while the agent's lock is held. Every change takes the same steps:

    1. new content is written to the archive
    2. the event is appended to the log and synced to disk: the commit point
    3. the files that people and agents read are replaced

A kill before step 2 leaves the old state, a kill after it the new one. The next writer completes an
unfinished step 3.
"""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from rekindle.documents import (
    brief,
    checkpoint,
    events,
    state,
)
from rekindle.documents import relay as relays
from rekindle.documents.events import (
    AnyEvent,
    DocumentCommitted,
)
from rekindle.documents.relay import Relay
from rekindle.errors import (
    CheckFailedError,
    DocumentError,
    NewerSchemaError,
    OwnershipError,
    TamperedLogError,
)
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.operator import questions
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.hook_reports import is_repeated, make_report_key
from rekindle.policy.projection.projection import CommittedDocument, Projection
from rekindle.policy.projection.state_document import adopt_state, make_state
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.relay import (
    relay_check,
    trim,
)
from rekindle.policy.settings.runtime_settings import (
    HEADLINE_CHARACTERS,
    SNAPSHOT_EVERY_BYTES,
    Settings,
)
from rekindle.policy.setup.adoption import ResolvedLine
from rekindle.policy.supervision import run_moves as policy
from rekindle.policy.text.token_estimate import estimate_tokens
from rekindle.ports import EventRegister
from rekindle.stores.files import (
    ownership,
    resolved_file,
)
from rekindle.stores.files.ownership import AgentOwner
from rekindle.stores.folders import rejected_files, spending_file
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import (
    event_log,
    inbox,
    question_numbers,
    seal,
    snapshot,
)
from rekindle.stores.log.seal import ChainPosition
from rekindle.stores.log.view import (
    AgentView,
    find_folded_end,
)
from rekindle.system.files import durable_files, file_locks, file_status
from rekindle.thresholds.storage import ASIDE_BYTES
from rekindle.thresholds.texts import REASON_CHARACTERS

_FROM_OUTSIDE = (
    *events.HOOK_REPORTS,
    events.LoopAdded,
    events.LoopResolved,
    events.RelayProposed,
    *events.OPERATOR_COMMANDS,
)
"""Events that hooks and commands may report. All others are facts that only the writer records."""


C = TypeVar("C", bound=DocumentCommitted)
AnyCommitted = events.RelayCommitted | events.CheckpointCommitted | events.BriefCommitted


class Writer:
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
        """Create the writer; `noted` is a stop stored outside the folder, maybe not in the log."""
        self.folder = folder
        self._noted = noted
        self._register = register
        self.projection: Projection = view.committed
        self._lock = lock
        self._owner = owner
        self._settings = settings
        self._harnesses = harnesses
        self._redaction = redaction
        self._clock = clock
        self._end, self._chain = view.end, view.chain
        self._has_leftover = view.has_leftover
        self._is_alone = True
        """Whether this writer has read every line of the log; another host may also append."""
        self._snapshot_end = view.snapshot_end
        self._start = view.start
        self._since: list[AnyEvent | events.UnknownEvent] = list(view.tail)
        self._resolving = view.resolving

    def now(self) -> datetime:
        return self._clock()

    def append(self, *new: AnyEvent) -> None:
        """Redact events and append them to the log; they are durable when this returns."""
        if new:
            self._append_events(*new)

    def catch_up(self) -> None:
        """Append the events that other hosts sent to the register, if there is a register."""
        if self._register is not None:
            self._append_events()

    def _append_events(self, *new: AnyEvent) -> None:
        # Another host may have taken over since we claimed the agent: check before each commit.
        ownership.require_owner(self.folder, self._owner)
        if not self._lock.is_still_at_path():
            raise OwnershipError(
                f"agent {self.folder.name}: its lock was removed while it was held",
                hint="do not change the run folder while the agent is in use",
            )
        for event in new:
            if isinstance(event, events.CycleEnded):
                self._refuse_second_cycle_end(event.cycle)
            elif isinstance(event, events.QuestionAsked):
                question_numbers.keep(self.folder, event.number)
        lines = self._number_lines([self._redaction.event(event) for event in new])
        if not lines:
            return
        start, end = self._append_sealed(lines)
        stamped = [events.parse(line) for line in lines]
        # A host that took over at this very moment ignores these lines, so we must not count them.
        ownership.require_owner(self.folder, self._owner)
        self._is_alone = self._is_alone and start == self._end
        self._end = end
        spent = self.projection.run.run_spending()
        self.projection = fold_events(self.projection, stamped)
        self._since += stamped
        if (now_spent := self.projection.run.run_spending()) != spent:
            spending_file.save_spending(self.folder, now_spent)

    def _refuse_second_cycle_end(self, cycle: int) -> None:
        """Refuse to end a cycle that has ended.

        The log's own lines are checked as well: the projection may miss some if an older
        `owner.json` or snapshot was put beside a newer log. Lines of an older generation do not
        count, because their host had lost the agent.
        """
        ended = self.projection.cycle_ended
        if self._register is None:
            for entry in event_log.read_backwards(self.folder.log, holding=(b'"cycle.ended"',)):
                event = entry.event
                if isinstance(event, events.CycleEnded) and event.gen >= self._owner.gen:
                    ended = max(ended, event.cycle)
                    break
        if cycle <= ended:
            agent = self.folder.name
            raise OwnershipError(
                f"agent {agent}: the log already has the end of cycle {cycle}",
                hint="another process, or an older copy of the folder, works on it:"
                f" `rekindle stop {agent}`, then `rekindle doctor`",
            )

    def _append_sealed(self, lines: Sequence[bytes]) -> tuple[int, int]:
        """Append lines to the log and seal them; the seal stays valid if this is interrupted."""
        private = self.folder.private
        if private is None:
            return event_log.append_lines(self.folder.log, lines)
        ends = [line + b"\n" for line in lines]
        base = ChainPosition(self._end, self._chain)
        then = ChainPosition(
            self._end + sum(len(line) for line in ends), seal.extend_chain(self._chain, ends)
        )
        if self._has_leftover:  # before the promise, which does not cover the leftover
            durable_files.truncate_file(self.folder.log, self._end)
        seal.promise_append(private.seal, base, then)
        self._has_leftover = True  # until the append is done
        start, end = event_log.append_lines(self.folder.log, lines)
        if start != base.end:
            ownership.require_owner(self.folder, self._owner)
            raise TamperedLogError(self.folder.name, "appended")
        self._has_leftover, self._chain = False, then.chain
        seal.confirm_append(private.seal, then)
        return start, end

    def _number_lines(self, new: Sequence[AnyEvent]) -> Sequence[bytes]:
        """Return the events as numbered log lines, after those that other hosts added meanwhile."""
        if self._register is None:
            first, gen = self.projection.seq + 1, self._owner.gen
            return [
                events.render(msgspec.structs.replace(event, seq=first + position, gen=gen))
                for position, event in enumerate(new)
            ]
        documents = {
            path: content
            for event in new
            if isinstance(event, DocumentCommitted)
            for path in (event.path, getattr(event, "trimmed", ""))
            if path and (content := durable_files.read_bytes(self.folder.path / path)) is not None
        }
        return self._register.commit(self.projection.seq, new, documents)

    def fold(self) -> None:
        """Move the inbox's current records into the log, then update the readers' files.

        There is only one pass, so that processes that keep writing cannot keep a command from
        finishing.
        """
        for segment in inbox.list_agent_segments(self.folder):
            start = find_folded_end(segment, self.projection)
            records = list(inbox.read_records(segment, start))
            if records:
                inbox.sync_segment(segment)
            self._take_records(records)
            torn = inbox.retire_segment(segment, records[-1].end if records else start)
            if torn is not None:
                self._take_records([torn])
                inbox.retire_segment(segment, torn.end)
        self._record_noted_stop()
        self.project()

    def _record_noted_stop(self) -> None:
        """Record a stop that could not be written to the log when it was given."""
        noted, run = self._noted, self.projection.run
        if noted is not None and policy.apply_desired(run, noted).said != run.said:
            self.append(noted)

    def commit_relay(self, relay: Relay, *, by: str, at: str = "") -> CommittedDocument:
        """Make a relay the current one, trimmed to its cap; trimmed text is archived first."""
        written = relays.render(relay)
        relay = relays.parse(self._redaction.text(written).encode())
        cap = self._settings.runtime.relay.max_relay_tokens
        checked = relay_check.classify_relay(relay, cap)
        if not checked.usable:
            raise CheckFailedError(
                f"this relay cannot be used: {checked.findings[0].message}",
                hint="give it a `## Next Action` with one directive, then set it again",
            )
        cut = trim.trim_relay(relay, cap)
        trimmed_path = ""
        if cut.removed:
            title = f"Trimmed from the relay of {self.now():%Y-%m-%d %H:%M} UTC"
            last_commit = self.projection.documents.get("relay")
            text = trim.render_archive(cut.removed, title).encode()
            trimmed_path = self._archive_bytes(
                "trimmed", text, last_commit.trimmed if last_commit else ""
            )
        data = relays.render(cut.relay).encode()
        event = self._make_commit_event(
            events.RelayCommitted, data, by, relay_check.find_headline(cut.relay)
        )
        event = msgspec.structs.replace(event, trimmed=trimmed_path, over_cap=not cut.fits, at=at)
        return self._commit_document(data, event, written)

    def commit_checkpoint(
        self, document: checkpoint.Checkpoint, *, by: str, session: str = ""
    ) -> CommittedDocument:
        """Make a checkpoint the current one; with `session`, only that session receives it."""
        written = checkpoint.render(document)
        data = self._redaction.text(written).encode()
        headline = checkpoint.parse(data).content(checkpoint.CheckpointSection.RESUME_INSTRUCTIONS)
        event = self._make_commit_event(events.CheckpointCommitted, data, by, headline)
        event = msgspec.structs.replace(event, session=session)
        return self._commit_document(data, event, written)

    def commit_brief(
        self, document: brief.Brief, *, by: str, also: Sequence[AnyEvent] = ()
    ) -> None:
        """Make a brief the current one; commit the events in `also`, which follow from it, too."""
        written = brief.render(document)
        data = self._redaction.text(written).encode()
        headline = brief.parse(data).content(brief.BriefLabel.NEXT) or ""
        event = self._make_commit_event(events.BriefCommitted, data, by, headline)
        self._commit_document(data, event, written, also)

    def rotate_resolutions(self) -> tuple[list[ResolvedLine], bool]:
        """Rotate resolved.jsonl, and return the resolutions that other tools wrote into it.

        The second result is whether any of them has not been in a brief yet.

        The file is renamed first: lines appended meanwhile go to the new file, or are returned the
        next time.
        """
        self.project()
        resolved_file.rotate_resolved(self.folder, self.projection.seq)
        return resolved_file.read_foreign_lines(self.folder, self.projection.briefed.resolved)

    def project(self) -> None:
        """Update the files that are derived from the log."""
        self._project_state()
        self._append_resolutions()
        if self._end - self._snapshot_end >= SNAPSHOT_EVERY_BYTES:
            self.snapshot()

    def snapshot(self) -> None:
        """Save a snapshot, after writing everything that only the tail of the log can provide."""
        self._append_resolutions()
        if not self._is_alone:
            return  # it would hide lines that it does not include; the next writer reads them
        snapshot.save_snapshot(self.folder, self.projection, self._end, self._chain)
        self._snapshot_end = self._end
        self._start, self._since, self._resolving = self.projection, [], ()

    def _append_resolutions(self) -> None:
        resolving = [*self._resolving, *open_loops.select_resolving_events(self._since)]
        resolved_file.append_resolutions(self.folder, resolving, self.projection.seq)

    def _take_records(self, records: list[inbox.InboxRecord]) -> None:
        batch: list[AnyEvent] = []
        seen = dict(self.projection.seen)
        try:
            for record in records:
                event = self._accept_record(record)
                if event is None or is_repeated(seen, event):
                    continue
                if key := make_report_key(event):
                    seen[key] = event.ts
                if isinstance(event, events.RelayProposed):
                    self.append(*batch)
                    batch = []
                    self._commit_proposed(event, record.at)
                elif isinstance(event, events.QuestionAnswered):
                    # Recorded first, because an answer is judged against the log: of two
                    # simultaneous answers, the first counts.
                    self.append(*batch)
                    batch = []
                    judged = questions.judge_answer(self.projection, event, self.now())
                    self.append(msgspec.structs.replace(judged, at=record.at))
                else:
                    batch.append(msgspec.structs.replace(event, at=record.at))
        except DocumentError:
            # A record that must wait for a newer Rekindle does not delay the records before it.
            self.append(*batch)
            raise
        self.append(*batch)

    def _accept_record(self, record: inbox.InboxRecord) -> AnyEvent | None:
        try:
            event = record.event(self._harnesses, self._redaction)
        except NewerSchemaError as error:
            if record.is_from_operator:
                raise  # a newer Rekindle acknowledged it: leave it in the inbox for that version
            return self._set_record_aside(record, error.reason)
        except DocumentError as error:
            return self._make_rejection(record, error.reason)
        if event is None or isinstance(event, _FROM_OUTSIDE):
            return event
        if isinstance(event, events.UnknownEvent):
            reason = f"has a record of the unknown kind {event.kind}"
            if record.is_from_operator:  # a newer Rekindle wrote it: leave it in the inbox
                raise DocumentError(
                    "inbox", reason, hint="upgrade Rekindle: pip install --upgrade rekindle-agents"
                )
            return self._set_record_aside(record, reason)
        return self._make_rejection(record, f"only Rekindle itself may write {event.kind}")

    def _set_record_aside(self, record: inbox.InboxRecord, reason: str) -> events.InboxRejected:
        """Set aside a record from the workspace that only a newer Rekindle could read.

        If the writer waited for the newer version, an agent could stop its supervisor with a forged
        record.
        """
        path, line = self.folder.rejected_records, self._redaction.data(record.line) + b"\n"
        size, *_ = file_status.make_file_stamp(path) or (0,)
        if size + len(line) > ASIDE_BYTES:
            return self._make_rejection(record, f"{reason}; dropped, because {path.name} is full")
        durable_files.append_durably(path, line)
        return self._make_rejection(record, f"{reason}; moved to {path.parent.name}/{path.name}")

    def _make_rejection(self, record: inbox.InboxRecord, reason: str) -> events.InboxRejected:
        return events.InboxRejected(
            ts=self.now(), bytes=len(record.line), reason=to_one_line(reason, REASON_CHARACTERS)
        )

    def _commit_proposed(self, proposal: events.RelayProposed, at: str) -> None:
        try:
            self.commit_relay(relays.parse(proposal.text), by=proposal.by, at=at)
        except (DocumentError, CheckFailedError) as unusable:
            path = self._archive_bytes("rejected", proposal.text.encode())
            self.append(
                events.DocumentRejected(
                    ts=self.now(), document="relay", path=path, reason=str(unusable), at=at
                )
            )

    def _archive_bytes(self, prefix: str, data: bytes, last: str = "") -> str:
        """Archive bytes and return their path, or `last` if that copy has the same text."""
        if last and _holds_same_text(
            durable_files.read_bytes(self.folder.path / last), data, prefix
        ):
            return last
        name = f"{prefix}-{self.projection.seq + 1:08d}-{find_archived_digest(data)}.md"
        path = self.folder.archive / name
        if durable_files.read_bytes(path) != data:
            durable_files.replace_file(path, data)
        return str(path.relative_to(self.folder.path))

    def _make_commit_event(self, kind: type[C], data: bytes, by: str, headline: str) -> C:
        """Archive `data`, and return the event that commits it."""
        last_commit = self.projection.documents.get(kind.document)
        return kind(
            ts=self.now(),
            sha256=json_codec.hash_bytes(data),
            previous=last_commit.sha256 if last_commit else "",
            path=self._archive_bytes(kind.document, data, last_commit.path if last_commit else ""),
            by=by,
            tokens=estimate_tokens(data.decode()),
            headline=to_one_line(headline, HEADLINE_CHARACTERS),
        )

    def _commit_document(
        self, data: bytes, event: AnyCommitted, written: str, also: Sequence[AnyEvent] = ()
    ) -> CommittedDocument:
        """Append the event, then replace the readers' file.

        The file may have been edited since it was last read. Such an edit is set aside rather than
        overwritten, unless it is the text being committed: `written`, redacted or not.
        """
        document = event.document
        path = self.folder.document(document)
        self.append(*also, event)
        current = durable_files.read_bytes(path)
        if current is not None:
            is_known = json_codec.hash_bytes(current) in {event.previous, event.sha256}
            if not is_known and not self._is_taken_over(current, written):
                self.set_aside(document, path, "it was edited while a new one was committed")
        # A file that is already correct is left alone, so that programs that have it open keep it.
        if current == data:
            durable_files.make_private(path)
        else:
            durable_files.replace_file(path, data)
        return self.projection.documents[document]

    def _is_taken_over(self, current: bytes, written: str) -> bool:
        text = written.encode()
        return current == text or self._redaction.data(current) == self._redaction.data(text)

    def set_aside(self, document: str, path: Path, reason: str, *, is_plain: bool = True) -> None:
        """Rename a file to an unused `.rejected` name, and record that in the log.

        The file is redacted in place first: after a kill in between, the next writer starts over.
        Anything that is not a plain file, or is too large to read, is renamed unredacted.
        """
        if is_plain:
            content = durable_files.read_bytes(path)
            if content is not None and (cleaned := self._redaction.data(content)) != content:
                durable_files.replace_file(path, cleaned)
        to = rejected_files.find_free_path(path)
        durable_files.rename_durably(path, to)
        self.append(
            events.DocumentRejected(
                ts=self.now(),
                document=document,
                path=os.path.relpath(to, self.folder.path),
                reason=reason,
            )
        )
        rejected_files.remove_older(path, to)

    def _project_state(self) -> None:
        current = durable_files.read_bytes(self.folder.state)
        if current is not None:
            self._adopt_state(current)
        data = state.render(make_state(self.projection, self.now(), self._settings.runtime.loops))
        if current != data:
            durable_files.replace_file(self.folder.state, data)

    def _adopt_state(self, current: bytes) -> None:
        """Adopt edits made to state.json since Rekindle wrote it."""
        try:
            if state.is_unedited(current):
                return
            state.parse(current)  # refuse an unreadable file before redaction changes it
            edited = state.parse(self._redaction.json(current.removeprefix(BOM_UTF8)))
        except DocumentError as unreadable:
            self.set_aside("state", self.folder.state, str(unreadable))
            return
        when = min(self.now(), file_status.read_modified_time(self.folder.state))
        event = adopt_state(self._project_at(edited.seq), edited, when)
        if event is not None:
            self.append(event)

    def _project_at(self, seq: int) -> Projection:
        """Return the projection at an event, or the current one if the event is too old."""
        if not self._start.seq <= seq < self.projection.seq:
            return self.projection
        return fold_events(self._start, [event for event in self._since if event.seq <= seq])


def find_archived_digest(data: bytes) -> str:
    """Return the part of a document's hash that ends its name in the archive."""
    return json_codec.hash_bytes(data)[:12]


def _holds_same_text(archived: bytes | None, data: bytes, prefix: str) -> bool:
    """Return whether a copy holds the text; the title of trimmed text, a time, may differ."""
    if archived is None or prefix != "trimmed":
        return archived == data
    return archived.split(b"\n", 2)[2:] == data.split(b"\n", 2)[2:]
