"""The transcript archive, which keeps transcripts after the CLI deletes its own.

Each transcript is a file of compressed lines, one per turn, with a small JSON note beside it. The
note records how far the source was read and how many bytes of the file are valid. New turns are
appended after the valid bytes before the note is replaced, so an interrupted append does not count.
If the source is replaced by another file, a new part begins. Nothing is ever appended to a damaged
part.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from rekindle.documents.transcripts.turns import (
    TranscriptCursor,
    Turn,
)
from rekindle.errors import (
    BusyError,
    StoreError,
    UsageError,
    translate_os_errors,
)
from rekindle.formats.identifiers import STABLE_ID
from rekindle.policy.settings.runtime_settings import LOCK_WAIT_SECONDS
from rekindle.system.files import durable_files, file_locks
from rekindle.thresholds.texts import QUOTED_CHARACTERS

_GZIP = 31
"""Value of `wbits` for gzip files."""
_PIECE_BYTES = 256 * 1024
_UNPACKED_BYTES = 1024 * 1024
"""Maximum number of bytes to decompress per step, because data can expand a thousandfold."""
_LINES, _NOTE = ".jsonl.gz", ".json"
_NAME = re.compile(r"([^~+]+)(?:~([^~+]+))?(?:\+([1-9][0-9]{0,5}))?\Z")
"""Pattern of a transcript's file name. Ids never contain ~ or +."""
_HINT = "move it away; nothing else needs it, and readable turns will be archived again"


