"""The inbox: records that many processes append and one process folds.

A record is one line, `1 event {...}`. Each write starts with a newline, so a torn record never
damages the next one.

There are two inboxes. The one in the workspace counts as written by the agent. The operator's inbox
is in the user's folder; the operator's commands count only there. Hooks can also write to a spool
that all projects share. Only hook reports count there.

Segment names are never reused. A process appends under a shared lock, and then checks that the
segment still exists. The fold removes a segment only under the exclusive lock, so no record ends up
in a removed file.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AnyEvent,
    Event,
    LoopAdded,
    LoopResolved,
    ProposalMade,
    SessionStarted,
    UnknownEvent,
)
from rekindle.documents.hooks import hook_record
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.errors import (
    DocumentError,
    ForgedCommandError,
    StoreError,
    translate_os_errors,
)
from rekindle.formats import json_codec
from rekindle.formats.identifiers import to_one_line
from rekindle.hook import record_writer
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.system.files import durable_files
from rekindle.thresholds.texts import AUTHOR_CHARACTERS, LOOP_ID_CHARACTERS

_VERSION = 1
_EVENT = b"event "
_HOOK = b"hook "
_PREFIX = b"%d %s" % (_VERSION, _EVENT)
_SUFFIX = ".seg"


HookParsers = Mapping[str, Callable[[HookRecord], AnyEvent | None]]
"""Parsers for the hook records of each harness."""


class InboxRecord(msgspec.Struct, frozen=True):
    """A complete line of a segment."""

    segment: str
    end: int
    line: bytes
    is_from_operator: bool = False
    """Whether the record is from the operator's inbox."""
    is_spooled: bool = False
    """Whether the record is from the hooks' spool."""

    @property
    def at(self) -> str:
        return f"{self.segment}:{self.end}"

    def event(
        self, harnesses: HookParsers, redaction: Redaction | None = None
    ) -> AnyEvent | UnknownEvent | None:
        """Return the record's event, redacted, or None for a hook report without effect."""
        event = self._parse_event(harnesses)
        if event is None or isinstance(event, UnknownEvent):
            return event
        if not isinstance(event, events.SUBMITTED_EVENTS):
            raise DocumentError("inbox record", f"only Rekindle itself may write {event.kind}")
        if isinstance(event, events.OPERATOR_COMMANDS) and not self.is_from_operator:
            raise ForgedCommandError(event.kind)
        if self.is_spooled and not isinstance(event, events.HOOK_REPORTS):
            raise DocumentError(
                "hooks' spool",
                f"has a hook record of kind {event.kind}, which hooks may not report",
            )
        return (redaction or Redaction()).event(event)

    def _parse_event(self, harnesses: HookParsers) -> AnyEvent | UnknownEvent | None:
        version, _, rest = self.line.partition(b" ")
        if self.is_spooled and (version, rest[: len(_HOOK)]) != (b"%d" % _VERSION, _HOOK):
            # Check this first. Otherwise, a record with a newer schema would make the writer wait
            # for an upgrade.
            raise DocumentError("hooks' spool", "has a record that no hook wrote")
        if version.isdigit() and rest.startswith((_EVENT, _HOOK)):
            json_codec.refuse_newer_schema(int(version), "inbox record", _VERSION)
            if rest.startswith(_EVENT):
                event = _make_harmless(events.parse_untrusted(rest[len(_EVENT) :]))
                return event if self.is_from_operator else _drop_transcript(event)
            line = hook_record.parse(rest[len(_HOOK) :])
            if line.harness not in harnesses:
                raise DocumentError("hook record", f"names an unknown harness ({line.harness})")
            return harnesses[line.harness](line)
        raise DocumentError("inbox record", "is incomplete, or has an unknown kind")


class InboxSegment(msgspec.Struct, frozen=True):
    path: Path
    is_from_operator: bool = False
    is_spooled: bool = False

    @property
    def name(self) -> str:
        """Name of the segment in the log. No workspace file can have the operator's prefix."""
        return f"operator/{self.path.name}" if self.is_from_operator else self.path.name


def append_records(folder: Path, records: Sequence[Event], *, durable: bool) -> None:
    """Append records in one write. With `durable`, sync them to disk before returning."""
    data = b"".join(b"\n" + _PREFIX + events.render(record) + b"\n" for record in records)
    fd = _open_newest(folder)
    try:
        with translate_os_errors(folder):
            written = os.write(fd, data)
        if written != len(data):
            raise StoreError(
                str(folder),
                "only part of the data was written",
                hint="free some disk space, then retry",
            )
        if durable:
            durable_files.sync_descriptor(fd, folder)
            # The process that created the segment may not have synced its name to disk.
            durable_files.sync_folder(folder)
    finally:
        durable_files.close_descriptor(fd)


def list_segments(folder: Path, prefix: str = "") -> list[InboxSegment]:
    """Return the segments, oldest first. Their names begin with their creation time."""
    with translate_os_errors(folder):
        try:
            names = [entry.name for entry in os.scandir(folder)]
        except FileNotFoundError:
            return []
    segment_names = sorted(
        name for name in names if name.startswith(prefix) and name.endswith(_SUFFIX)
    )
    return [InboxSegment(folder / name) for name in segment_names]


def list_agent_segments(folder: AgentFolder) -> list[InboxSegment]:
    """Return all of an agent's segments: the operator's, the workspace's and the spool's."""
    return (
        list_operator_segments(folder)
        + list_segments(folder.inbox)
        + list_spooled_segments(folder.path, folder.private.marks if folder.private else None)
    )


