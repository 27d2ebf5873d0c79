"""The inbox: what hooks and commands hand in, appended by many, folded by one.

A record is one line, `1 event {...}`, written with a single write that also opens with a
newline: a torn tail then spoils itself and never the record after it.

There are two: one in the workspace, which counts as written by the agent, and the operator's, in
the user's own folder. The operator's commands count only if they come from the second. From
the hooks' spool, which has the records of every project, only what a hook reports of its session
counts.

Segments have names that are never used twice. A writer appends under a shared lock and
looks, once it has the lock, whether the segment is still there; the fold removes one only
under the exclusive lock. So no record can land in a file that is already gone.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle import hook
from rekindle.documents import event as events
from rekindle.documents import hookline, jsontext
from rekindle.documents.event import (
    AnyEvent,
    Event,
    LoopAdded,
    LoopResolved,
    SessionStarted,
    Unrecognised,
)
from rekindle.documents.hookline import HookLine
from rekindle.documents.identity import one_line
from rekindle.errors import DocumentError, ForgedCommandError, StoreError, storing
from rekindle.policy.redact.redaction import Redaction
from rekindle.stores.files.layout import AgentFolder
from rekindle.system import disk
from rekindle.thresholds.texts import LOOP_ID_CHARACTERS

_VERSION = 1
_EVENT = b"event "
_HOOK = b"hook "
_PREFIX = b"%d %s" % (_VERSION, _EVENT)
_SUFFIX = ".seg"


Harnesses = Mapping[str, Callable[[HookLine], AnyEvent | None]]
"""Who reads which harness's hooks."""


class Record(msgspec.Struct, frozen=True):
    """A complete line of a segment, and where it ends."""

    segment: str
    end: int
    line: bytes
    is_operators: bool = False
    """It comes from the operator's inbox."""
    is_spooled: bool = False
    """It comes from the hooks' spool."""

    @property
    def at(self) -> str:
        return f"{self.segment}:{self.end}"

    def event(
        self, harnesses: Harnesses, redaction: Redaction | None = None
    ) -> AnyEvent | Unrecognised | None:
        """What it says, without secrets; None for a hook that reports nothing that we keep."""
        event = self._event(harnesses)
        if event is None or isinstance(event, Unrecognised):
            return event
        if isinstance(event, events.OPERATOR_COMMANDS) and not self.is_operators:
            raise ForgedCommandError(event.kind)
        if self.is_spooled and not isinstance(event, events.HOOK_REPORTS):
            raise DocumentError("hooks' spool", f"has a hook's record of {event.kind}")
        return (redaction or Redaction()).event(event)

    def _event(self, harnesses: Harnesses) -> AnyEvent | Unrecognised | None:
        version, _, rest = self.line.partition(b" ")
        if self.is_spooled and (version, rest[: len(_HOOK)]) != (b"%d" % _VERSION, _HOOK):
            # First: a record of a later schema would make the writer wait for a newer Rekindle.
            raise DocumentError("hooks' spool", "has a record that is not a hook's")
        if version.isdigit() and rest.startswith((_EVENT, _HOOK)):
            jsontext.refuse_newer(int(version), "inbox record", _VERSION)
            if rest.startswith(_EVENT):
                event = _harmless(events.from_outside(rest[len(_EVENT) :]))
                return event if self.is_operators else _without_transcript(event)
            line = hookline.parse(rest[len(_HOOK) :])
            if line.harness not in harnesses:
                raise DocumentError("hook record", f"is of an unknown harness ({line.harness})")
            return harnesses[line.harness](line)
        raise DocumentError("inbox record", "is torn, or of a kind that is not known")


class Segment(msgspec.Struct, frozen=True):
    path: Path
    is_operators: bool = False
    is_spooled: bool = False

    @property
    def name(self) -> str:
        """The name that the log knows it by; no file in the workspace can have an operator's."""
        return f"operator/{self.path.name}" if self.is_operators else self.path.name


def append(folder: Path, records: Sequence[Event], *, durable: bool) -> None:
    """Append records in one write; `durable` returns only once the disk has confirmed it."""
    data = b"".join(b"\n" + _PREFIX + events.render(record) + b"\n" for record in records)
    fd = _open_newest(folder)
    try:
        with storing(folder):
            written = os.write(fd, data)
        if written != len(data):
            raise StoreError(
                str(folder), "only a part was written", hint="free some space, then repeat"
            )
        if durable:
            disk.sync_descriptor(fd, folder)
            # Whoever made the segment may not have made its name durable.
            disk.sync_folder(folder)
    finally:
        disk.close(fd)