class ArchivedTranscript(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata for an archived transcript, stored in a note next to it."""

    v: int = 1
    session: str
    thread: str = ""
    """Subagent that wrote the transcript; empty for the session itself."""
    part: int = 0
    """Number of this part; a new part begins when the source file is replaced."""
    harness: str = ""
    """Harness that wrote the source file; empty if the note was lost."""
    source: str = ""
    stamp: str = ""
    """Stamp of the source file when it was last read completely."""
    began: str = ""
    """Time of the first turn."""
    seen: int = 0
    """Bytes of the source file that have been read."""
    mark: str = ""
    """Fingerprint of the source file just before the offset `seen`."""
    cursor: TranscriptCursor = TranscriptCursor()
    size: int = 0
    """Valid bytes in the archived file."""
    rest: tuple[Turn, ...] = ()
    """Turns at the end of the source that may still grow."""

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
        """Hold the lock for appending to the archive."""
        with file_locks.hold_lock(self._folder / ".lock", LOCK_WAIT_SECONDS) as lock:
            if lock is None:
                raise BusyError(agent, LOCK_WAIT_SECONDS)
            yield

    def all(self) -> list[ArchivedTranscript]:
        """Return all transcripts, ordered by start time."""
        notes = (self._read_part(*name) for name in self._list_written())
        transcripts = [transcript for transcript in notes if transcript is not None]
        return sorted(
            transcripts,
            key=lambda transcript: (
                transcript.began,
                transcript.session,
                transcript.thread,
                transcript.part,
            ),
        )

    def written_since(self, then: float) -> list[ArchivedTranscript]:
        """Return the transcripts of sessions written since a time, oldest first."""
        order = sorted((at, name) for name, at in self._list_written().items() if at >= then)
        notes = (self._read_part(*name) for _, name in order if not name[1])
        return [note for note in notes if note is not None]

    def older_than(self, then: float) -> int:
        """Return the number of sessions whose transcripts were last written before a time."""
        return sum(at < then and not name[1] for name, at in self._list_written().items())

    def _list_written(self) -> dict[tuple[str, str, int], float]:
        """Return the last write time of each transcript, by session, thread and part."""
        written: dict[tuple[str, str, int], float] = {}
        for ending in (_LINES, _NOTE):
            for path in self._folder.glob(f"*{ending}"):
                matched = _NAME.match(path.name.removesuffix(ending))
                # Skip temporary files left by killed writers.
                if not matched or not all(map(STABLE_ID.match, filter(None, matched.groups()[:2]))):
                    continue
                name = (matched[1], matched[2] or "", int(matched[3] or 0))
                with suppress(FileNotFoundError):
                    written[name] = max(written.get(name, 0.0), path.stat().st_mtime)
        return written

    def find(self, session: str, thread: str = "") -> ArchivedTranscript | None:
        """Return the last part of a transcript, or None."""
        parts = self.parts(session, thread)
        return parts[-1] if parts else None

    def parts(self, session: str, thread: str = "") -> list[ArchivedTranscript]:
        """Return all parts of a transcript, in order."""
        notes: list[ArchivedTranscript] = []
        while (note := self._read_part(session, thread, len(notes))) is not None:
            notes.append(note)
        return notes

    def add(
        self,
        transcript: ArchivedTranscript,
        turns: Iterable[Turn],
        then: Callable[[ArchivedTranscript], ArchivedTranscript],
    ) -> ArchivedTranscript:
        """Append turns. `then` receives the updated note and returns the one to save."""
        if not durable_files.path_exists(self._make_path(transcript, _NOTE)):
            self.note(transcript)  # otherwise, a crash would look like a lost note
        size = durable_files.write_from(
            self._make_path(transcript, _LINES), transcript.size, _compress_turns(turns)
        )
        transcript = then(msgspec.structs.replace(transcript, size=size))
        self.note(transcript)
        return transcript

    def note(self, transcript: ArchivedTranscript, *, is_durable: bool = True) -> None:
        """Replace the note. If a power loss destroys it, it is rebuilt from the turns."""
        data = msgspec.json.encode(transcript)
        durable_files.replace_file(self._make_path(transcript, _NOTE), data, is_durable=is_durable)

    def is_whole(self, transcript: ArchivedTranscript) -> bool:
        """Return whether the file still has all its valid bytes."""
        if not transcript.size:
            return True
        path = self._make_path(transcript, _LINES)
        with translate_os_errors(path):
            return durable_files.path_exists(path) and path.stat().st_size >= transcript.size

    def turns(self, transcript: ArchivedTranscript, start: int = 0) -> Iterator[Turn]:
        """Yield the turns. If `start` is an earlier end of the file, yield only later turns.

        Raises:
            StoreError: The file is damaged; the turns before the damage were yielded.
        """
        path = self._make_path(transcript, _LINES)
        decode = msgspec.json.Decoder(Turn).decode
        try:
            for line, _ in (
                _read_lines(path, transcript.size, start) if transcript.size > start else ()
            ):
                yield decode(line)
        except (zlib.error, msgspec.MsgspecError, EOFError) as error:
            raise StoreError(str(path), f"is damaged ({error})", hint=_HINT) from error
        yield from transcript.rest

    def _read_part(self, session: str, thread: str, part: int) -> ArchivedTranscript | None:
        named = ArchivedTranscript(session=session, thread=thread, part=part)
        data = durable_files.read_bytes(self._make_path(named, _NOTE))
        with suppress(msgspec.MsgspecError):
            if data:
                return msgspec.json.decode(data, type=ArchivedTranscript)
        return self._rebuild_record(named)

    def _rebuild_record(self, named: ArchivedTranscript) -> ArchivedTranscript | None:
        """Rebuild a lost note from the turns."""
        path = self._make_path(named, _LINES)
        if not durable_files.path_exists(path):
            return None
        began, size, last = "", 0, 0
        decode = msgspec.json.Decoder(Turn).decode
        with suppress(zlib.error, msgspec.MsgspecError, EOFError):
            for line, end in _read_lines(path, path.stat().st_size):
                turn = decode(line)
                began, size, last = began or turn.at, end, turn.number
        return msgspec.structs.replace(
            named, began=began, size=size, cursor=TranscriptCursor(number=last + 1)
        )

    def _make_path(self, transcript: ArchivedTranscript, ending: str) -> Path:
        for name in (transcript.session, transcript.thread):
            if name and not STABLE_ID.match(name):
                raise UsageError(f"{name[:QUOTED_CHARACTERS]!r} is not a valid session name")
        return self._folder / f"{transcript.name}{ending}"


def _compress_turns(turns: Iterable[Turn]) -> Iterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP)
    empty = True
    for turn in turns:
        empty = False
        if piece := packer.compress(msgspec.json.encode(turn) + b"\n"):
            yield piece
    if not empty:
        yield packer.flush()


def _read_lines(path: Path, size: int, start: int = 0) -> Iterator[tuple[bytes, int]]:
    """Yield the lines of the gzip members in the first `size` bytes, each with its member's offset.

    Reading starts at `start`, which must be the offset of a member.

    Raises:
        EOFError: The file is shorter than `size`, or its last line is cut off.
    """
    with translate_os_errors(path), path.open("rb") as file:
        file.seek(start)
        rest, packed, unpacker, left = b"", b"", zlib.decompressobj(_GZIP), size - start
        member = start
        while packed or left:
            if not packed:
                packed = file.read(min(left, _PIECE_BYTES))
                if not packed:
                    raise EOFError("the file is shorter than recorded")
                left -= len(packed)
            *lines, rest = (rest + unpacker.decompress(packed, _UNPACKED_BYTES)).split(b"\n")
            packed = unpacker.unconsumed_tail or unpacker.unused_data
            if unpacker.eof:
                unpacker = zlib.decompressobj(_GZIP)
                member = size - left - len(packed)
            yield from ((line, member) for line in lines)
        if rest:
            raise EOFError("the file's last line is incomplete")
