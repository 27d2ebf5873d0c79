"""Archive redacted transcripts before the CLI deletes its own copies."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from fnmatch import fnmatch
from itertools import islice

import msgspec

from rekindle.documents.transcripts.turns import SubagentTranscripts, Turn
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.transcript_reader import TranscriptReader, detect_harness
from rekindle.formats.identifiers import STABLE_ID, derive_id
from rekindle.policy.settings.runtime_settings import ARCHIVE_STEP_BYTES
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.thresholds.storage import ARCHIVE_FILES

_ENDING = ".jsonl"


class _TranscriptSource(msgspec.Struct, frozen=True):
    """Transcript file of a session or one of its subagents."""

    session: str
    thread: str
    path: str
    begins: Callable[[bytes], bytes] | None = None


class TranscriptArchiver:
    """Adds new turns from an agent's sessions to the agent's archive."""

    def __init__(self, store: FileStore, agent: str, harnesses: Sequence[Harness]) -> None:
        self._store, self._agent, self._harnesses = store, agent, harnesses
        self._archive = TranscriptArchive(store.folder(agent).transcripts)

    def all(self) -> None:
        lives = self._store.read(self._agent).projection.lives
        self.sources({session: life.transcript for session, life in lives.items()})

    def sources(self, transcript_of: Mapping[str, str]) -> None:
        """Archive these transcripts and their subagents' transcripts."""
        changed = [
            source for source in self._find_sources(transcript_of) if self._has_changed(source)
        ]
        if not changed:
            return
        with self._archive.adding(self._agent):
            for source in changed:
                self._archive_source(source)

    def _find_sources(self, transcript_of: Mapping[str, str]) -> Iterator[_TranscriptSource]:
        for session, path in transcript_of.items():
            if not path or not STABLE_ID.match(session):
                continue
            yield _TranscriptSource(session, "", path)
            for harness in self._harnesses:
                asides = harness.asides(path, session)
                for aside in list_subagent_files(asides) if asides else ():
                    if (
                        aside != path
                        and asides
                        and asides.sign in transcript_files.read_first_line(aside)
                    ):
                        thread = _make_thread_name(os.path.relpath(aside, asides.folder))
                        yield _TranscriptSource(session, thread, aside, asides.begins)

    def _has_changed(self, source: _TranscriptSource) -> bool:
        archived = self._archive.find(source.session, source.thread)
        stamp = transcript_files.make_stamp(source.path)
        return stamp != "" and (archived is None or archived.stamp != stamp)

    def _archive_source(self, source: _TranscriptSource) -> None:
        archived = self._archive.find(source.session, source.thread)
        candidates = (
            harness_of_archive
            for harness_of_archive in self._harnesses
            if archived and archived.harness == harness_of_archive.NAME
        )
        harness = next(candidates, None) or detect_harness(source.path, self._harnesses)
        if harness is None:
            return
        if archived is None:
            archived = ArchivedTranscript(
                session=source.session, thread=source.thread, source=source.path
            )
        elif not self._continue_archive(archived, source, harness):
            # Either the transcript was replaced or the archive is damaged, so start a new part.
            self._archive.note(archived)
            archived = ArchivedTranscript(
                session=archived.session,
                thread=archived.thread,
                source=source.path,
                part=archived.part + 1,
            )
        else:
            return
        archived = msgspec.structs.replace(archived, harness=harness.NAME)
        with closing(self._open_reader(archived, source, harness)) as reading:
            self._store_turns(archived, reading, source)

    def _continue_archive(
        self, archived: ArchivedTranscript, source: _TranscriptSource, harness: Harness
    ) -> bool:
        """Append to the archive if it is intact and has the same source; else return False."""
        with closing(self._open_reader(archived, source, harness)) as reading:
            is_same = not archived.seen or reading.follows(archived.seen, archived.mark)
            if not is_same or not archived.harness or not self._archive.is_whole(archived):
                return False
            self._store_turns(archived, reading, source)
        return True

    def _open_reader(
        self, archived: ArchivedTranscript, source: _TranscriptSource, harness: Harness
    ) -> TranscriptReader:
        return TranscriptReader(
            source.path, harness, archived.cursor, thread=source.thread, begins=source.begins
        )

    def _store_turns(
        self, archived: ArchivedTranscript, reading: TranscriptReader, source: _TranscriptSource
    ) -> None:
        """Append the turns in batches, so that a crash loses only one batch."""
        # Take the stamp before reading, so that the next call notices any later write.
        stamp = transcript_files.make_stamp(source.path)

        def apply_reading(transcript: ArchivedTranscript) -> ArchivedTranscript:
            return msgspec.structs.replace(
                transcript,
                source=source.path,
                stamp=stamp if reading.is_done else "",
                began=transcript.began or reading.began,
                seen=reading.at,
                mark=reading.mark(),
                cursor=reading.cursor(),
                rest=tuple(map(self._redact_turn, reading.rest())),
            )

        while not reading.is_done:
            turns = map(self._redact_turn, reading.finished(ARCHIVE_STEP_BYTES))
            archived = self._archive.add(archived, turns, apply_reading)

    def _redact_turn(self, turn: Turn) -> Turn:
        return turn.without_secrets(self._store.redaction.text)


def list_subagent_files(asides: SubagentTranscripts) -> Iterator[str]:
    """Yield the files that may belong to subagents, without following links.

    A link could point to a parent folder or outside the CLI's folder, so even the top folder must
    not be a link.
    """
    if os.path.realpath(asides.folder) != asides.folder:
        return iter(())
    folders = islice(os.walk(asides.folder), ARCHIVE_FILES if asides.deep else 1)
    files = (
        os.path.join(folder, name)  # noqa: PTH118 - paths are strings
        for folder, _, names in folders
        for name in sorted(names)
        if fnmatch(name, asides.name)
    )
    return islice(files, ARCHIVE_FILES)


def _make_thread_name(path: str) -> str:
    """Return a name based on the whole path, because file names may not be unique."""
    name = path.removesuffix(_ENDING)
    return name if STABLE_ID.match(name) else derive_id(name)
