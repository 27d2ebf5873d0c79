"""The writer: the only code that changes an agent's files, but for the inbox.

It exists while the agent's lock is held. Every change goes the same way:

    1. what is new is put into the archive
    2. the event is appended to the log and confirmed by the disk: the commit point
    3. the files that people and agents read are replaced

A kill before 2 leaves the old state, after it the new one; what 3 did not reach is mended by the
next writer.
"""

import os
from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from rekindle.documents import brief, checkpoint, jsontext, state
from rekindle.documents import event as events
from rekindle.documents import relay as relays
from rekindle.documents.event import AnyEvent, Committed
from rekindle.documents.identity import one_line
from rekindle.documents.relay import Relay
from rekindle.errors import (
    CheckFailedError,
    CycleEndedError,
    DocumentError,
    NewerSchemaError,
    OwnershipError,
    TamperedLogError,
)
from rekindle.policy import check, loops, questions, trim
from rekindle.policy import run as policy
from rekindle.policy.adoption import Closing
from rekindle.policy.fold import Projection, Standing, adopt, fold, is_repeated, key_of, state_of
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings import HEADLINE_CHARACTERS, SNAPSHOT_EVERY_BYTES, Settings
from rekindle.policy.tokens import estimate
from rekindle.ports import Register
from rekindle.stores.files import inbox, log, ownership, resolutions, seal, snapshot, spending
from rekindle.stores.files.layout import AgentFolder
from rekindle.stores.files.ownership import Owner
from rekindle.stores.files.seal import Place
from rekindle.stores.files.view import View, folded_up_to
from rekindle.system import disk
from rekindle.thresholds.storage import ASIDE_BYTES
from rekindle.thresholds.texts import REASON_CHARACTERS

_FROM_OUTSIDE = (
    *events.HOOK_REPORTS,
    events.LoopAdded,
    events.LoopResolved,
    events.RelayProposed,
    *events.OPERATOR_COMMANDS,
)
"""What hooks and commands may say. Everything else is a fact that only the writer establishes."""


C = TypeVar("C", bound=Committed)
AnyCommitted = events.RelayCommitted | events.CheckpointCommitted | events.BriefCommitted


