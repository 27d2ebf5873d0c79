"""The log (ops.jsonl): every event in order, one per line, never rewritten.

Only the agent's writer appends to it. Readers skip and report lines that they cannot read.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents import events
from rekindle.documents.events import (
    AgentReceived,
    AnyEvent,
    UnknownEvent,
)
from rekindle.errors import (
    DocumentError,
    NewerSchemaError,
    translate_os_errors,
)
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.projection.projection import LostEvents
from rekindle.stores.log import seal
from rekindle.stores.log.seal import ChainPosition
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import BATCH_EVENTS

_BLOCK = 256 * 1024


class BadLine(msgspec.Struct, frozen=True):
    offset: int
    reason: str
    is_damaged: bool = False
    """Whether the line was a valid event before it was damaged; False for torn and fenced lines."""


class LogEntry(msgspec.Struct, frozen=True):
    """A line of the log, raw and parsed."""

    line: bytes
    event: AnyEvent | UnknownEvent
    end: int
    """Byte offset of the next line; 0 if not requested."""


class LogTail(msgspec.Struct, frozen=True):
    """The part of the log after a given offset."""

    events: list[AnyEvent | UnknownEvent]
    bad: list[BadLine]
    end: int
    """Byte offset after the last complete line."""
    gen: int
    losses: list[LostEvents] = []
    """Places where events are missing: damaged lines and gaps in the numbers."""
    chain: str = ""
    """The seal's hash chain up to `end`; empty if not requested."""


def read_log(path: Path, start: int = 0, gen: int = 0) -> LogTail:
    """Return all events starting at `start`. For a long log, use `read_batches`."""
    batches = list(read_batches(path, start, gen))
    return LogTail(
        [event for batch in batches for event in batch.events],
        [line for batch in batches for line in batch.bad],
        batches[-1].end,
        batches[-1].gen,
        [loss for batch in batches for loss in batch.losses],
    )


def read_batches(  # noqa: C901, PLR0917 - one branch per kind of line
    path: Path,
    start: int = 0,
    gen: int = 0,
    seq: int = 0,
    chain: str | None = None,
    until: int | None = None,
) -> Iterator[LogTail]:
    """Yield the events starting at `start`, in one or more batches.

    `seq` is the number of the event before `start`, and `chain` the hash chain up to `start`.
    Reading stops at `until`.

    Events from an older generation are skipped, because lines from a host that has lost the agent
    do not count.
    """
    batch: list[AnyEvent | UnknownEvent] = []
    bad: list[BadLine] = []
    losses: list[LostEvents] = []
    end = start
    for offset, line in read_lines(path, start):
        if until is not None and offset >= until:
            break
        end = offset + len(line)
        if chain is not None:
            chain = seal.extend_chain(chain, (line,))
        if not line.strip():
            continue
        try:
            event = events.parse(line)
        except NewerSchemaError:
            raise
        except DocumentError as error:
            is_damaged = not line.endswith(durable_files.TORN_MARK)
            bad.append(BadLine(offset, error.reason, is_damaged))
            if is_damaged:
                losses.append(LostEvents(seq))
            continue
        if event.gen < gen:
            bad.append(BadLine(offset, f"generation {event.gen} was replaced by {gen}"))
            continue
        if isinstance(event, AgentReceived):
            losses.clear()  # this event includes the state of all earlier ones
        elif event.seq > seq + 1:
            losses.append(LostEvents(seq, event.seq))
        gen, seq = event.gen, max(seq, event.seq)
        batch.append(event)
        if len(batch) == BATCH_EVENTS:
            yield LogTail(batch, bad, end, gen, losses, chain or "")
            batch, bad, losses = [], [], []
    yield LogTail(batch, bad, end, gen, losses, chain or "")


def list_positions(path: Path) -> Iterator[ChainPosition]:
    """Yield the end offset of each complete line, with the hash chain up to it."""
    chain = ""
    for offset, line in read_lines(path, 0):
        chain = seal.extend_chain(chain, (line,))
        yield ChainPosition(offset + len(line), chain)


def append_lines(path: Path, lines: Sequence[bytes]) -> tuple[int, int]:
    """Append lines durably, and return their start and end offsets."""
    data = b"".join(line + b"\n" for line in lines)
    start = durable_files.append_durably(path, data)
    return start, start + len(data)


def read_entries(path: Path, start: int) -> Iterator[LogEntry]:
    """Yield the readable lines starting at `start`."""
    for offset, line in read_lines(path, start):
        with suppress(DocumentError):
            yield LogEntry(line.rstrip(b"\n"), events.parse(line), offset + len(line))


def read_backwards(path: Path, holding: Sequence[bytes] = ()) -> Iterator[LogEntry]:
    """Yield readable lines, newest first, reading no more of the file than necessary.

    With `holding`, lines that contain none of these strings are skipped without parsing.
    """
    for line in _read_lines_backwards(path):
        if holding and not any(part in line for part in holding):
            continue
        with suppress(DocumentError):
            yield LogEntry(line, events.parse(line), 0)


def measure_log(path: Path) -> int:
    """Return the size of the log in bytes, or 0 if it does not exist."""
    with translate_os_errors(path):
        try:
            return path.lstat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0


def read_pieces(path: Path, start: int) -> Iterator[bytes]:
    """Yield the raw bytes starting at `start`, in blocks."""
    with (
        translate_os_errors(path),
        os.fdopen(durable_files.open_plain(path, os.O_RDONLY), "rb") as file,
    ):
        file.seek(start)
        while piece := file.read(_BLOCK):
            yield piece


def compute_anchor(path: Path, offset: int) -> str:
    """Return a fingerprint of the log just before `offset`, to match a snapshot to its log."""
    if offset == 0:
        return ""
    with translate_os_errors(path):
        try:
            with durable_files.hold_plain(path, os.O_RDONLY) as fd:
                width = min(offset, 512)
                return hash_bytes(os.pread(fd, width, offset - width))[:16]
        except FileNotFoundError:
            return "missing"


def read_lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """Yield each complete line with its offset."""
    with translate_os_errors(path):
        try:
            fd = durable_files.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return
    with translate_os_errors(path), os.fdopen(fd, "rb", buffering=_BLOCK) as file:
        file.seek(start)
        offset = start
        for line in file:
            # The writer is still writing this line. Do not read the rest of it as another line.
            if not line.endswith(b"\n"):
                return
            yield offset, line
            offset += len(line)


def _read_lines_backwards(path: Path) -> Iterator[bytes]:
    with translate_os_errors(path):
        try:
            fd = durable_files.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return
    with translate_os_errors(path), os.fdopen(fd, "rb") as file:
        position = file.seek(0, os.SEEK_END)
        rest = None  # skip a last line without a newline
        while position > 0:
            width = min(_BLOCK, position)
            position -= width
            file.seek(position)
            lines = (file.read(width) + (rest or b"")).split(b"\n")
            complete = lines[1:] if rest is not None else lines[1:-1]
            rest = lines[0]
            yield from (line for line in reversed(complete) if line.strip())
        if rest and rest.strip():
            yield rest