def segments(folder: Path, prefix: str = "") -> list[Segment]:
    """Oldest first; the names begin with the time at which they were made."""
    with storing(folder):
        try:
            names = [entry.name for entry in os.scandir(folder)]
        except FileNotFoundError:
            return []
    found = sorted(name for name in names if name.startswith(prefix) and name.endswith(_SUFFIX))
    return [Segment(folder / name) for name in found]


def of_agent(folder: AgentFolder) -> list[Segment]:
    """Return every segment of an agent: the operator's, the workspace's, and the hooks' spool."""
    return operators(folder) + segments(folder.inbox) + spooled(folder.path)


def operators(folder: AgentFolder) -> list[Segment]:
    """Return the segments of the operator's inbox."""
    if folder.private is None:
        return []
    try:
        found = segments(folder.private.inbox)
    except StoreError as error:
        if error.errno not in disk.REFUSED:
            raise
        return []  # a sandbox hides the user's folder from this process
    return [Segment(segment.path, is_operators=True) for segment in found]


def spooled(agent: Path) -> list[Segment]:
    """What hooks kept elsewhere while the inbox could not be written."""
    prefix = hook.spool_prefix(str(agent))
    places = [place for place in hook.spool_folders() if hook.is_ours_alone(place)]
    found = [segment for place in places for segment in segments(Path(place), prefix)]
    return [Segment(segment.path, is_spooled=True) for segment in found]


def records(segment: Segment, start: int = 0) -> Iterator[Record]:
    """The complete lines from `start` on. A tail without its newline may still be growing."""
    data = _read_from(segment, start)
    position = 0
    while (newline := data.find(b"\n", position)) >= 0:
        line = data[position:newline]
        position = newline + 1
        if line.strip():
            yield _record(segment, start + position, line)


def size(segment: Segment, *, gone: int) -> int:
    """How long a segment is; `gone` where it is not there any more."""
    with storing(segment.path):
        try:
            return segment.path.lstat().st_size
        except FileNotFoundError:
            return gone


def sync(segment: Segment) -> None:
    """Confirm by the disk what heartbeats did not wait for.

    Without it a power loss could leave the log's cursor but not the segment's bytes, and the next
    record to land at those offsets would pass for folded.
    """
    with storing(segment.path):
        fd = disk.open_plain(segment.path, os.O_RDONLY)
        try:
            disk.sync_descriptor(fd, segment.path)
        finally:
            os.close(fd)


def retire(segment: Segment, folded: int) -> Record | None:
    """Remove a segment that is folded up to `folded`, unless somebody appended meanwhile.

    Returns the torn tail, if there is one to give up: with the exclusive lock nobody is still
    writing it.
    """
    with storing(segment.path):
        try:
            fd = disk.open_plain(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            try:
                # Not waiting: a writer that was stopped in mid-append must not stop the fold.
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
            rest = os.pread(fd, os.fstat(fd).st_size, folded)
            complete, _, tail = rest.rpartition(b"\n")
            if complete.strip():
                return None
            if tail.strip():
                return _record(segment, folded + len(rest), tail)
            disk.remove(segment.path)
        finally:
            os.close(fd)
    return None


def _record(segment: Segment, end: int, line: bytes) -> Record:
    return Record(segment.name, end, line, segment.is_operators, segment.is_spooled)


def _harmless(event: AnyEvent | Unrecognised) -> AnyEvent | Unrecognised:
    """Records come from anybody: what people will read stays on one line, without escapes."""
    if isinstance(event, LoopAdded):
        return msgspec.structs.replace(
            event, id=one_line(event.id, LOOP_ID_CHARACTERS), text=one_line(event.text)
        )
    if isinstance(event, LoopResolved):
        return msgspec.structs.replace(
            event, id=one_line(event.id, LOOP_ID_CHARACTERS), reason=one_line(event.reason)
        )
    return event


def _without_transcript(event: AnyEvent | Unrecognised) -> AnyEvent | Unrecognised:
    """Only a hook's record names a transcript, which its harness recognises by the path."""
    if isinstance(event, SessionStarted):
        return msgspec.structs.replace(event, transcript="")
    return event


def _read_from(segment: Segment, start: int) -> bytes:
    with storing(segment.path):
        try:
            fd = disk.open_plain(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, max(0, os.fstat(fd).st_size - start), start)
        finally:
            os.close(fd)


def _open_newest(folder: Path) -> int:
    """A descriptor, under a shared lock, of a segment that will still be folded."""
    while True:
        found = segments(folder)
        if found:
            path, flags = found[-1].path, os.O_WRONLY | os.O_APPEND
        else:
            # Two writers may both find none and make one each: every segment is folded.
            name = f"{time.time_ns():020d}-{secrets.token_hex(4)}{_SUFFIX}"
            path, flags = folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL
        with storing(path):
            try:
                fd = disk.open_plain(path, flags)
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
        with suppress(OSError):  # it was retired between open and lock: take the next
            os.close(fd)
