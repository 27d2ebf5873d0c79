"""Commit documents (relay, checkpoint, brief), each with a copy in the archive."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from rekindle.documents import (
    brief,
    checkpoint,
    events,
)
from rekindle.documents import relay as relays
from rekindle.documents.events import (
    AnyEvent,
    DocumentCommitted,
)
from rekindle.documents.relay import Relay
from rekindle.errors import CheckFailedError, DocumentError
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.projection.projection import CommittedDocument
from rekindle.policy.projection.proposals import MERGING_AUTHORS
from rekindle.policy.relay import (
    relay_check,
    relay_notes,
    trim,
)
from rekindle.policy.settings.runtime_settings import HEADLINE_CHARACTERS
from rekindle.policy.text.token_estimate import estimate_tokens
from rekindle.stores.files.log_writer import LogWriter
from rekindle.stores.folders import rejected_files
from rekindle.system.files import durable_files

C = TypeVar("C", bound=DocumentCommitted)
AnyCommitted = events.RelayCommitted | events.CheckpointCommitted | events.BriefCommitted


class DocumentWriter(LogWriter):
    """A writer that also commits documents. The commit point is the event in the log."""

    def commit_relay(self, relay: Relay, *, by: str, at: str = "") -> CommittedDocument:
        """Commit a relay, trimmed to its size limit. The trimmed text is archived first."""
        written = relays.render(relay)
        relay = relays.parse(self._redaction.text(written).encode())
        if by in MERGING_AUTHORS:
            # The proposals in the log are redacted already.
            relay = relay_notes.merge_notes(relay, self.projection.new_notes, self._read_relay())
        cap = self._settings.runtime.relay.max_relay_tokens
        checked = relay_check.classify_relay(relay, cap)
        if not checked.usable:
            raise CheckFailedError(
                f"this relay cannot be used: {checked.findings[0].message}",
                hint="add a `## Next Action` with one directive, then set the relay again",
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
        """Commit a checkpoint. If `session` is given, only that session may use it."""
        written = checkpoint.render(document)
        data = self._redaction.text(written).encode()
        headline = checkpoint.parse(data).content(checkpoint.CheckpointSection.RESUME_INSTRUCTIONS)
        event = self._make_commit_event(events.CheckpointCommitted, data, by, headline)
        event = msgspec.structs.replace(event, session=session)
        return self._commit_document(data, event, written)

    def commit_brief(
        self, document: brief.Brief, *, by: str, also: Sequence[AnyEvent] = ()
    ) -> None:
        """Commit a brief together with the events in `also`."""
        written = brief.render(document)
        data = self._redaction.text(written).encode()
        headline = brief.parse(data).content(brief.BriefLabel.NEXT) or ""
        event = self._make_commit_event(events.BriefCommitted, data, by, headline)
        self._commit_document(data, event, written, also)

    def set_aside(self, document: str, path: Path, reason: str, *, is_plain: bool = True) -> None:
        """Rename a file to an unused `.rejected` name, and record this in the log.

        The file is first redacted in place. If the process is killed partway, the next writer
        starts over. Files that are too large, and anything that is not a regular file, are renamed
        without redaction.
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

    def _read_relay(self) -> Relay | None:
        """Return the committed relay, or None if there is none or its copy is damaged."""
        committed = self.projection.documents.get("relay")
        data = durable_files.read_bytes(self.folder.path / committed.path) if committed else None
        try:
            return relays.parse(data) if data is not None else None
        except DocumentError:
            return None

    def _archive_bytes(self, prefix: str, data: bytes, last: str = "") -> str:
        """Archive data and return the copy's path. If `last` has the same text, return `last`."""
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
        """Append the event, then replace the file that readers use.

        If the file was edited in the meantime, the edit is set aside instead of overwritten, unless
        it equals the text being committed (`written`).
        """
        document = event.document
        path = self.folder.document(document)
        self.append(*also, event)
        current = durable_files.read_bytes(path)
        if current is not None:
            is_known = json_codec.hash_bytes(current) in {event.previous, event.sha256}
            if not is_known and not self._is_taken_over(current, written):
                self.set_aside(document, path, "it was edited while a new version was committed")
        # Leave the file alone if it is already correct, because other programs may have it open.
        if current == data:
            durable_files.make_private(path)
        else:
            durable_files.replace_file(path, data)
        return self.projection.documents[document]

    def _is_taken_over(self, current: bytes, written: str) -> bool:
        text = written.encode()
        return current == text or self._redaction.data(current) == self._redaction.data(text)


def find_archived_digest(data: bytes) -> str:
    """Return the part of a document's hash that the name of its archived copy contains."""
    return json_codec.hash_bytes(data)[:12]


def _holds_same_text(archived: bytes | None, data: bytes, prefix: str) -> bool:
    """Return whether the copy has the same text, apart from a timestamp in the title."""
    if archived is None or prefix != "trimmed":
        return archived == data
    return archived.split(b"\n", 2)[2:] == data.split(b"\n", 2)[2:]
