"""The index has each entry once, whatever happens between two updates."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime

import pytest

from rekindle.documents.search.search_types import IndexSource, SearchEntry, SearchQuery
from rekindle.errors import StoreError
from rekindle.stores.search import search_index
from rekindle.stores.search.search_index import DamagedIndexError, open_index, remove_index


class Sources:
    """Sources whose entries are numbered from 1. The last `open_ones` may still change."""

    def __init__(self):
        self.texts: dict[tuple[str, str], list[str]] = {}
        self.open_ones: dict[tuple[str, str], int] = {}
        self.read_from: list[tuple[str, int]] = []

    def list(self):
        for (agent, name), texts in self.texts.items():
            end = len(texts) - self.open_ones.get((agent, name), 0)
            yield IndexSource(
                agent=agent, name=name, session=name, end=end, stamp=f"{end} {texts[end:]}"
            )

    def read(self, source, start):
        self.read_from.append((source.name, start))
        for number, text in enumerate(self.texts[source.agent, source.name][start:], start + 1):
            at = f"2026-01-{number:02}T00:00:00+00:00"
            entry = SearchEntry(kind="turn", number=number, at=at, who="agent", text=text)
            yield entry, number > source.end


@pytest.fixture
def sources():
    return Sources()


@pytest.fixture
def find(tmp_path, sources):
    def find(words, **more):
        with open_index(tmp_path / "search.db") as index:
            index.update(sources.list(), sources.read)
            hits = index.find(SearchQuery(match=words, most=more.pop("most", 100), **more))
        return [(hit.agent, hit.session, hit.number, hit.excerpt) for hit in hits]

    return find


def test_new_entries_are_read_and_nothing_else(find, sources):
    sources.texts["trades", "s1"] = ["one apple", "two apples"]
    assert find("apple") == [("trades", "s1", 1, "one apple")]
    sources.texts["trades", "s1"] += ["another apple"]
    sources.texts["docs", "s2"] = ["no pear"]
    assert find("apple") == [("trades", "s1", 3, "another apple"), ("trades", "s1", 1, "one apple")]
    assert find("pear") == [("docs", "s2", 1, "no pear")]
    assert sources.read_from == [("s1", 0), ("s1", 2), ("s2", 0)]


def test_an_entry_that_may_change_is_replaced(find, sources):
    sources.texts["trades", "s1"] = ["done", "half an ans"]
    sources.open_ones["trades", "s1"] = 1
    assert len(find("ans")) == 1
    sources.texts["trades", "s1"][1:] = ["half an answer", "and more"]
    assert find("ans") == []
    assert find("answer") == [("trades", "s1", 2, "half an answer")]
    sources.open_ones.clear()
    assert [hit[2] for hit in find("answer OR more OR done")] == [3, 2, 1]


def test_an_open_entry_of_one_source_does_not_remove_another_s(find, sources):
    sources.texts["trades", "s1"] = ["old"]
    sources.open_ones["trades", "s1"] = 1
    find("old")
    sources.texts["docs", "s2"] = ["other"]
    find("other")
    sources.texts["trades", "s1"] = ["new"]
    assert find("new OR other OR old") == [("trades", "s1", 1, "new"), ("docs", "s2", 1, "other")]


def test_a_source_that_was_replaced_is_read_again(find, sources):
    sources.texts["trades", "s1"] = ["apple", "pear"]
    find("apple")
    sources.texts["trades", "s1"] = ["plum"]
    assert find("apple OR pear OR plum") == [("trades", "s1", 1, "plum")]


def test_the_entries_of_a_removed_source_are_removed(find, sources):
    sources.texts["trades", "s1"] = ["apple"]
    sources.texts["docs", "s2"] = ["apple"]
    find("apple")
    del sources.texts["trades", "s1"]
    assert [hit[0] for hit in find("apple")] == ["docs"]


def test_an_update_of_one_agent_keeps_the_others(tmp_path, sources):
    sources.texts.update({("trades", "s1"): ["apple"], ("docs", "s2"): ["apple"]})
    with open_index(tmp_path / "search.db") as index:
        index.update(sources.list(), sources.read)
        del sources.texts["trades", "s1"]
        index.update(sources.list(), sources.read, of="docs")
        assert len(index.find(SearchQuery(match="apple", most=9))) == 2


def test_agents_time_and_number_limit_the_hits(find, sources):
    sources.texts["trades", "s1"] = ["apple", "apple", "apple"]
    sources.texts["docs", "s2"] = ["apple"]
    assert [hit[0] for hit in find("apple", agents=["docs"])] == ["docs"]
    since = datetime(2026, 1, 2, tzinfo=UTC)
    assert [hit[2] for hit in find("apple", since=since)] == [3, 2]
    assert [hit[2] for hit in find("apple", most=1)] == [3]


def test_an_interrupted_update_counts_for_nothing(find, sources, monkeypatch):
    sources.texts["trades", "s1"] = ["apple"]
    find("apple")
    sources.texts["trades", "s1"] += ["apple"] * 5
    read = sources.read

    def interrupted(source, start):
        entries = read(source, start)
        yield next(entries)
        raise KeyboardInterrupt

    monkeypatch.setattr(sources, "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        find("apple")
    monkeypatch.undo()
    assert [hit[2] for hit in find("apple")] == [6, 5, 4, 3, 2, 1]


def cut(path):
    path.write_bytes(path.read_bytes()[:5000])


def overwrite(path):
    path.write_bytes(b"not a database" * 1000)


def blank(path):
    data = path.read_bytes()
    path.write_bytes(data[:4096] + bytes(len(data) - 4096))


def drop_table(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TABLE entries")


def use_newer_version(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("damage", [cut, overwrite, blank, drop_table, use_newer_version])
def test_a_damaged_index_is_noticed_and_built_again(tmp_path, find, sources, damage):
    path = tmp_path / "search.db"
    sources.texts["trades", "s1"] = [f"apple {number}" for number in range(200)]
    before = find("apple")
    assert len(before) == 100
    damage(path)
    with pytest.raises(DamagedIndexError):
        find("apple")
    remove_index(path)
    assert find("apple") == before


def test_an_index_that_another_process_holds_is_not_damaged(tmp_path, find, sources, monkeypatch):
    monkeypatch.setattr(search_index, "SEARCH_WAIT_SECONDS", 0)
    find("apple")
    sources.texts["trades", "s1"] = ["apple"]
    with closing(sqlite3.connect(tmp_path / "search.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as raised:
            find("apple")
        assert "another process" in raised.value.hint
    assert len(find("apple")) == 1


def test_a_folder_that_cannot_be_used_is_named(tmp_path):
    with pytest.raises(StoreError) as raised, open_index(tmp_path / "missing" / "search.db"):
        pass
    assert "missing" in str(raised.value)