def list_operator_segments(folder: AgentFolder) -> list[InboxSegment]:
    """Return the segments of the operator's inbox."""
    if folder.private is None:
        return []
    try:
        segments = list_segments(folder.private.inbox)
    except StoreError as error:
        if error.errno not in durable_files.REFUSED_ERRNOS:
            raise
        return []  # a sandbox hides the user's folder
    return [InboxSegment(segment.path, is_from_operator=True) for segment in segments]


def list_spooled_segments(agent: Path, marks: Path | None = None) -> list[InboxSegment]:
    """Return the segments that hooks wrote to the spool because the inbox was not writable.

    `marks` is the spool for hooks in a sandbox.
    """
    prefix = record_writer.spool_prefix(str(agent))
    places = (*record_writer.spool_folders(), *([str(marks)] if marks else []))
    spools = [spool for spool in places if record_writer.is_ours_alone(spool)]
    segments = [segment for spool in spools for segment in list_segments(Path(spool), prefix)]
    return [InboxSegment(segment.path, is_spooled=True) for segment in segments]


def read_records(segment: InboxSegment, start: int = 0) -> Iterator[InboxRecord]:
    """Yield the complete lines starting at `start`. The last line may still be growing."""
    data = _read_from(segment, start)
    position = 0
    while (newline := data.find(b"\n", position)) >= 0:
        line = data[position:newline]
        position = newline + 1
        if line.strip():
            yield _make_record(segment, start + position, line)


def measure_segment(segment: InboxSegment, *, default: int) -> int:
    """Return the length of a segment, or `default` if it does not exist."""
    with translate_os_errors(segment.path):
        try:
            return segment.path.lstat().st_size
        except FileNotFoundError:
            return default


def sync_segment(segment: InboxSegment) -> None:
    """Sync the records that hooks appended without syncing.

    Otherwise, after a power loss, the log's cursor could be past bytes that are gone, and new
    records at those offsets would be skipped.
    """
    with (
        translate_os_errors(segment.path),
        durable_files.hold_plain(segment.path, os.O_RDONLY) as fd,
    ):
        durable_files.sync_descriptor(fd, segment.path)


def retire_segment(segment: InboxSegment, folded: int) -> InboxRecord | None:
    """Remove a segment that is folded up to `folded`, unless it has grown since.

    Return a torn last line, if any, as a record to reject. Under the exclusive lock, no process can
    still be writing it.
    """
    with (
        translate_os_errors(segment.path),
        suppress(FileNotFoundError, BlockingIOError),
        durable_files.hold_plain(segment.path, os.O_RDONLY) as fd,
    ):
        # Do not wait: a process that is suspended during an append must not block the fold.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        rest = os.pread(fd, os.fstat(fd).st_size, folded)
        complete, _, tail = rest.rpartition(b"\n")
        if complete.strip():
            return None
        if tail.strip():
            return _make_record(segment, folded + len(rest), tail)
        durable_files.remove_file(segment.path)
    return None


def _make_record(segment: InboxSegment, end: int, line: bytes) -> InboxRecord:
    return InboxRecord(segment.name, end, line, segment.is_from_operator, segment.is_spooled)


def _make_harmless(event: AnyEvent | UnknownEvent) -> AnyEvent | UnknownEvent:
    """Reduce text to one line without escape sequences, because records are not trusted."""
    if isinstance(event, LoopAdded):
        return msgspec.structs.replace(
            event, id=to_one_line(event.id, LOOP_ID_CHARACTERS), text=to_one_line(event.text)
        )
    if isinstance(event, LoopResolved):
        return msgspec.structs.replace(
            event, id=to_one_line(event.id, LOOP_ID_CHARACTERS), reason=to_one_line(event.reason)
        )
    if isinstance(event, ProposalMade):
        return msgspec.structs.replace(
            event,
            id=to_one_line(event.id, LOOP_ID_CHARACTERS),
            text=to_one_line(event.text),
            choices=tuple(to_one_line(choice) for choice in event.choices),
            by=to_one_line(event.by, AUTHOR_CHARACTERS),
        )
    return event


def _drop_transcript(event: AnyEvent | UnknownEvent) -> AnyEvent | UnknownEvent:
    """Clear the transcript path. Only hooks may set it, once their harness has checked it."""
    if isinstance(event, SessionStarted):
        return msgspec.structs.replace(event, transcript="")
    return event


def _read_from(segment: InboxSegment, start: int) -> bytes:
    with translate_os_errors(segment.path):
        try:
            with durable_files.hold_plain(segment.path, os.O_RDONLY) as fd:
                return os.pread(fd, max(0, os.fstat(fd).st_size - start), start)
        except FileNotFoundError:
            return b""


def _open_newest(folder: Path) -> int:
    """Open the newest segment under a shared lock, creating one if necessary."""
    while True:
        segments = list_segments(folder)
        if segments:
            path, flags = segments[-1].path, os.O_WRONLY | os.O_APPEND
        else:
            # Two processes may each create a segment. That is harmless, because all segments are
            # folded.
            name = f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}"
            path, flags = folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        with translate_os_errors(path):
            try:
                fd = durable_files.open_plain(path, flags)
            except (FileNotFoundError, FileExistsError):
                if not folder.is_dir():
                    raise
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_SH)
                if os.fstat(fd).st_nlink > 0:
                    return fd
            except BaseException:
                os.close(fd)
                raise
        with suppress(OSError):  # the segment was removed before it was locked, so try again
            os.close(fd)
