"""The log, ops.jsonl: every fact in order, one line each, never rewritten.

Only the agent's writer appends. Readers skip what they cannot read, and say so.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from rekindle.documents import event as events
from rekindle.documents.event import AgentReceived, AnyEvent, Unrecognised
from rekindle.documents.jsontext import fingerprint
from rekindle.errors import DocumentError, NewerSchemaError, storing
from rekindle.policy.fold import Loss
from rekindle.stores.files import seal
from rekindle.stores.files.seal import Place
from rekindle.system import disk
from rekindle.thresholds.storage import BATCH_EVENTS

_BLOCK = 256 * 1024


class BadLine(msgspec.Struct, frozen=True):
    offset: int
    reason: str
    is_damaged: bool = False
    """An event stood there; a torn or fenced line never was one."""


class Entry(msgspec.Struct, frozen=True):
    """A line of the log as it stands, and what it says."""

    line: bytes
    event: AnyEvent | Unrecognised
    end: int
    """Where the next line begins; 0 where that was not asked for."""


class Tail(msgspec.Struct, frozen=True):
    """What stands in the log from some offset on."""

    events: list[AnyEvent | Unrecognised]
    bad: list[BadLine]
    end: int
    """Behind the last complete line."""
    gen: int
    losses: list[Loss] = []
    """Where events are missing: damaged lines, and gaps in their numbers."""
    chain: str = ""
    """The chain of hashes up to `end`, as the seal has it; empty if it was not asked for."""


def read(path: Path, start: int = 0, gen: int = 0) -> Tail:
    """Return all events from `start` on; for a log of any length, see `read_batches`."""
    batches = list(read_batches(path, start, gen))
    return Tail(
        [event for batch in batches for event in batch.events],
        [line for batch in batches for line in batch.bad],
        batches[-1].end,
        batches[-1].gen,
        [loss for batch in batches for loss in batch.losses],
    )


def read_batches(  # noqa: C901, PLR0917 - one for each thing that is known at `start`
    path: Path,
    start: int = 0,
    gen: int = 0,
    seq: int = 0,
    chain: str | None = None,
    until: int | None = None,
) -> Iterator[Tail]:
    """Yield the events from `start` on, which follow the event `seq`, in one batch or more.

    `chain` is the chain of hashes up to `start`, to be continued; lines from `until` on are left.

    An event of an older generation than it follows is fenced off. A host that lost the agent may
    still have appended: such a line is in the file, but it never happened.
    """
    found: list[AnyEvent | Unrecognised] = []
    bad: list[BadLine] = []
    losses: list[Loss] = []
    end = start
    for offset, line in lines(path, start):
        if until is not None and offset >= until:
            break
        end = offset + len(line)
        if chain is not None:
            chain = seal.extend(chain, (line,))
        if not line.strip():
            continue
        try:
            event = events.parse(line)
        except NewerSchemaError:
            raise
        except DocumentError as error:
            is_damaged = not line.endswith(disk.TORN)
            bad.append(BadLine(offset, error.reason, is_damaged))
            if is_damaged:
                losses.append(Loss(seq))
            continue
        if event.gen < gen:
            bad.append(BadLine(offset, f"generation {event.gen} was taken over by {gen}"))
            continue
        if isinstance(event, AgentReceived):
            losses.clear()  # it holds everything that came before it
        elif event.seq > seq + 1:
            losses.append(Loss(seq, event.seq))
        gen, seq = event.gen, max(seq, event.seq)
        found.append(event)
        if len(found) == BATCH_EVENTS:
            yield Tail(found, bad, end, gen, losses, chain or "")
            found, bad, losses = [], [], []
    yield Tail(found, bad, end, gen, losses, chain or "")


def places(path: Path) -> Iterator[Place]:
    """Yield the end of each complete line, and the chain up to there."""
    chain = ""
    for offset, line in lines(path, 0):
        chain = seal.extend(chain, (line,))
        yield Place(offset + len(line), chain)


def place(path: Path, until: int | None = None) -> Place:
    """Return where the complete lines end, at most those before `until`, and their chain."""
    last = Place()
    for place in places(path):
        if until is not None and last.end >= until:
            break
        last = place
    return last


def append(path: Path, lines: Sequence[bytes]) -> tuple[int, int]:
    """Append durably; returns where the new lines begin and end."""
    data = b"".join(line + b"\n" for line in lines)
    start = disk.append(path, data)
    return start, start + len(data)


def entries(path: Path, start: int) -> Iterator[Entry]:
    """The readable lines from `start` on, as they stand."""
    for offset, line in lines(path, start):
        with suppress(DocumentError):
            yield Entry(line.rstrip(b"\n"), events.parse(line), offset + len(line))


def backwards(path: Path, holding: Sequence[bytes] = ()) -> Iterator[Entry]:
    """Readable lines from the newest back, reading only as much as is asked for.

    `holding`: only lines with one of these in them; the others are not even parsed.
    """
    for line in _lines_backwards(path):
        if holding and not any(part in line for part in holding):
            continue
        with suppress(DocumentError):
            yield Entry(line, events.parse(line), 0)


def size(path: Path) -> int:
    """Return the log's size in bytes; 0 if there is none."""
    with storing(path):
        try:
            return path.lstat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return 0


def pieces(path: Path, start: int) -> Iterator[bytes]:
    """Yield the bytes from `start` on, whatever they are."""
    with storing(path), os.fdopen(disk.open_plain(path, os.O_RDONLY), "rb") as file:
        file.seek(start)
        while piece := file.read(_BLOCK):
            yield piece


def anchor(path: Path, offset: int) -> str:
    """A fingerprint of the log just before `offset`: tells whether a snapshot still fits it."""
    if offset == 0:
        return ""
    with storing(path):
        try:
            fd = disk.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return "missing"
        try:
            width = min(offset, 512)
            return fingerprint(os.pread(fd, width, offset - width))[:16]
        finally:
            os.close(fd)


def lines(path: Path, start: int) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its newline); a last line without one is not complete yet."""
    with storing(path):
        try:
            fd = disk.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return
    with storing(path), os.fdopen(fd, "rb", buffering=_BLOCK) as file:
        file.seek(start)
        offset = start
        for line in file:
            # The writer may be in the middle of this one: its second half is not another line.
            if not line.endswith(b"\n"):
                return
            yield offset, line
            offset += len(line)


def _lines_backwards(path: Path) -> Iterator[bytes]:
    with storing(path):
        try:
            fd = disk.open_plain(path, os.O_RDONLY)
        except FileNotFoundError:
            return
    with storing(path), os.fdopen(fd, "rb") as file:
        position = file.seek(0, os.SEEK_END)
        rest = None  # what stands behind the last newline is not complete
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
