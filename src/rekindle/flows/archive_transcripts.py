"""Transcripts are kept before the CLI deletes its own: in normal form, without secrets."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath

import msgspec

from rekindle.documents.identity import STABLE_ID
from rekindle.documents.transcript import Turn
from rekindle.flows import transcripts
from rekindle.flows.read_transcript import ReadTranscript, told_by
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcripts import Kept, TranscriptArchive


class ArchiveTranscripts:
    """Adds to an agent's archive what its sessions have told since it was last looked at."""

    def __init__(self, store: FileStore, agent: str, harnesses: Sequence[Harness]) -> None:
        self._store, self._agent, self._harnesses = store, agent, harnesses
        self._archive = TranscriptArchive(store.folder(agent).transcripts)

    def all(self) -> None:
        lives = self._store.read(self._agent).projection.lives
        self.sources({session: life.transcript for session, life in lives.items()})

    def sources(self, transcript_of: Mapping[str, str]) -> None:
        """The sessions that have their transcripts there, with those of their sub-agents."""
        grown = [found for found in self._found(transcript_of) if self._has_grown(found)]
        if not grown:
            return
        with self._archive.adding(self._agent):
            for found in grown:
                self._add(found)

    def _found(self, transcript_of: Mapping[str, str]) -> Iterator[Kept]:
        for session, path in transcript_of.items():
            if not path or not STABLE_ID.match(session):
                continue
            yield Kept(session=session, source=path)
            for aside in _asides(path, session, self._harnesses):
                thread = PurePath(aside).stem
                if STABLE_ID.match(thread):
                    yield Kept(session=session, thread=thread, source=aside)

    def _has_grown(self, found: Kept) -> bool:
        kept = self._archive.find(found.session, found.thread)
        return transcripts.size(found.source) > (kept.seen if kept else 0)

    def _add(self, found: Kept) -> None:
        kept = self._archive.find(found.session, found.thread) or found
        harness = next((one for one in self._harnesses if kept.harness == one.NAME), None)
        harness = harness or told_by(found.source, self._harnesses)
        if harness is None:
            return
        reading = ReadTranscript(found.source, harness, kept.cursor, thread=found.thread)

        def then(known: Kept) -> Kept:
            return msgspec.structs.replace(
                known,
                harness=harness.NAME,
                source=found.source,
                began=known.began or reading.began,
                seen=reading.at,
                cursor=reading.cursor(),
                rest=tuple(map(self._redacted, reading.rest())),
            )

        self._archive.add(kept, map(self._redacted, reading.finished()), then)

    def _redacted(self, turn: Turn) -> Turn:
        return turn.without_secrets(self._store.redaction.text)


def _asides(path: str, session: str, harnesses: Sequence[Harness]) -> list[str]:
    """The transcripts of a session's sub-agents, where they have files of their own."""
    told = filter(None, (one.asides(glob.escape(path), session) for one in harnesses))
    found = {
        file: aside.sign
        for aside in told
        for file in glob.glob(aside.pattern, recursive=True)  # noqa: PTH207 - of whole paths
        if file != path
    }
    return sorted(file for file, sign in found.items() if sign in transcripts.first_line(file))
