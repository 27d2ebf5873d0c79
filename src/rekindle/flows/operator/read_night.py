"""Read one agent's night from its log and its archived transcripts."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import Protocol

import msgspec

from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.documents.screens.agent_night import AgentNight, WindowPoint
from rekindle.documents.transcripts.turns import normalize_time
from rekindle.errors import RekindleError
from rekindle.policy.night.build_night import NightInputs, build_night, shows_activity
from rekindle.policy.supervision.budget import raise_caps
from rekindle.stores.files.transcript_archive import TranscriptArchive
from rekindle.stores.log.event_log import LogEntry
from rekindle.stores.log.view import AgentView


class NightStore(Protocol):
    """The parts of a store that a night is read from."""

    def exists(self, agent: str) -> bool: ...

    def read(self, agent: str) -> AgentView: ...

    def newest_entries(self, agent: str) -> Iterator[LogEntry]: ...


def read_night(
    store: NightStore,
    agent: str,
    around: NightInputs,
    archive: TranscriptArchive | None = None,
) -> AgentNight:
    """Return the agent's night. Without an archive, it has only the log's window points."""
    if not store.exists(agent):
        return build_night(agent, (), around)
    raised = store.read(agent).projection.run.raised_caps()
    around = msgspec.structs.replace(around, budget=raise_caps(around.budget, raised))
    happened = _read_events(store, agent, around.start)
    turns = list(_read_turns(archive, around.start, around.end)) if archive else []
    return build_night(agent, happened, around, turns)


def _read_events(store: NightStore, agent: str, since: datetime) -> list[AnyEvent | UnknownEvent]:
    """Return the events since a time, and what the agent was doing before, in log order."""
    happened: list[AnyEvent | UnknownEvent] = []
    for entry in store.newest_entries(agent):
        happened.append(entry.event)
        if entry.event.ts < since and shows_activity(entry.event):
            break
    return happened[::-1]


def _read_turns(
    archive: TranscriptArchive, since: datetime, until: datetime
) -> Iterator[WindowPoint]:
    """Yield the context-window usage after each turn of the main threads."""
    for transcript in archive.written_since(since.timestamp()):
        with suppress(RekindleError):  # use the turns before the damage
            for turn in archive.turns(transcript):
                # An agent can write to its archive, so check the time again.
                moment = normalize_time(turn.at)
                if turn.read and not turn.thread and moment:
                    at = datetime.fromisoformat(moment)
                    if since <= at <= until:
                        yield WindowPoint(at, turn.read, transcript.session)
