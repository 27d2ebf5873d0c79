"""Transcripts in normal form, kept after the CLI has deleted its own.

Each is a file of compressed lines, one a turn, and beside it a small one that says how far its
source was read and how much of the file counts. New turns are written behind what counts, then
the small file is replaced: whoever is killed in between has added nothing. A source that is not the
one that was read before begins another part; what is damaged is never added to.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rekindle.documents.identity import STABLE_ID
from rekindle.documents.transcript import Cursor, Turn
from rekindle.errors import BusyError, StoreError, UsageError, storing
from rekindle.policy.settings import LOCK_WAIT_SECONDS
from rekindle.system import disk
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_GZIP = 31
"""The window of a gzip file, as zlib counts it."""
_PIECE_BYTES = 256 * 1024
_UNPACKED_BYTES = 1024 * 1024
"""How much is unpacked at once: a thousand times the packed bytes may come out."""
_LINES, _NOTE = ".jsonl.gz", ".json"
_NAME = re.compile(r"([^~+]+)(?:~([^~+]+))?(?:\+([1-9][0-9]{0,5}))?\Z")
"""~ and + stand in no name of a session or sub-agent."""
_HINT = "move it away: it is not needed for anything else, and what can be read is kept anew"


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a transcript is kept."""

    v: int = 1
    session: str
    thread: str = ""
    """The sub-agent whose it is; empty: the session's own."""
    part: int = 0
    """Which of the files that were its source, one after the other."""
    harness: str = ""
    """Empty: nobody knows, for the note of it is lost."""
    source: str = ""
    stamp: str = ""
    """Of its source, when all of it was read."""
    began: str = ""
    """When the first thing was that it tells of."""
    seen: int = 0
    """How much of its source was read."""
    mark: str = ""
    """What the bytes before that are known by."""
    cursor: Cursor = Cursor()
    size: int = 0
    """The bytes of the archive that count."""
    rest: tuple[Turn, ...] = ()
    """The turns to which something may still be added, as they stand."""

    @property
    def name(self) -> str:
        thread = f"~{self.thread}" if self.thread else ""
        part = f"+{self.part}" if self.part else ""
        return f"{self.session}{thread}{part}"


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
        found = (self._part(*name) for name in self._written())
        known = [kept for kept in found if kept is not None]
        return sorted(known, key=lambda kept: (kept.began, kept.session, kept.thread, kept.part))

    def written_since(self, then: float) -> list[Kept]:
        """What sessions have told, the last written last; only what was written to since then."""
        order = sorted((at, name) for name, at in self._written().items() if at >= then)
        found = (self._part(*name) for _, name in order if not name[1])
        return [kept for kept in found if kept is not None]

    def older_than(self, then: float) -> int:
        """How many sessions nobody has told anything of since then."""
        return sum(at < then and not name[1] for name, at in self._written().items())

    def _written(self) -> dict[tuple[str, str, int], float]:
        """Session, thread and part of all that there is, and when it was last written."""
        written: dict[tuple[str, str, int], float] = {}
        for ending in (_LINES, _NOTE):
            for path in self._folder.glob(f"*{ending}"):
                found = _NAME.match(path.name.removesuffix(ending))
                # Whoever is killed may leave a file of another name behind.
                if not found or not all(map(STABLE_ID.match, filter(None, found.groups()[:2]))):
                    continue
                name = (found[1], found[2] or "", int(found[3] or 0))
                with suppress(FileNotFoundError):
                    written[name] = max(written.get(name, 0.0), path.stat().st_mtime)
        return written

    def find(self, session: str, thread: str = "") -> Kept | None:
        """The last part of it."""
        found = self.parts(session, thread)
        return found[-1] if found else None

    def parts(self, session: str, thread: str = "") -> list[Kept]:
        """All that is kept of it, in the order of its sources."""
        found: list[Kept] = []
        while (kept := self._part(session, thread, len(found))) is not None:
            found.append(kept)
        return found

    def add(self, kept: Kept, turns: Iterable[Turn], then: Callable[[Kept], Kept]) -> Kept:
        """Add turns; `then` says, after the last of them, what else is known by then."""
        if not disk.exists(self._path(kept, _NOTE)):
            self.note(kept)  # turns without a note are turns whose note was lost
        size = disk.write_from(self._path(kept, _LINES), kept.size, _compressed(turns))
        kept = then(msgspec.structs.replace(kept, size=size))
        self.note(kept)
        return kept

    def note(self, kept: Kept) -> None:
        disk.replace(self._path(kept, _NOTE), msgspec.json.encode(kept))

    def is_whole(self, kept: Kept) -> bool:
        """Whether all that counts is there, at least by its size."""
        if not kept.size:
            return True
        path = self._path(kept, _LINES)
        with storing(path):
            return disk.exists(path) and path.stat().st_size >= kept.size

    def turns(self, kept: Kept, start: int = 0) -> Iterator[Turn]:
        """Its turns, or those behind a place that it once ended at.

        Raises:
            StoreError: It is damaged; what stands before the damage was told by then.
        """
        path = self._path(kept, _LINES)
        decode = msgspec.json.Decoder(Turn).decode
        try:
            for line, _ in _lines(path, kept.size, start) if kept.size > start else ():
                yield decode(line)
        except (zlib.error, msgspec.MsgspecError, EOFError) as error:
            raise StoreError(str(path), f"is damaged ({error})", hint=_HINT) from error
        yield from kept.rest

    def _part(self, session: str, thread: str, part: int) -> Kept | None:
        named = Kept(session=session, thread=thread, part=part)
        data = disk.read(self._path(named, _NOTE))
        with suppress(msgspec.MsgspecError):
            if data:
                return msgspec.json.decode(data, type=Kept)
        return self._rebuilt(named)

    def _rebuilt(self, named: Kept) -> Kept | None:
        """What the file itself tells of a transcript whose note is lost."""
        path = self._path(named, _LINES)
        if not disk.exists(path):
            return None
        began, size, last = "", 0, 0
        decode = msgspec.json.Decoder(Turn).decode
        with suppress(zlib.error, msgspec.MsgspecError, EOFError):
            for line, end in _lines(path, path.stat().st_size):
                turn = decode(line)
                began, size, last = began or turn.at, end, turn.number
        return msgspec.structs.replace(
            named, began=began, size=size, cursor=Cursor(number=last + 1)
        )

    def _path(self, kept: Kept, ending: str) -> Path:
        for name in (kept.session, kept.thread):
            if name and not STABLE_ID.match(name):
                raise UsageError(f"{name[:QUOTED_CHARACTERS]!r} cannot be a session's name")
        return self._folder / f"{kept.name}{ending}"


def _compressed(turns: Iterable[Turn]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    empty = True
    for turn in turns:
        empty = False
        if piece := packer.compress(msgspec.json.encode(turn) + b"\n"):
            yield piece
    if not empty:
        yield packer.flush()


def _lines(path: Path, size: int, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """The lines of the gzip members in the first bytes of a file, each with how far they go.

    `start` is where a member begins.

    Raises:
        EOFError: The file is shorter.
    """
    with storing(path), path.open("rb") as file:
        file.seek(start)
        rest, packed, unpacker, left = b"", b"", zlib.decompressobj(_GZIP), size - start
        whole = start
        while packed or left:
            if not packed:
                packed = file.read(min(left, _PIECE_BYTES))
                if not packed:
                    raise EOFError("it is shorter than what was kept")
                left -= len(packed)
            *lines, rest = (rest + unpacker.decompress(packed, _UNPACKED_BYTES)).split(b"\n")
            packed = unpacker.unconsumed_tail or unpacker.unused_data
            if unpacker.eof:
                unpacker = zlib.decompressobj(_GZIP)
                whole = size - left - len(packed)
            yield from ((line, whole) for line in lines)
        if rest:
            raise EOFError("its last line is cut")
