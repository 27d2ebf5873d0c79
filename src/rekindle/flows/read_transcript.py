"""A CLI's transcript read into turns: from a place on, line by line, never all of it at once."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import BinaryIO

import msgspec

from rekindle.documents.jsontext import fingerprint
from rekindle.documents.narration import Narration
from rekindle.documents.transcript import Cursor, Passage, Turn, instant
from rekindle.flows import transcripts
from rekindle.ports import Harness
from rekindle.thresholds.storage import TRANSCRIPT_LINE_BYTES, TRANSCRIPT_LINE_OBJECTS

_BUFFER_BYTES = 1024 * 1024
_MARK_BYTES = 4 * 1024


class ReadTranscript:
    """Reads a file from where it was left, up to its last whole line."""

    def __init__(
        self,
        path: str,
        harness: Harness,
        cursor: Cursor = Cursor(),  # noqa: B008 - it is frozen
        *,
        thread: str = "",
        begins: Callable[[bytes], bytes] | None = None,
    ) -> None:
        """`thread` is the sub-agent that has this file for itself; `begins` as in `Asides`."""
        self._path, self._harness, self._thread = path, harness, thread
        self._begins, self._sign = begins, b""
        self._narration = Narration(cursor)
        self._file: BinaryIO | None = None
        self._source = self._lines()
        self._tail = b""
        self.at = cursor.offset
        """How far it was read."""
        self.is_done = False
        """All of it was read."""
        self.began = ""
        """When the first thing was that it told of."""
        self.passed_over = 0
        """How many lines were too long to be looked at."""

    def follows(self, seen: int, mark: str) -> bool:
        """Whether it is still the file of which so much was read: it may have been replaced.

        What is read then is read of the file that was looked at.
        """
        file = self._opened()
        return file is not None and bool(mark) and fingerprint(_before(file, seen)) == mark

    def mark(self) -> str:
        """What `follows` knows it by, as far as it was read."""
        return fingerprint(self._tail)

    def finished(self, most: int | None = None) -> Iterator[Turn]:
        """The turns that are over; after about so many bytes it stops, and can go on."""
        start = self.at
        for begin, line in self._source:
            found = () if self._is_inherited(line) else self._harness.read_transcript(line)
            if found:
                self.began = self.began or instant(found[0].at)
                yield from self._narration.take(self._placed(found), begin)
            if most is not None and self.at - start >= most:
                return

    def all(self) -> Iterator[Turn]:
        yield from self.finished()
        yield from self.rest()

    def rest(self) -> Iterator[Turn]:
        """The turns to which something may still be added, as they stand."""
        return self._narration.rest()

    def cursor(self) -> Cursor:
        # Where nothing of its own stands yet, that is looked for from the beginning.
        return Cursor() if self._sign else self._narration.cursor(self.at)

    def close(self) -> None:
        self._source.close()
        if self._file is not None:
            self._file.close()

    def _placed(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        if not self._thread:
            return passages
        return tuple(msgspec.structs.replace(one, thread=self._thread) for one in passages)

    def _is_inherited(self, line: bytes) -> bool:
        """Whether a line is a copy of the session's that a sub-agent was given."""
        if self._begins is not None and self.at == len(line):
            self._sign = self._begins(line)
        if self._sign and self._sign in line.replace(b'": ', b'":'):
            self._sign = b""
        return bool(self._sign)

    def _opened(self) -> BinaryIO | None:
        try:
            self._file = self._file or transcripts.opened(self._path, buffering=_BUFFER_BYTES)
        except OSError:
            return None  # the CLI has deleted it
        return self._file

    def _lines(self) -> Generator[tuple[int, bytes]]:
        file = self._opened()
        if file is not None:
            with file:
                self.at = min(self.at, os.fstat(file.fileno()).st_size)
                self._tail = _before(file, self.at)
                file.seek(self.at)
                yield from self._whole(file)
        self.is_done = True

    def _whole(self, file: BinaryIO) -> Iterator[tuple[int, bytes]]:
        while line := file.readline(TRANSCRIPT_LINE_BYTES):
            begin, size = self.at, len(line)
            while len(line) == TRANSCRIPT_LINE_BYTES and not line.endswith(b"\n"):
                self._tail = line[-_MARK_BYTES:]
                line = file.readline(TRANSCRIPT_LINE_BYTES)
                size += len(line)
            if not line.endswith(b"\n"):
                return  # torn, or not written to its end yet
            self.at += size
            self._tail = (self._tail + line[-_MARK_BYTES:])[-_MARK_BYTES:]
            if (
                size > TRANSCRIPT_LINE_BYTES
                or line.count(b"{") + line.count(b"[") > TRANSCRIPT_LINE_OBJECTS
            ):
                self.passed_over += 1
            else:
                yield begin, line


def _before(file: BinaryIO, place: int) -> bytes:
    start = max(0, place - _MARK_BYTES)
    return os.pread(file.fileno(), place - start, start)


def told_by(path: str, harnesses: Iterable[Harness]) -> Harness | None:
    """The CLI that has written a transcript; None: nobody's, as far as its beginning tells."""
    whole, _, _ = transcripts.beginning(path).rpartition(b"\n")
    beginning = whole.split(b"\n")
    told = [(sum(len(one.read_transcript(line)) for line in beginning), one) for one in harnesses]
    most, harness = max(told, key=lambda found: found[0], default=(0, None))
    return harness if most else None
