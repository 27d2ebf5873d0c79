"""Search the transcripts, relays and decisions of a project's agents."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from rekindle.config import Project
from rekindle.documents import relay as relays
from rekindle.documents.events import RelayCommitted
from rekindle.documents.search.search_types import (
    IndexSource,
    SearchEntry,
    SearchHit,
    SearchQuery,
    make_turn_entry,
)
from rekindle.documents.transcripts.turns import normalize_time
from rekindle.errors import DocumentError, RekindleError, StoreError
from rekindle.formats.json_codec import hash_bytes
from rekindle.policy.relay.decision_ledger import read_decisions
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.search.search_index import DamagedIndexError, open_index, remove_index

_RELAYS = "+relays"
"""Name of the source with an agent's relays. No transcript has such a name."""


class SearchResult(msgspec.Struct, frozen=True):
    hits: list[SearchHit]
    damaged: list[str]
    """Why parts of the archive could not be read."""
    has_entries: bool
    """Whether anything has been archived yet."""

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)


def search(project: Project, store: FileStore, query: SearchQuery) -> SearchResult:
    """Index what is new in the archive, then return the newest hits.

    If the index is lost or damaged, rebuild it.
    """
    private = find_private_project(project.path)
    private.make()
    for is_repeated in (False, True):
        reader = _SourceReader(store, _list_agents(project, store))
        try:
            with open_index(private.search) as index:
                index.update(reader.list_sources(), reader.read)
                return SearchResult(index.find(query), reader.damaged, index.has_entries())
        except DamagedIndexError as error:
            if is_repeated:
                raise StoreError(str(private.search), f"cannot be built: {error}") from error
            remove_index(private.search)
    raise AssertionError("the loop returns or raises")


def update_index(project: Project, store: FileStore, agent: str) -> None:
    """Index what is new of one agent, unless another process is updating the index.

    Errors are ignored, because the next search repeats this.
    """
    reader, path = _SourceReader(store, [agent]), find_private_project(project.path).search
    with suppress(DamagedIndexError, RekindleError), open_index(path, waits=False) as index:
        index.update(reader.list_sources(), reader.read, of=agent)


def _list_agents(project: Project, store: FileStore) -> list[str]:
    return [name for name in project.manifest.agents if store.exists(name)]


class _SourceReader:
    """Reads what is to be indexed."""

    def __init__(self, store: FileStore, agents: Sequence[str]) -> None:
        self._store, self._agents = store, agents
        self._transcripts: dict[tuple[str, str], ArchivedTranscript] = {}
        self.damaged: list[str] = []

    def list_sources(self) -> Iterator[IndexSource]:
        for agent in self._agents:
            for transcript in self._open_archive(agent).all():
                self._transcripts[agent, transcript.name] = transcript
                rest = msgspec.json.encode(transcript.rest)
                yield IndexSource(
                    agent=agent,
                    name=transcript.name,
                    session=transcript.session,
                    thread=transcript.thread,
                    end=transcript.size,
                    stamp=f"{transcript.size} {hash_bytes(rest)}",
                )
            yield from self._list_relays(agent)

    def read(self, source: IndexSource, start: int) -> Iterator[tuple[SearchEntry, bool]]:
        """Yield the entries of a source after a position, and whether each may still change."""
        if source.name == _RELAYS:
            yield from ((entry, False) for entry in self._read_relays(source.agent, start))
            return
        transcript = self._transcripts[source.agent, source.name]
        first_open = transcript.rest[0].number if transcript.rest else None
        try:
            for turn in self._open_archive(source.agent).turns(transcript, start):
                may_change = first_open is not None and turn.number >= first_open
                yield make_turn_entry(turn), may_change
        except StoreError as error:
            self.damaged.append(f"{source.agent}: {error}")  # its other turns can be found

    def _open_archive(self, agent: str) -> TranscriptArchive:
        return TranscriptArchive(self._store.folder(agent).transcripts)

    def _list_relays(self, agent: str) -> Iterator[IndexSource]:
        try:
            relay = self._store.read(agent).committed.documents.get("relay")
        except RekindleError as error:
            self.damaged.append(f"{agent}: {error}")
            return
        if relay is not None:
            yield IndexSource(agent=agent, name=_RELAYS, end=relay.seq, stamp=str(relay.seq))

    def _read_relays(self, agent: str, start: int) -> Iterator[SearchEntry]:
        """Yield the relays after an event, and the decisions that are new in each."""
        newer: list[RelayCommitted] = []
        known: set[str] = set()
        for event in self._store.newest_events(agent):
            if isinstance(event, RelayCommitted):
                if event.seq <= start:
                    known.update(_list_decisions(self._read(agent, event)))
                    break
                newer.append(event)
        for event in reversed(newer):
            data = self._read(agent, event)
            at = normalize_time(event.ts.isoformat())
            text = data.decode("utf-8", "replace")
            yield SearchEntry(kind="relay", number=event.seq, at=at, who=event.by, text=text)
            for decision in _list_decisions(data):
                if decision not in known:
                    yield SearchEntry(
                        kind="decision", number=event.seq, at=at, who=event.by, text=decision
                    )
                    known.add(decision)

    def _read(self, agent: str, event: RelayCommitted) -> bytes:
        return self._store.committed_relay(agent, event) or b""


def _list_decisions(data: bytes) -> list[str]:
    try:
        return [decision.text for decision in read_decisions(relays.parse(data))]
    except DocumentError:
        return []
