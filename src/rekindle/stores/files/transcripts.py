"""Transcripts in normal form, kept after the CLI has deleted its own.

Each is a file of compressed lines, one a turn, and beside it a small one that says how far its
source was read and how much of the file counts. New turns are written behind what counts, then
the small file is replaced: whoever is killed in between has added nothing.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from rekindle.documents.identity import STABLE_ID
from rekindle.documents.transcript import Cursor, Turn
from rekindle.errors import BusyError, UsageError, storing
from rekindle.policy.settings import LOCK_WAIT_SECONDS
from rekindle.system import disk

_GZIP = 31
"""The window of a gzip file, as zlib counts it."""
_PIECE_BYTES = 256 * 1024


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a transcript is kept."""

    v: int = 1
    session: str
    thread: str = ""
    """The sub-agent whose it is; empty: the session's own."""
    harness: str = ""
    source: str
    began: str = ""
    """When the first thing was that it tells of, as the CLI writes it."""
    seen: int = 0
    """How much of its source was read."""
    cursor: Cursor = Cursor()
    size: int = 0
    """The bytes of the archive that count."""
    rest: tuple[Turn, ...] = ()
    """The turns to which something may still be added, as they stand."""


class TranscriptArchive:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def adding(self, agent: str) -> Iterator[None]:
        """Be the only one who adds to it."""
        with disk.locked(self._folder / ".lock", LOCK_WAIT_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, LOCK_WAIT_SECONDS)
            yield

    def all(self) -> list[Kept]:
        """What there is, in the order in which it was begun."""
        found = (_read(path) for path in self._folder.glob("*.json"))
        known = [kept for kept in found if kept is not None]
        return sorted(known, key=lambda kept: (kept.began, kept.session, kept.thread))

    def find(self, session: str, thread: str = "") -> Kept | None:
        return _read(self._path(session, thread, ".json"))

    def add(self, kept: Kept, turns: Iterable[Turn], then: Callable[[Kept], Kept]) -> None:
        """Add turns; `then` says, after the last of them, what else is known by then."""
        path = self._path(kept.session, kept.thread, ".jsonl.gz")
        size = disk.write_from(path, kept.size, _compressed(turns))
        kept = then(msgspec.structs.replace(kept, size=size))
        place = self._path(kept.session, kept.thread, ".json")
        disk.replace(place, msgspec.json.encode(kept))

    def turns(self, kept: Kept) -> Iterator[Turn]:
        path = self._path(kept.session, kept.thread, ".jsonl.gz")
        decode = msgspec.json.Decoder(Turn).decode
        yield from map(decode, _lines(path, kept.size))
        yield from kept.rest

    def _path(self, session: str, thread: str, ending: str) -> Path:
        for name in (session, thread):
            if name and not STABLE_ID.match(name):
                raise UsageError(f"{name[:80]!r} cannot be a session's name")
        return self._folder / f"{session}{'.' if thread else ''}{thread}{ending}"


def _read(path: Path) -> Kept | None:
    data = disk.read(path)
    try:
        return msgspec.json.decode(data, type=Kept) if data else None
    except msgspec.MsgspecError:
        return None  # it is made anew, from its source


def _compressed(turns: Iterable[Turn]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    empty = True
    for turn in turns:
        empty = False
        if piece := packer.compress(msgspec.json.encode(turn) + b"\n"):
            yield piece
    if not empty:
        yield packer.flush()


def _lines(path: Path, size: int) -> Iterator[bytes]:
    """The lines of the gzip members in the first bytes of a file."""
    rest = b""
    with storing(path), path.open("rb") as file:
        packed, unpacker = file.read(min(size, _PIECE_BYTES)), zlib.decompressobj(_GZIP)
        left = size - len(packed)
        while packed:
            *lines, rest = (rest + unpacker.decompress(packed)).split(b"\n")
            yield from lines
            packed = unpacker.unused_data
            if unpacker.eof:
                unpacker = zlib.decompressobj(_GZIP)
            if not packed:
                packed = file.read(min(left, _PIECE_BYTES))
                left -= len(packed)
