"""Transcripts are kept before the CLI deletes its own: in normal form, without secrets."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatch
from itertools import islice

import msgspec

from rekindle.documents.identity import STABLE_ID, derived_id
from rekindle.documents.transcript import Asides, Turn
from rekindle.flows import transcripts
from rekindle.flows.read_transcript import ReadTranscript, told_by
from rekindle.policy.settings import ARCHIVE_STEP_BYTES
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcripts import Kept, TranscriptArchive
from rekindle.thresholds.storage import ARCHIVE_FILES

_ENDING = ".jsonl"


class _Source(msgspec.Struct, frozen=True):
    """A file of a session's, or of a sub-agent's of it."""

    session: str
    thread: str
    path: str
    begins: Callable[[bytes], bytes] | None = None


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
        changed = [source for source in self._found(transcript_of) if self._has_changed(source)]
        if not changed:
            return
        with self._archive.adding(self._agent):
            for source in changed:
                self._add(source)

    def _found(self, transcript_of: Mapping[str, str]) -> Iterator[_Source]:
        for session, path in transcript_of.items():
            if not path or not STABLE_ID.match(session):
                continue
            yield _Source(session, "", path)
            for harness in self._harnesses:
                asides = harness.asides(path, session)
                for aside in files_beside(asides) if asides else ():
                    if aside != path and asides and asides.sign in transcripts.first_line(aside):
                        thread = _thread(os.path.relpath(aside, asides.folder))
                        yield _Source(session, thread, aside, asides.begins)

    def _has_changed(self, source: _Source) -> bool:
        kept = self._archive.find(source.session, source.thread)
        stamp = transcripts.stamp(source.path)
        return stamp != "" and (kept is None or kept.stamp != stamp)

    def _add(self, source: _Source) -> None:
        kept = self._archive.find(source.session, source.thread)
        known = (one for one in self._harnesses if kept and kept.harness == one.NAME)
        harness = next(known, None) or told_by(source.path, self._harnesses)
        if harness is None:
            return
        if kept is None:
            kept = Kept(session=source.session, thread=source.thread, source=source.path)
        elif not self._goes_on(kept, source, harness):
            # Another story, or one that nobody can add to: never two of them in one file.
            self._archive.note(kept)
            kept = Kept(
                session=kept.session, thread=kept.thread, source=source.path, part=kept.part + 1
            )
        else:
            return
        kept = msgspec.structs.replace(kept, harness=harness.NAME)
        with closing(self._reading(kept, source, harness)) as reading:
            self._keep(kept, reading, source)

    def _goes_on(self, kept: Kept, source: _Source, harness: Harness) -> bool:
        """Add to what is kept, if it is of the same file, and is whole."""
        with closing(self._reading(kept, source, harness)) as reading:
            is_same = not kept.seen or reading.follows(kept.seen, kept.mark)
            if not is_same or not kept.harness or not self._archive.is_whole(kept):
                return False
            self._keep(kept, reading, source)
        return True

    def _reading(self, kept: Kept, source: _Source, harness: Harness) -> ReadTranscript:
        return ReadTranscript(
            source.path, harness, kept.cursor, thread=source.thread, begins=source.begins
        )

    def _keep(self, kept: Kept, reading: ReadTranscript, source: _Source) -> None:
        """Piece by piece: whoever is killed, or looks on, has what was kept until then."""
        # Before anything is read: what is written meanwhile is seen the next time.
        stamp = transcripts.stamp(source.path)

        def then(known: Kept) -> Kept:
            return msgspec.structs.replace(
                known,
                source=source.path,
                stamp=stamp if reading.is_done else "",
                began=known.began or reading.began,
                seen=reading.at,
                mark=reading.mark(),
                cursor=reading.cursor(),
                rest=tuple(map(self._redacted, reading.rest())),
            )

        while not reading.is_done:
            turns = map(self._redacted, reading.finished(ARCHIVE_STEP_BYTES))
            kept = self._archive.add(kept, turns, then)

    def _redacted(self, turn: Turn) -> Turn:
        return turn.without_secrets(self._store.redaction.text)


def files_beside(asides: Asides) -> Iterator[str]:
    """Yield the files that may be of sub-agents; no link to a folder is followed.

    It may lead back, or out of the CLI's folder, also in the place of the first folder.
    """
    if os.path.realpath(asides.folder) != asides.folder:
        return iter(())
    folders = islice(os.walk(asides.folder), ARCHIVE_FILES if asides.deep else 1)
    found = (
        os.path.join(folder, name)  # noqa: PTH118 - a path of the CLI's own
        for folder, _, names in folders
        for name in sorted(names)
        if fnmatch(name, asides.name)
    )
    return islice(found, ARCHIVE_FILES)


def _thread(path: str) -> str:
    """The name of a sub-agent, from where its file is: two folders may have files of one name."""
    name = path.removesuffix(_ENDING)
    return name if STABLE_ID.match(name) else derived_id(name)
