"""The search index: an SQLite file that can be rebuilt from the archive at any time.

One transaction adds the new entries of a source and records how far it was read, so a killed
process neither loses nor repeats an entry. The last entries of a source may still change, and are
replaced the next time.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

from rekindle.documents.search.search_types import (
    IndexSource,
    SearchEntry,
    SearchHit,
    SearchQuery,
)
from rekindle.errors import StoreError
from rekindle.system.files import durable_files
from rekindle.thresholds.storage import SEARCH_WAIT_SECONDS
from rekindle.thresholds.texts import EXCERPT_WORDS

_INDEX_SCHEMA = 1
_TABLES = f"""
CREATE TABLE sources(
    id INTEGER PRIMARY KEY, agent TEXT, name TEXT, session TEXT, thread TEXT,
    end INTEGER, stamp TEXT, first_open INTEGER, UNIQUE(agent, name));
CREATE VIRTUAL TABLE entries USING fts5(
    text, calls, source UNINDEXED, kind UNINDEXED, number UNINDEXED, at UNINDEXED, who UNINDEXED);
PRAGMA user_version = {_INDEX_SCHEMA};
"""
_FIND = """
SELECT entries.rowid FROM entries JOIN sources ON sources.id = entries.source
WHERE entries MATCH ? AND at >= ? AND (? OR agent IN (SELECT value FROM json_each(?)))
ORDER BY at DESC, entries.rowid DESC LIMIT ?
"""
_EXCERPT = """
SELECT agent, kind, at, session, thread, number, who, snippet(entries, -1, '', '', '…', ?)
FROM entries JOIN sources ON sources.id = entries.source
WHERE entries MATCH ? AND entries.rowid = ?
"""
_LASTING = {
    sqlite3.SQLITE_BUSY: "another process is updating the index: repeat the command in a moment",
    sqlite3.SQLITE_LOCKED: "another process is updating the index: repeat the command in a moment",
    sqlite3.SQLITE_FULL: "the disk is full: free some space and repeat the command",
    sqlite3.SQLITE_IOERR: "the disk reported an error: check it (dmesg, smartctl)",
    sqlite3.SQLITE_CANTOPEN: "give your user access to the file and to its folder",
    sqlite3.SQLITE_READONLY: "give your user access to the file and to its folder",
    sqlite3.SQLITE_PERM: "give your user access to the file and to its folder",
}
"""Errors that a new index would have as well, with a hint for each."""


class DamagedIndexError(Exception):
    """Raised when the index is damaged and must be rebuilt."""


class _KnownSource(NamedTuple):
    id: int
    end: int
    stamp: str
    first_open: int
    """Row of the first entry that may still change."""


class SearchIndex:
    """An open index."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def update(
        self,
        sources: Iterable[IndexSource],
        read: Callable[[IndexSource, int], Iterator[tuple[SearchEntry, bool]]],
        of: str = "",
    ) -> None:
        """Add new entries, and remove the entries of sources that no longer exist.

        `read` yields the entries of a source after a position, each with whether it may still
        change. `of` is the only agent that the sources belong to, or "" for all agents.
        """
        seen = set()
        for source in sources:
            seen.add((source.agent, source.name))
            known = self._find_source(source)
            if known is None or known.stamp != source.stamp:
                with self._transact():
                    # Another process may have done this in the meantime.
                    self._add(source, self._find_source(source), read)
        for number, *name in self._ask("SELECT id, agent, name FROM sources"):
            if tuple(name) not in seen and of in {"", name[0]}:
                with self._transact():
                    self._forget(number)

    def find(self, query: SearchQuery) -> list[SearchHit]:
        """Return the newest hits first."""
        import json  # noqa: PLC0415 - only here

        since = query.since.isoformat() if query.since else ""
        agents = json.dumps(list(query.agents))
        words = (query.match, since, not query.agents, agents, query.most)
        rows = self._ask(_FIND, *words)
        return [
            SearchHit(**dict(zip(SearchHit.__struct_fields__, hit, strict=True)))
            for (row,) in rows
            for hit in self._ask(_EXCERPT, EXCERPT_WORDS, query.match, row)
        ]

    def has_entries(self) -> bool:
        return bool(self._ask("SELECT 1 FROM sources LIMIT 1"))

    def _find_source(self, source: IndexSource) -> _KnownSource | None:
        query = "SELECT id, end, stamp, first_open FROM sources WHERE agent = ? AND name = ?"
        rows = self._ask(query, source.agent, source.name)
        return _KnownSource(*rows[0]) if rows else None

    def _add(
        self,
        source: IndexSource,
        known: _KnownSource | None,
        read: Callable[[IndexSource, int], Iterator[tuple[SearchEntry, bool]]],
    ) -> None:
        if known is not None and known.end > source.end:
            self._forget(known.id)  # the source was replaced
            known = None
        rows = count(self._ask("SELECT coalesce(max(rowid), 0) FROM entries")[0][0] + 1)
        if known is None:
            (number,) = self._ask("SELECT coalesce(max(id), 0) + 1 FROM sources")[0]
            start = 0
        else:
            number, start = known.id, known.end
            self._connection.execute(
                "DELETE FROM entries WHERE rowid >= ? AND source = ?", (known.first_open, number)
            )
        first_open = 0

        def make_rows() -> Iterator[tuple[object, ...]]:
            nonlocal first_open
            for row, (entry, may_change) in zip(rows, read(source, start), strict=False):
                first_open = first_open or (row if may_change else 0)
                values = (entry.text, entry.calls, number, entry.kind, entry.number, entry.at)
                yield (row, *values, entry.who)

        self._connection.executemany(
            "INSERT INTO entries(rowid, text, calls, source, kind, number, at, who)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            make_rows(),
        )
        values = (number, source.agent, source.name, source.session, source.thread, source.end)
        self._connection.execute(
            "INSERT OR REPLACE INTO sources VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, source.stamp, first_open or next(rows)),
        )

    def _forget(self, number: int) -> None:
        self._connection.execute("DELETE FROM entries WHERE source = ?", (number,))
        self._connection.execute("DELETE FROM sources WHERE id = ?", (number,))

    def _ask(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transact(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")


@contextmanager
def open_index(path: Path, *, waits: bool = True) -> Iterator[SearchIndex]:
    """Open the index, and create it if it is missing.

    If another process is updating it, wait for that process unless `waits` is False.

    Raises:
        DamagedIndexError: The index must be removed and rebuilt.
        StoreError: Another process holds it, or the disk reports an error.
    """
    connection = None
    try:
        timeout = SEARCH_WAIT_SECONDS if waits else 0
        connection = sqlite3.connect(path, timeout=timeout, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        _ensure_schema(connection)
        yield SearchIndex(connection)
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _LASTING:
            raise StoreError(str(path), str(error), hint=_LASTING[code]) from error
        raise DamagedIndexError(str(error)) from error
    finally:
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _ensure_schema(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == _INDEX_SCHEMA:
        return
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for statement in _TABLES.strip().split(";\n"):
            connection.execute(statement)
    connection.execute("COMMIT")
    if version not in {0, _INDEX_SCHEMA}:
        raise DamagedIndexError(f"version {version}")


def remove_index(path: Path) -> None:
    """Remove the index and SQLite's files beside it."""
    for ending in ("-wal", "-shm", ""):
        durable_files.remove_file(path.with_name(path.name + ending))
