"""Words become an expression in which no character has a meaning of its own."""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.policy.search.search_query import render_match

TEXTS = {
    1: ("please send POST /profile twice", "Edit src/app/api.py"),
    2: ("the profile of the post office", "Bash pytest tests/api.py"),
    3: ("profiles and posts", "Edit docs/api.md"),
}


@pytest.fixture(scope="module")
def index():
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE VIRTUAL TABLE entries USING fts5(text, calls)")
    for row, (text, calls) in TEXTS.items():
        connection.execute(
            "INSERT INTO entries(rowid, text, calls) VALUES (?, ?, ?)", (row, text, calls)
        )
    yield connection
    connection.close()


def find(index, *words, file=""):
    query = "SELECT rowid FROM entries WHERE entries MATCH ? ORDER BY rowid"
    return [row for (row,) in index.execute(query, (render_match(words, file),))]


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        (["post", "profile"], [1, 2]),
        (["POST /profile"], [1]),
        (["prof*"], [1, 2, 3]),
        (["profile", "NOT", "post"], []),
        (['"post"'], [1, 2]),
        (["->", "twice"], [1]),
        (["pytest"], [2]),
    ],
)
def test_all_words_must_be_in_the_text_or_in_the_calls(index, words, rows):
    assert find(index, *words) == rows


@pytest.mark.parametrize(
    ("file", "rows"),
    [("api.py", [1, 2]), ("src/app/api.py", [1]), ("app/api.py", [1]), ("profile", [])],
)
def test_a_file_must_be_in_the_calls(index, file, rows):
    assert find(index, file=file) == rows


def test_words_and_a_file_are_both_required(index):
    assert find(index, "office", file="api.py") == [2]


@pytest.mark.parametrize("words", [[], [""], ["->", "*", '"']])
def test_nothing_to_search_for(words):
    assert render_match(words) == ""


@given(st.lists(st.text(st.characters())), st.text(st.characters()))
def test_every_text_gives_a_valid_expression(words, file):
    match = render_match([*words, "a"], file)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE entries USING fts5(text, calls)")
        found = connection.execute("SELECT count(*) FROM entries WHERE entries MATCH ?", (match,))
        assert found.fetchone() == (0,)
