"""Read a CLI's transcript into turns, starting at an offset."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import BinaryIO

import msgspec

from rekindle.documents.transcripts.turn_builder import TurnBuilder
from rekindle.documents.transcripts.turns import Passage, TranscriptCursor, Turn, normalize_time
from rekindle.flows.transcripts import transcript_files
from rekindle.formats.json_codec import hash_bytes
from rekindle.ports import Harness
from rekindle.thresholds.storage import TRANSCRIPT_LINE_BYTES, TRANSCRIPT_LINE_OBJECTS

_BUFFER_BYTES = 1024 * 1024
_MARK_BYTES = 4 * 1024


class TranscriptReader:
    """Reads a transcript from a saved position up to the last complete line."""

    def __init__(
        self,
        path: str,
        harness: Harness,
        cursor: TranscriptCursor = TranscriptCursor(),  # noqa: B008 - immutable
        *,
        thread: str = "",
        begins: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Create a reader. `thread` names the subagent, and `begins` finds its first line."""
        self._path, self._harness, self._thread = path, harness, thread
        self._begins, self._sign = begins, b""
        self._narration = TurnBuilder(cursor)
        self._file: BinaryIO | None = None
        self._source = self._read_lines()
        self._tail = b""
        self.at = cursor.offset
        """Offset in bytes of the next line to read."""
        self.is_done = False
        """Whether the whole file has been read."""
        self.began = ""
        """Time of the first item in the file."""

    def follows(self, offset: int, mark: str) -> bool:
        """Return whether this is still the file that was read up to `offset`.

        The file may have been replaced. It stays open, so that later reads use the same file.
        """
        file = self._open_file()
        return file is not None and bool(mark) and hash_bytes(_read_before(file, offset)) == mark

    def mark(self) -> str:
        """Return a hash for the current position that `follows` can check later."""
        return hash_bytes(self._tail)

    def finished(self, most: int | None = None) -> Iterator[Turn]:
        """Yield finished turns, up to about `most` bytes. Call again to continue."""
        start = self.at
        for begin, line in self._source:
            passages = () if self._is_inherited(line) else self._harness.read_transcript(line)
            if passages:
                self.began = self.began or normalize_time(passages[0].at)
                yield from self._narration.take(self._set_thread(passages), begin)
            if most is not None and self.at - start >= most:
                return

    def all(self) -> Iterator[Turn]:
        yield from self.finished()
        yield from self.rest()

    def rest(self) -> Iterator[Turn]:
        """Yield the current state of the turns that later lines may still extend."""
        return self._narration.rest()

    def cursor(self) -> TranscriptCursor:
        # Start at offset 0 until the subagent's own first line is found.
        return TranscriptCursor() if self._sign else self._narration.cursor(self.at)

    def close(self) -> None:
        self._source.close()
        if self._file is not None:
            self._file.close()

    def _set_thread(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        if not self._thread:
            return passages
        return tuple(msgspec.structs.replace(passage, thread=self._thread) for passage in passages)

    def _is_inherited(self, line: bytes) -> bool:
        """Return whether the line was copied from the session that started the subagent."""
        if self._begins is not None and self.at == len(line):
            self._sign = self._begins(line)
        if self._sign and self._sign in line.replace(b'": ', b'":'):
            self._sign = b""
        return bool(self._sign)

    def _open_file(self) -> BinaryIO | None:
        try:
            self._file = self._file or transcript_files.open_transcript(
                self._path, buffering=_BUFFER_BYTES
            )
        except OSError:
            return None  # the CLI has deleted the file
        return self._file

    def _read_lines(self) -> Generator[tuple[int, bytes]]:
        file = self._open_file()
        if file is not None:
            with file:
                self.at = min(self.at, os.fstat(file.fileno()).st_size)
                self._tail = _read_before(file, self.at)
                file.seek(self.at)
                yield from self._read_whole_lines(file)
        self.is_done = True

    def _read_whole_lines(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        while line := file.readline(TRANSCRIPT_LINE_BYTES):
            begin, size = self.at, len(line)
            while len(line) == TRANSCRIPT_LINE_BYTES and not line.endswith(b"\n"):
                self._tail = line[-_MARK_BYTES:]
                line = file.readline(TRANSCRIPT_LINE_BYTES)
                size += len(line)
            if not line.endswith(b"\n"):
                return  # the line is still being written
            self.at += size
            self._tail = (self._tail + line[-_MARK_BYTES:])[-_MARK_BYTES:]
            objects = line.count(b"{") + line.count(b"[")
            if size <= TRANSCRIPT_LINE_BYTES and objects <= TRANSCRIPT_LINE_OBJECTS:
                yield begin, line


def _read_before(file: BinaryIO, place: int) -> bytes:
    start = max(0, place - _MARK_BYTES)
    return os.pread(file.fileno(), place - start, start)


def detect_harness(path: str, harnesses: Iterable[Harness]) -> Harness | None:
    """Return the harness for the CLI that wrote a transcript, or None if unknown."""
    lines, _, _ = transcript_files.read_beginning(path).rpartition(b"\n")
    beginning = lines.split(b"\n")
    scores = [
        (sum(len(harness_read.read_transcript(line)) for line in beginning), harness_read)
        for harness_read in harnesses
    ]
    most, harness = max(scores, key=lambda score: score[0], default=(0, None))
    return harness if most else None
