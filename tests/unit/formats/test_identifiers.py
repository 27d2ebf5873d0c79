"""Names, ids and single lines: what may become a path or a line of output."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rekindle.errors import UsageError
from rekindle.formats.identifiers import (
    make_slug,
    require_agent_name,
    require_loop_id,
    to_one_line,
)
from rekindle.thresholds.texts import LINE_LIMIT


@pytest.mark.parametrize("name", ["a", "0", "trades", "my-agent_2", "a" * 63, "on", "null", "1e5"])
def test_a_harmless_name_is_an_agents_name(name):
    """Letters, digits, dashes and underscores."""
    assert require_agent_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "-a", "_a", "A", "a b", "a/b", "a\\b", "a.b", "a\n", "a\0", "é", "a" * 64),
        *("../a", "~", "a:b", "٣", "\ud800", "a\r", "$HOME", "`a`"),
    ],
)
def test_any_other_name_is_refused(name):
    """A name becomes a folder: it can never leave its place."""
    with pytest.raises(UsageError, match="is not a valid agent name") as refused:
        require_agent_name(name)
    assert "a-z" in refused.value.hint


@pytest.mark.parametrize("text", ["a", "A.b_c-9", "9" * 64])
def test_a_stable_id_is_a_loops_id(text):
    """Other tools use dots and capitals, which are accepted."""
    assert require_loop_id(text) == text


@pytest.mark.parametrize("text", ["", ".a", "-a", "a b", "a/b", "a\n", "a" * 65, "é", "\ud800"])
def test_any_other_id_is_refused_with_one_that_is_not(text):
    """The hint shows an id made from the same words."""
    with pytest.raises(UsageError, match="is not a valid loop id") as refused:
        require_loop_id(text)
    assert f"`{make_slug(text)}`" in refused.value.hint


@given(st.text(st.characters()))
@example("\ud800")
@example("-" * 100 + "a" * 47 + " b")
def test_a_slug_is_an_id_and_stays_one(text):
    """Whatever the words, the id is valid, stable and its own slug."""
    made = make_slug(text)
    assert require_loop_id(made) == made
    assert len(made) <= 48
    assert make_slug(made) == made


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("Schwab OAuth: not set up!", "schwab-oauth-not-set-up"),
        ("Éclair  №5", "eclair-no5"),
        ("下一步", "loop"),
        ("", "loop"),
        ("_", "loop"),
    ],
)
def test_a_slug_is_made_of_the_words(text, made):
    """Accents go, punctuation parts words, and nothing left is a loop."""
    assert make_slug(text) == made


@given(st.text(st.characters()), st.integers(1, 60))
@example("\ud800\x00\x1b[2K\u2028\u2029\x85\r\n\t", 60)
def test_a_line_is_one_line_within_its_limit(text, limit):
    """It can be printed, written as UTF-8 and made one line again without a change."""
    line = to_one_line(text, limit)
    assert len(line) <= limit
    assert line.splitlines() in ([line], [])
    assert line == line.strip()
    assert line.encode().decode() == line
    assert not any(unicodedata.category(character) in {"Cc", "Zl", "Zp"} for character in line)
    assert to_one_line(line, limit) == line


def test_a_line_that_is_cut_says_so():
    """An ellipsis marks the missing rest."""
    assert to_one_line("a  b\nc") == "a b c"
    assert to_one_line("abc def", 5) == "abc…"
    assert to_one_line("abcdef", 6) == "abcdef"
    assert len(to_one_line("x" * 9_999)) == LINE_LIMIT