class Writer:
    def __init__(
        self,
        folder: AgentFolder,
        *,
        lock: disk.Lock,
        owner: Owner,
        view: View,
        settings: Settings,
        harnesses: inbox.Harnesses,
        redaction: Redaction,
        clock: Callable[[], datetime],
        register: Register | None = None,
        noted: events.DesiredSaid | None = None,
    ) -> None:
        """`noted` is a stop that is kept outside the folder and may not be in the log."""
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
        """Whether we know every line of the log up to its end: another host may append too."""
        self._snapshot_end = view.snapshot_end
        self._start = view.start
        self._since: list[AnyEvent | events.Unrecognised] = list(view.tail)
        self._resolving = view.resolving

    def now(self) -> datetime:
        return self._clock()

    def append(self, *new: AnyEvent) -> None:
        """Add facts to the log, without secrets; when this returns they are durable."""
        if new:
            self._append(*new)

    def catch_up(self) -> None:
        """Add what others have said to whoever numbers our events; where we do, there is none."""
        if self._register is not None:
            self._append()

    def _append(self, *new: AnyEvent) -> None:
        # Another host may have taken over since we claimed the agent: look before each commit.
        ownership.require(self.folder, self._owner)
        if not self._lock.is_in_place():
            raise OwnershipError(
                f"agent {self.folder.name}: its lock was removed while it was held",
                hint="leave the run folder alone while something works on the agent",
            )
        for event in new:
            if isinstance(event, events.CycleEnded):
                self._refuse_second_end(event.cycle)
        lines = self._numbered([self._redaction.event(event) for event in new])
        if not lines:
            return
        start, end = self._append_sealed(lines)
        stamped = [events.parse(line) for line in lines]
        # One that took over in this very moment does not count these lines: nor may we.
        ownership.require(self.folder, self._owner)
        self._is_alone = self._is_alone and start == self._end
        self._end = end
        spent = self.projection.run.spent_of_run()
        self.projection = fold(self.projection, stamped)
        self._since += stamped
        if (now_spent := self.projection.run.spent_of_run()) != spent:
            spending.save(self.folder, now_spent)

    def _refuse_second_end(self, cycle: int) -> None:
        """Refuse to end a cycle that has ended.

        The log's own lines decide as well: the projection may miss some, where an older
        `owner.json` or snapshot was put beside a newer log. Lines of an older generation do not
        count: their host had lost the agent.
        """
        ended = self.projection.cycle_ended
        if self._register is None:
            for entry in log.backwards(self.folder.log, holding=(b'"cycle.ended"',)):
                event = entry.event
                if isinstance(event, events.CycleEnded) and event.gen >= self._owner.gen:
                    ended = max(ended, event.cycle)
                    break
        if cycle <= ended:
            raise CycleEndedError(self.folder.name, cycle)

    def _append_sealed(self, lines: Sequence[bytes]) -> tuple[int, int]:
        """Append lines that the seal covers before they are there, and after a crash."""
        private = self.folder.private
        if private is None:
            return log.append(self.folder.log, lines)
        ends = [line + b"\n" for line in lines]
        base = Place(self._end, self._chain)
        then = Place(self._end + sum(len(line) for line in ends), seal.extend(self._chain, ends))
        if self._has_leftover:  # before the promise, which does not cover it
            disk.cut(self.folder.log, self._end)
        seal.promise(private.seal, base, then)
        self._has_leftover = True  # until the append is done
        start, end = log.append(self.folder.log, lines)
        if start != base.end:
            ownership.require(self.folder, self._owner)
            raise TamperedLogError(self.folder.name, "appended")
        self._has_leftover, self._chain = False, then.chain
        seal.confirm(private.seal, then)
        return start, end

    def _numbered(self, new: Sequence[AnyEvent]) -> Sequence[bytes]:
        """The facts as lines of the log, behind those that others have added meanwhile."""
        if self._register is None:
            first, gen = self.projection.seq + 1, self._owner.gen
            return [
                events.render(msgspec.structs.replace(event, seq=first + place, gen=gen))
                for place, event in enumerate(new)
            ]
        documents = {
            path: kept
            for event in new
            if isinstance(event, Committed)
            for path in (event.path, getattr(event, "trimmed", ""))
            if path and (kept := disk.read(self.folder.path / path)) is not None
        }
        return self._register.commit(self.projection.seq, new, documents)

    def fold(self) -> None:
        """Move what the inbox holds now into the log, then bring the readers' files up to date.

        One pass: writers that never stop must not keep a command from ending.
        """
        for segment in inbox.of_agent(self.folder):
            start = folded_up_to(segment, self.projection)
            found = list(inbox.records(segment, start))
            if found:
                inbox.sync(segment)
            self._take(found)
            torn = inbox.retire(segment, found[-1].end if found else start)
            if torn is not None:
                self._take([torn])
                inbox.retire(segment, torn.end)
        self._record_noted_stop()
        self.project()

    def _record_noted_stop(self) -> None:
        """Record a stop that could not be written to the log when it was given."""
        noted, run = self._noted, self.projection.run
        if noted is not None and policy.said(run, noted).said != run.said:
            self.append(noted)

    def commit_relay(self, relay: Relay, *, by: str, at: str = "") -> Standing:
        """Make a relay the current one, trimmed to its cap; what is trimmed is archived first."""
        written = relays.render(relay)
        relay = relays.parse(self._redaction.text(written).encode())
        cap = self._settings.runtime.relay.max_relay_tokens
        checked = check.check(relay, cap)
        if not checked.usable:
            raise CheckFailedError(
                f"this relay cannot be used: {checked.findings[0].message}",
                hint="give it a `## Next Action` with one directive, then set it again",
            )
        cut = trim.trim(relay, cap)
        kept = ""
        if cut.removed:
            title = f"Trimmed from the relay of {self.now():%Y-%m-%d %H:%M} UTC"
            standing = self.projection.documents.get("relay")
            text = trim.archive_text(cut.removed, title).encode()
            kept = self._archive("trimmed", text, standing.trimmed if standing else "")
        data = relays.render(cut.relay).encode()
        event = self._committed(events.RelayCommitted, data, by, check.headline(cut.relay))
        event = msgspec.structs.replace(event, trimmed=kept, over_cap=not cut.fits, at=at)
        return self._commit(data, event, written)

    def commit_checkpoint(
        self, document: checkpoint.Checkpoint, *, by: str, session: str = ""
    ) -> Standing:
        """Make a checkpoint the current one; of a `session`, it is told to no other."""
        written = checkpoint.render(document)
        data = self._redaction.text(written).encode()
        headline = checkpoint.parse(data).content(checkpoint.Part.RESUME_INSTRUCTIONS)
        event = self._committed(events.CheckpointCommitted, data, by, headline)
        event = msgspec.structs.replace(event, session=session)
        return self._commit(data, event, written)

    def commit_brief(
        self, document: brief.Brief, *, by: str, also: Sequence[AnyEvent] = ()
    ) -> None:
        """Make a brief the current one; `also` is what follows from it, and counts with it."""
        written = brief.render(document)
        data = self._redaction.text(written).encode()
        headline = brief.parse(data).content(brief.Label.NEXT) or ""
        event = self._committed(events.BriefCommitted, data, by, headline)
        self._commit(data, event, written, also)

    def put_resolutions_away(self) -> tuple[list[Closing], bool]:
        """Begin resolved.jsonl anew, and tell what other tools have resolved in it, and when.

        And whether there is any of it that no brief has told of.

        It is renamed first: what is appended meanwhile is in the new file, or is told the next
        time.
        """
        self.project()
        resolutions.put_away(self.folder, self.projection.seq)
        return resolutions.of_others(self.folder, self.projection.briefed.resolved)

    def project(self) -> None:
        """Bring the files that are made from the log up to date with it."""
        self._project_state()
        self._append_resolutions()
        if self._end - self._snapshot_end >= SNAPSHOT_EVERY_BYTES:
            self.snapshot()

    def snapshot(self) -> None:
        """Keep what the log adds up to; what the tail alone could still tell is written first."""
        self._append_resolutions()
        if not self._is_alone:
            return  # it would hide lines that it does not hold; the next writer reads them
        snapshot.save(self.folder, self.projection, self._end, self._chain)
        self._snapshot_end = self._end
        self._start, self._since, self._resolving = self.projection, [], ()

    def _append_resolutions(self) -> None:
        resolving = [*self._resolving, *loops.select_resolving(self._since)]
        resolutions.append(self.folder, resolving, self.projection.seq)

    def _take(self, found: list[inbox.Record]) -> None:
        batch: list[AnyEvent] = []
        seen = dict(self.projection.seen)
        try:
            for record in found:
                event = self._accept(record)
                if event is None or is_repeated(seen, event):
                    continue
                if key := key_of(event):
                    seen[key] = event.ts
                if isinstance(event, events.RelayProposed):
                    self.append(*batch)
                    batch = []
                    self._commit_proposed(event, record.at)
                elif isinstance(event, events.QuestionAnswered):
                    # Judged by what is recorded: of two answers at once the first counts.
                    self.append(*batch)
                    batch = []
                    judged = questions.judge(self.projection, event, self.now())
                    self.append(msgspec.structs.replace(judged, at=record.at))
                else:
                    batch.append(msgspec.structs.replace(event, at=record.at))
        except DocumentError:
            # A record that must wait for a newer Rekindle does not make those before it wait.
            self.append(*batch)
            raise
        self.append(*batch)

    def _accept(self, record: inbox.Record) -> AnyEvent | None:
        try:
            event = record.event(self._harnesses, self._redaction)
        except NewerSchemaError as error:
            if record.is_operators:
                raise  # acknowledged by a newer Rekindle: left in the inbox for that one
            return self._set_record_aside(record, error.reason)
        except DocumentError as error:
            return self._rejected(record, error.reason)
        if event is None or isinstance(event, _FROM_OUTSIDE):
            return event
        if isinstance(event, events.Unrecognised):
            reason = f"holds a record of a kind that is not known here ({event.kind})"
            if record.is_operators:  # a newer Rekindle wrote it: left in the inbox for that one
                raise DocumentError(
                    "inbox", reason, hint="upgrade Rekindle: pip install --upgrade rekindle-agents"
                )
            return self._set_record_aside(record, reason)
        return self._rejected(record, f"{event.kind} cannot come from outside")

    def _set_record_aside(self, record: inbox.Record, reason: str) -> events.InboxRejected:
        """Keep a record of the workspace that only a newer Rekindle could read.

        Waiting for that one would let an agent end its supervisor with a record of its own making.
        """
        path, line = self.folder.rejected_records, self._redaction.data(record.line) + b"\n"
        size, *_ = disk.stamp(path) or (0,)
        if size + len(line) > ASIDE_BYTES:
            return self._rejected(record, f"{reason}; not kept, {path.name} is full")
        disk.append(path, line)
        return self._rejected(record, f"{reason}; kept in {path.parent.name}/{path.name}")

    def _rejected(self, record: inbox.Record, reason: str) -> events.InboxRejected:
        return events.InboxRejected(
            ts=self.now(), bytes=len(record.line), reason=one_line(reason, REASON_CHARACTERS)
        )

    def _commit_proposed(self, proposal: events.RelayProposed, at: str) -> None:
        try:
            self.commit_relay(relays.parse(proposal.text), by=proposal.by, at=at)
        except CheckFailedError as unusable:
            path = self._archive("rejected", proposal.text.encode())
            self.append(
                events.DocumentRejected(
                    ts=self.now(), document="relay", path=path, reason=str(unusable), at=at
                )
            )

    def _archive(self, prefix: str, data: bytes, last: str = "") -> str:
        """Keep bytes for good and return their path; `last`, the last copy, if it holds them."""
        if last and _has_same_text(disk.read(self.folder.path / last), data, prefix):
            return last
        name = f"{prefix}-{self.projection.seq + 1:08d}-{archived_digest(data)}.md"
        path = self.folder.archive / name
        if disk.read(path) != data:
            disk.replace(path, data)
        return str(path.relative_to(self.folder.path))

    def _committed(self, kind: type[C], data: bytes, by: str, headline: str) -> C:
        """The event that commits `data`; the archive has it by the time that this returns."""
        standing = self.projection.documents.get(kind.document)
        return kind(
            ts=self.now(),
            sha256=jsontext.fingerprint(data),
            previous=standing.sha256 if standing else "",
            path=self._archive(kind.document, data, standing.path if standing else ""),
            by=by,
            tokens=estimate(data.decode()),
            headline=one_line(headline, HEADLINE_CHARACTERS),
        )

    def _commit(
        self, data: bytes, event: AnyCommitted, written: str, also: Sequence[AnyEvent] = ()
    ) -> Standing:
        """Append the event, then replace the readers' file.

        Somebody may have saved an edit since we looked. It is set aside rather than overwritten,
        unless it is the very text that this commit takes over: `written`, with its secrets or
        without.
        """
        document = event.document
        path = self.folder.document(document)
        self.append(*also, event)
        found = disk.read(path)
        if found is not None:
            is_known = jsontext.fingerprint(found) in {event.previous, event.sha256}
            if not is_known and not self._is_taken_over(found, written):
                self.set_aside(document, path, "it was edited while a new one was committed")
        # A file that is right already is left alone: whoever has it open goes on in the same one.
        if found == data:
            disk.make_private(path)
        else:
            disk.replace(path, data)
        return self.projection.documents[document]

    def _is_taken_over(self, found: bytes, written: str) -> bool:
        text = written.encode()
        return found == text or self._redaction.data(found) == self._redaction.data(text)

    def set_aside(self, document: str, path: Path, reason: str, *, is_plain: bool = True) -> None:
        """Move a file out of the way under a name that is not taken, and say so.

        Its secrets go first, where it stands: killed in between, the next writer begins again. What
        is no plain file, or too large to be looked at, is moved as it is.
        """
        if is_plain:
            found = disk.read(path)
            if found is not None and (cleaned := self._redaction.data(found)) != found:
                disk.replace(path, cleaned)
        to = path.with_name(f"{path.name}.rejected")
        number = 1
        while disk.exists(to):
            number += 1
            to = path.with_name(f"{path.name}.{number}.rejected")
        disk.set_aside(path, to)
        self.append(
            events.DocumentRejected(
                ts=self.now(),
                document=document,
                path=os.path.relpath(to, self.folder.path),
                reason=reason,
            )
        )

    def _project_state(self) -> None:
        found = disk.read(self.folder.state)
        if found is not None:
            self._adopt_state(found)
        data = state.render(state_of(self.projection, self.now(), self._settings.runtime.loops))
        if found != data:
            disk.replace(self.folder.state, data)

    def _adopt_state(self, found: bytes) -> None:
        """Take over what somebody wrote into state.json since we did."""
        try:
            if state.is_ours(found):
                return
            state.parse(found)  # what cannot be read is told before anything in it changes
            edited = state.parse(self._redaction.json(found.removeprefix(BOM_UTF8)))
        except NewerSchemaError:
            raise
        except DocumentError as unreadable:
            self.set_aside("state", self.folder.state, str(unreadable))
            return
        when = min(self.now(), disk.modified(self.folder.state))
        event = adopt(self._as_of(edited.seq), edited, when)
        if event is not None:
            self.append(event)

    def _as_of(self, seq: int) -> Projection:
        """What was known at an event, as far back as the snapshot; else what is known now."""
        if not self._start.seq <= seq < self.projection.seq:
            return self.projection
        return fold(self._start, [event for event in self._since if event.seq <= seq])


def archived_digest(data: bytes) -> str:
    """Return the part of a document's hash with which its name in the archive ends."""
    return jsontext.fingerprint(data)[:12]


def _has_same_text(archived: bytes | None, data: bytes, prefix: str) -> bool:
    """Return whether a copy holds the text; trimmed text has a title, which holds the time."""
    if archived is None or prefix != "trimmed":
        return archived == data
    return archived.split(b"\n", 2)[2:] == data.split(b"\n", 2)[2:]
