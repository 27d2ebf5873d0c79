"""Read a timestamped record of what an agent did, from its log and its transcripts."""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from rekindle.api.agent_store import AgentStore
from rekindle.api.describe_events import describe_event, describe_turn, find_time
from rekindle.api.describe_reports import ReportLine
from rekindle.config import Project
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import BusyError, RekindleError, StoreError
from rekindle.flows.transcripts import transcript_files as files
from rekindle.policy.projection.projection import Projection
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.system import clock
from rekindle.wiring import transcript_setup


class LogLine(NamedTuple):
    """A line about an agent, with its time."""

    at: datetime
    agent: str
    line: ReportLine


class ActivityLog:
    """Lines about one agent, from its log and transcripts. Each line is returned only once."""

    def __init__(self, project: Project, store: AgentStore, name: str) -> None:
        self._project, self._store, self._name = project, store, name
        self._end = 0
        self._turns = TurnLog(project, store, name) if isinstance(store, FileStore) else None

    def read(self, last: int) -> list[LogLine]:
        """Return the last `last` lines, oldest first, or all lines if `last` is 0."""
        if not self._store.exists(self._name):
            return []
        self._end = self._store.read(self._name).end
        newest = (
            LogLine(entry.event.ts, self._name, line)
            for entry in self._store.newest_entries(self._name)
            for line in reversed(describe_event(entry.event, self._name))
        )
        lines = list(islice(newest, last or None))[::-1]
        if self._turns:
            lines += self._turns.read(last)
        return sorted(lines, key=lambda item: item[0])[-last:]

    def read_new(self) -> Iterator[LogLine]:
        """Yield the lines that were added since the last call."""
        if not self._store.exists(self._name):
            return
        for entry in self._store.entries_since(self._name, self._end):
            self._end = entry.end
            for line in describe_event(entry.event, self._name):
                yield LogLine(entry.event.ts, self._name, line)
        if self._turns:
            yield from self._turns.read_new()


class TurnLog:
    """Lines from an agent's transcripts."""

    def __init__(self, project: Project, store: FileStore, name: str) -> None:
        self._project, self._store, self._name = project, store, name
        self._printed: dict[tuple[str, int], int] = {}
        """Number of printed lines per turn, by transcript name and turn number."""
        self._sizes: dict[str, int] = {}
        self._outputs: dict[str, ArchivedTranscript] = {}
        """Archived output that was already printed, for programs that do not write a transcript."""
        self._launched = 0
        """Sequence number of the last launch whose output was read."""
        self._stamps: dict[str, str] = {}

    def read(self, last: int) -> list[LogLine]:
        items: deque[LogLine] = deque(maxlen=last or None)
        with suppress(RekindleError):  # An unreadable transcript must not hide the others.
            for archived, turns in transcript_setup.read_sessions(
                self._project, self._store, self._name
            ):
                if not archived.thread:
                    items.extend(self._list_new_lines(archived, turns))
        return list(items)

    def read_new(self) -> Iterator[LogLine]:
        yield from self._read_outputs()
        sessions = {
            session: path for session, path in self._open_sessions().items() if self._is_new(path)
        }
        if not sessions:
            return
        with suppress(BusyError, StoreError):
            transcript_setup.archive_sessions(self._project, self._store, self._name, sessions)
        archive = TranscriptArchive(self._store.folder(self._name).transcripts)
        for session in sessions:
            archived = archive.find(session)
            with suppress(StoreError):
                if archived:
                    yield from self._list_new_lines(
                        archived, archive.turns(archived, self._get_printed_size(archived))
                    )

    def _read_outputs(self) -> Iterator[LogLine]:
        """Yield the output of recent launches that have only the supervisor's transcript.

        These are the latest launch and, if it started after the last call, the one before it.
        """
        projection = self._store.read(self._name).projection
        launches = sorted(projection.attempts.values(), key=lambda launch: launch.seq)
        recent = [launch.session for launch in launches if launch.seq >= self._launched]
        self._launched = launches[-1].seq if launches else 0
        archive = TranscriptArchive(self._store.folder(self._name).transcripts)
        own = (
            session
            for session in dict.fromkeys(recent)
            if session and not _has_transcript(projection, session)
        )
        for archived in (archived for session in own for archived in archive.parts(session)):
            if archived.source or archived == self._outputs.get(archived.name):
                continue
            self._outputs[archived.name] = archived
            with suppress(StoreError):
                yield from self._list_new_lines(
                    archived, archive.turns(archived, self._get_printed_size(archived))
                )

    def _open_sessions(self) -> dict[str, str]:
        """Return the transcript paths of sessions that may still grow, by session."""
        lives = self._store.read(self._name).projection.lives
        newest = max((life.started_seq for life in lives.values()), default=0)
        return {
            session: life.transcript
            for session, life in lives.items()
            if life.transcript and (life.is_open or life.started_seq == newest)
        }

    def _is_new(self, path: str) -> bool:
        stamp = files.make_stamp(path)
        is_new = stamp != self._stamps.get(path)
        self._stamps[path] = stamp
        return is_new

    def _get_printed_size(self, archived: ArchivedTranscript) -> int:
        """Return how many bytes of the archived transcript have already been printed."""
        return min(self._sizes.get(archived.name, 0), archived.size)

    def _list_new_lines(
        self, archived: ArchivedTranscript, turns: Iterator[Turn]
    ) -> Iterator[LogLine]:
        """Yield the lines that have not been printed yet. A turn can grow after it was printed."""
        at, projection = clock.read_clock(), self._store.read(self._name).projection
        is_launched = any(
            launch.session == archived.session for launch in projection.attempts.values()
        )
        for turn in turns:
            at = find_time(turn, at)
            lines = describe_turn(
                turn, self._name, is_launched=is_launched, is_output=not archived.source
            )
            key = archived.name, turn.number
            for line in lines[self._printed.get(key, 0) :]:
                yield LogLine(at, self._name, line)
            self._printed[key] = max(len(lines), self._printed.get(key, 0))
        self._sizes[archived.name] = archived.size


def _has_transcript(projection: Projection, session: str) -> bool:
    life = projection.lives.get(session)
    return life is not None and bool(life.transcript)
