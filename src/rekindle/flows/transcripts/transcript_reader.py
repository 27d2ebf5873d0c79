"""Read a CLI's transcript into turns, line by line, starting at an offset."""

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
    """Reads a transcript from the saved position up to its last complete line."""

    def __init__(
        self,
        path: str,
        harness: Harness,
        cursor: TranscriptCursor = TranscriptCursor(),  # noqa: B008 - it is frozen
        *,
        thread: str = "",
        begins: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """Create a reader; `thread` names the subagent, `begins` is from `SubagentTranscripts`."""
        self._path, self._harness, self._thread = path, harness, thread
        self._begins, self._sign = begins, b""
        self._narration = TurnBuilder(cursor)
        self._file: BinaryIO | None = None
        self._source = self._read_lines()
        self._tail = b""
        self.at = cursor.offset
        """Offset in bytes up to which the file was read."""
        self.is_done = False
        """Whether the whole file has been read."""
        self.began = ""
        """Time of the first item in the file."""

    def follows(self, seen: int, mark: str) -> bool:
        """Return whether this is still the file that was read up to offset `seen`.

        The file may have been replaced. It stays open, so later reads use the file that was
        checked.
        """
        file = self._open_file()
        return file is not None and bool(mark) and hash_bytes(_read_before(file, seen)) == mark

    def mark(self) -> str:
        """Return the hash for the current position, which `follows` checks later."""
        return hash_bytes(self._tail)

    def finished(self, most: int | None = None) -> Iterator[Turn]:
        """Yield the finished turns, stopping after about `most` bytes; call again to continue."""
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
        """Yield the turns that later lines may still extend, in their current form."""
        return self._narration.rest()

    def cursor(self) -> TranscriptCursor:
        # Until the subagent's own first line is found, each read starts at offset 0.
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
        """Return whether a line was copied from the session that started the subagent."""
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
                return  # the line is cut off, or not completely written yet
            self.at += size
            self._tail = (self._tail + line[-_MARK_BYTES:])[-_MARK_BYTES:]
            objects = line.count(b"{") + line.count(b"[")
            if size <= TRANSCRIPT_LINE_BYTES and objects <= TRANSCRIPT_LINE_OBJECTS:
                yield begin, line


def _read_before(file: BinaryIO, place: int) -> bytes:
    start = max(0, place - _MARK_BYTES)
    return os.pread(file.fileno(), place - start, start)


def detect_harness(path: str, harnesses: Iterable[Harness]) -> Harness | None:
    """Return the CLI that wrote a transcript, based on its first lines, or None if unknown."""
    whole, _, _ = transcript_files.read_beginning(path).rpartition(b"\n")
    beginning = whole.split(b"\n")
    scores = [
        (sum(len(harness_read.read_transcript(line)) for line in beginning), harness_read)
        for harness_read in harnesses
    ]
    most, harness = max(scores, key=lambda score: score[0], default=(0, None))
    return harness if most else None
