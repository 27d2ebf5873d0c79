"""A CLI's transcript read into turns: from a place on, line by line, never all of it at once."""

import os
from collections.abc import Iterable, Iterator

import msgspec

from rekindle.documents.transcript import Cursor, Narration, Passage, Turn
from rekindle.flows import transcripts
from rekindle.ports import Harness

LINE_BYTES = 8 * 1024 * 1024
"""A longer line is passed over: only blobs are as large."""
_BUFFER_BYTES = 1024 * 1024


class ReadTranscript:
    """Reads a file from where it was left, up to its last whole line."""

    def __init__(
        self,
        path: str,
        harness: Harness,
        cursor: Cursor = Cursor(),  # noqa: B008 - it is frozen
        *,
        thread: str = "",
    ) -> None:
        """`thread` is the sub-agent that has this file for itself."""
        self._path, self._harness, self._thread = path, harness, thread
        self._narration = Narration(cursor)
        self.at = cursor.offset
        """How far it was read."""
        self.began = ""
        """When the first thing was that it told of."""
        self.passed_over = 0
        """How many lines were too long to be looked at."""

    def finished(self) -> Iterator[Turn]:
        """The turns that are over."""
        for begin, line in self._lines():
            if found := self._harness.read_transcript(line):
                self.began = self.began or found[0].at
                yield from self._narration.take(self._placed(found), begin)

    def all(self) -> Iterator[Turn]:
        yield from self.finished()
        yield from self.rest()

    def rest(self) -> Iterator[Turn]:
        """The turns to which something may still be added, as they stand."""
        return self._narration.rest()

    def cursor(self) -> Cursor:
        return self._narration.cursor(self.at)

    def _placed(self, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        if not self._thread:
            return passages
        return tuple(msgspec.structs.replace(one, thread=self._thread) for one in passages)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        try:
            file = open(self._path, "rb", buffering=_BUFFER_BYTES)  # noqa: SIM115, PTH123 - a path of the CLI's own, and closed below
        except OSError:
            return  # the CLI has deleted it
        with file:
            # Shorter than it was: a power loss has cut it. What the CLI adds then is read.
            self.at = min(self.at, os.fstat(file.fileno()).st_size)
            file.seek(self.at)
            while line := file.readline(LINE_BYTES):
                begin, size = self.at, len(line)
                while len(line) == LINE_BYTES and not line.endswith(b"\n"):
                    line = file.readline(LINE_BYTES)
                    size += len(line)
                if not line.endswith(b"\n"):
                    return  # torn, or not written to its end yet
                self.at += size
                if size > LINE_BYTES:
                    self.passed_over += 1
                else:
                    yield begin, line


def told_by(path: str, harnesses: Iterable[Harness]) -> Harness | None:
    """The CLI that has written a transcript; None: nobody's, as far as its beginning tells."""
    whole, _, _ = transcripts.beginning(path).rpartition(b"\n")
    beginning = whole.split(b"\n")
    told = [(sum(len(one.read_transcript(line)) for line in beginning), one) for one in harnesses]
    most, harness = max(told, key=lambda found: found[0], default=(0, None))
    return harness if most else None
