"""Compare the index of `rekindle search` with bare inserts of the same text into SQLite."""

import random
import sqlite3
import time

import pytest

from rekindle import config
from rekindle.documents.search.search_types import SearchQuery, make_turn_entry
from rekindle.documents.transcripts.turns import ToolCall, Turn
from rekindle.policy.search.search_query import render_match
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.stores.folders.private_files import find_private_project
from rekindle.wiring.access.trust_checks import accept_folder
from rekindle.wiring.open_store import open_store
from rekindle.wiring.search_setup import search
from sampling import WHOLE

pytestmark = [pytest.mark.bench, pytest.mark.torture, pytest.mark.timeout(3600)]

MEGABYTES = 1_000 if WHOLE else 50
SESSIONS = 20
TRIES, BAR = 3, 0.5
"""Share of the speed of bare inserts. The target is 0.7."""
WORDS = 20_000
QUERIES = {
    "frequent": ["w1"],
    "two words": ["w1", "w2"],
    "rare": [f"w{WORDS - 1}"],
    "none": ["zzz"],
}


def make_turns(rng, size):
    """Yield turns of an agent that edits files and runs tests, with words as in real texts."""
    number = 0
    while size > 0:
        number += 1
        # A few words are in most texts, and most words in few texts.
        words = [f"w{int(WORDS ** rng.random())}" for _ in range(300)]
        text, shown = " ".join(words[:100]), "\n".join(words[100:])
        at = f"2026-01-{rng.randrange(1, 29):02}T{rng.randrange(24):02}:00:00.000+00:00"
        call = ToolCall("Edit", f"src/module_{rng.randrange(500)}/file.py", "ok", shown)
        yield Turn(number=number, who="agent", at=at, text=text, calls=(call,))
        size -= len(text) + len(shown)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "rekindle.yaml").write_text(
        "version: 1\nagents: {trades: {harness: claude-code}}\n"
    )
    accept_folder(tmp_path)
    project = config.load_project(tmp_path)
    store, rng = open_store(project), random.Random(7)
    store.create("trades")
    archive = TranscriptArchive(store.folder("trades").transcripts)
    for session in range(SESSIONS):
        note = ArchivedTranscript(session=f"session-{session}", harness="claude-code")
        turns = make_turns(rng, MEGABYTES * 1_000_000 // SESSIONS)
        archive.add(note, turns, lambda note: note)
    return project, store, archive


def insert_bare(path, archive):
    """Insert the same text in the same transactions, and return the time of the inserts alone."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE VIRTUAL TABLE entries USING fts5(text, calls)")
    seconds = 0.0
    for transcript in archive.all():
        entries = [make_turn_entry(turn) for turn in archive.turns(transcript)]
        began = time.perf_counter()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(
            "INSERT INTO entries VALUES (?, ?)", ((entry.text, entry.calls) for entry in entries)
        )
        connection.execute("COMMIT")
        seconds += time.perf_counter() - began
    connection.close()
    return seconds


def ask(project, store, words):
    began = time.perf_counter()
    result = search(project, store, SearchQuery(match=render_match(words), most=20))
    return result.hits, time.perf_counter() - began


def test_the_index_is_built_nearly_as_fast_as_bare_inserts(project, tmp_path):
    project, store, archive = project
    index, shares = find_private_project(project.path).search, []
    for round_number in range(TRIES):
        bare = insert_bare(tmp_path / f"bare-{round_number}.db", archive)
        index.unlink(missing_ok=True)
        hits, built = ask(project, store, ["w1"])
        assert len(hits) == 20
        shares.append(bare / built)
        if shares[-1] >= BAR:
            break
    times = {}
    for name, words in QUERIES.items():
        hits, times[name] = ask(project, store, words)
        assert bool(hits) == (name != "none")
    told = ", ".join(f"{name} {seconds * 1e3:.0f} ms" for name, seconds in times.items())
    size = index.stat().st_size / 1e6
    print(
        f"\n{MEGABYTES} MB of text: indexed in {built:.1f} s, {shares[-1]:.2f} of the speed of"
        f" bare inserts; index {size:.0f} MB; queries: {told}"
    )
    assert shares[-1] >= BAR
