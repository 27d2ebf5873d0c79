"""YAML as plain data that knows the line of every key."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import ManifestError
from rekindle.formats.yaml_lines import parse, quote_scalar, quote_value
from rekindle.thresholds.storage import (
    MANIFEST_CHARACTERS,
    MANIFEST_DEPTH,
    MANIFEST_NUMBER_CHARACTERS,
)


def test_data_and_lines():
    marked = parse("a: 1\nb:\n  - x\n  - c: 'y'\n    d: 2.5\ne: ~\nf: 2026-04-09\ng: true\n", "x")
    assert marked.data == {
        "a": 1,
        "b": ["x", {"c": "y", "d": 2.5}],
        "e": None,
        "f": date(2026, 4, 9),
        "g": True,
    }
    assert marked.lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", 0): 3,
        ("b", 1): 4,
        ("b", 1, "c"): 4,
        ("b", 1, "d"): 5,
        ("e",): 6,
        ("f",): 7,
        ("g",): 8,
    }
    assert [marked.line(path) for path in [("b", 1, "zz", "y"), ("zz",), ()]] == [4, None, None]
    assert parse("", "x").data is None


def test_quoted_scalars_are_text():
    assert parse("a: '1'\nb: \"true\"\nc: ! 3", "x").data["a"] == "1"
    assert parse("a: '1'\nb: \"true\"", "x").data["b"] == "true"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb: &x 2\nc: *x", "aliases are not supported", 3),
        ("a: !!python/none x", "tags are not supported", 1),
        ("a: 1\na: 2", "the key 'a' is repeated", 2),
        ("? [a]\n: 1", "a key must be plain text", 1),
        ("a: 1\n---\nb: 2", "more than one document", 3),
        ("a: 1\nb: [1, }", "", 2),
        ("a: 2026-99-99", "is not a valid value: 2026-99-99", 1),
        ("x: " + "9" * (MANIFEST_NUMBER_CHARACTERS + 1), "the number is too long", 1),
        ("[" * (MANIFEST_DEPTH + 1) + "]" * (MANIFEST_DEPTH + 1), "nested too deeply", 1),
        ("a" * (MANIFEST_CHARACTERS + 1), "is larger than", None),
        ("a: \x00", "is not YAML", None),
    ],
)
def test_a_text_that_is_refused(text, message, line):
    with pytest.raises(ManifestError) as caught:
        parse(text, "x.yaml")
    assert message in str(caught.value)
    assert caught.value.line == line
    assert caught.value.file == "x.yaml"


def test_a_text_at_the_limits():
    digits = "9" * MANIFEST_NUMBER_CHARACTERS
    assert parse(f"x: {digits}", "x").data["x"] == int(digits)
    assert parse("[" * MANIFEST_DEPTH + "]" * MANIFEST_DEPTH, "x").data is not None
    assert parse("a" * MANIFEST_CHARACTERS, "x").data == "a" * MANIFEST_CHARACTERS


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("a/b.c-d", "a/b.c-d"),
        ("true", '"true"'),
        ("no", '"no"'),
        ("12", '"12"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("é", '"é"'),
        ("x" * 200 + " y", '"' + "x" * 200 + ' y"'),
    ],
)
def test_a_text_reads_back(text, written):
    assert quote_scalar(text) == written
    assert parse(f"a: {quote_scalar(text)}", "x").data["a"] == text


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    TEXTS | st.integers(-(10**9), 10**9) | st.booleans() | st.none() | st.floats(0, 1e18),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_is_rendered_in_one_line_and_reads_back(value):
    written = quote_value(value)
    assert len(written.splitlines()) == 1
    assert parse(f"a: {written}\n", "x").data == {"a": value}
