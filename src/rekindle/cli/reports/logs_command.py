"""`rekindle logs`: print what agents did."""

import heapq
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, tzinfo
from itertools import islice

import click

from rekindle.api.agent_store import AgentStore
from rekindle.cli.options import (
    last_option,
    open_agents,
)
from rekindle.cli.output import (
    echo,
    style_text,
)
from rekindle.cli.reports.describe_events import (
    describe_event,
    describe_turn,
    find_time,
)
from rekindle.cli.reports.describe_reports import ReportLine
from rekindle.config import Project
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import BusyError, RekindleError, StoreError
from rekindle.flows.transcripts import transcript_files as files
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import POLL_SECONDS
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import (
    ArchivedTranscript,
    TranscriptArchive,
)
from rekindle.system import clock
from rekindle.thresholds.screens import EVENTS_POLL_SECONDS
from rekindle.wiring import transcript_setup

LogItem = tuple[datetime, str, ReportLine]
"""A line with its time and its agent."""


@click.command()
@click.argument("agents", nargs=-1)
@last_option
@click.option(
    "-f", "--follow", is_flag=True, help="Keep printing new lines until you press Ctrl-C."
)
def logs(agents: tuple[str, ...], last: int, follow: bool) -> None:
    """Print a timestamped record of what AGENTS (by default, all agents) did, newest last.

    The lines are the same as in `rekindle run`: launches, the agent's messages and tool calls,
    refused calls, crashes, waits and exits. They come from the log and from archived transcripts.
    On a fleet, they come only from the log.
    """
    project, store, names = open_agents(agents)
    zone = project.settings.runtime.brief.zone
    printer = _Printer(clock.find_zone(zone) if zone else None, max(map(len, names), default=0))
    printer.has_names = len(names) > 1
    stories = [_AgentLog(project, store, name) for name in names]
    merged = heapq.merge(*(story.read(last) for story in stories), key=lambda item: item[0])
    shown = deque(merged, last) if last else merged
    has_lines = False
    for item in shown:
        printer.print(item)
        has_lines = True
    if not (has_lines or follow):
        echo("Nothing has happened yet: start an agent with `rekindle run`.", err=True)
    while follow:
        sys.stdout.flush()
        # On a fleet, each poll is a query to the engine.
        time.sleep(EVENTS_POLL_SECONDS if project.settings.fleet is None else POLL_SECONDS)
        new = (item for story in stories for item in story.read_new())
        for item in sorted(new, key=lambda item: item[0]):
            printer.print(item)


class _Printer:
    def __init__(self, zone: tzinfo | None, width: int) -> None:
        self._zone, self._width = zone, width
        self.has_names = True

    def print(self, item: LogItem) -> None:
        at, name, line = item
        moment = f"{at.astimezone(self._zone):%Y-%m-%d %H:%M:%S}  "
        agent = f"{name:<{self._width}}  " if self.has_names else ""
        indent = "  " if line.place == "inside" else ""
        echo(moment, agent, style_text(f"{indent}{line.text}", **line.style))


class _AgentLog:
    """Lines about one agent, from its log and transcripts. Each line is returned only once."""

    def __init__(self, project: Project, store: AgentStore, name: str) -> None:
        self._project, self._store, self._name = project, store, name
        self._end = 0
        self._turns = _TurnLog(project, store, name) if isinstance(store, FileStore) else None

    def read(self, last: int) -> list[LogItem]:
        """Return the last `last` lines, oldest first, or all lines if `last` is 0."""
        if not self._store.exists(self._name):
            return []
        self._end = self._store.read(self._name).end
        newest = (
            (entry.event.ts, self._name, line)
            for entry in self._store.newest_entries(self._name)
            for line in reversed(describe_event(entry.event, self._name))
        )
        lines = list(islice(newest, last or None))[::-1]
        if self._turns:
            lines += self._turns.read(last)
        return sorted(lines, key=lambda item: item[0])

    def read_new(self) -> Iterator[LogItem]:
        """Yield the lines that were added since the last call."""
        if not self._store.exists(self._name):
            return
        for entry in self._store.entries_since(self._name, self._end):
            self._end = entry.end
            for line in describe_event(entry.event, self._name):
                yield entry.event.ts, self._name, line
        if self._turns:
            yield from self._turns.read_new()


class _TurnLog:
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

    def read(self, last: int) -> list[LogItem]:
        items: deque[LogItem] = deque(maxlen=last or None)
        with suppress(RekindleError):  # An unreadable transcript must not hide the others.
            for archived, turns in transcript_setup.read_sessions(
                self._project, self._store, self._name
            ):
                if not archived.thread:
                    items.extend(self._list_new_lines(archived, turns))
        return list(items)

    def read_new(self) -> Iterator[LogItem]:
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

    def _read_outputs(self) -> Iterator[LogItem]:
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
    ) -> Iterator[LogItem]:
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
                yield at, self._name, line
            self._printed[key] = max(len(lines), self._printed.get(key, 0))
        self._sizes[archived.name] = archived.size


def _has_transcript(projection: Projection, session: str) -> bool:
    life = projection.lives.get(session)
    return life is not None and bool(life.transcript)
