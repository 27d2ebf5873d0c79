"""Plain data checked against a type: durations, defaults, and mistakes with their line."""

from typing import Annotated

import msgspec
import pytest

from rekindle.errors import ManifestError
from rekindle.formats import validation, yaml_lines
from rekindle.formats.validation import (
    Duration,
    find_struct,
    join_path,
    list_fields,
    parse_duration,
    validate_data,
)


@pytest.mark.parametrize(
    ("text", "seconds", "written"),
    [
        ("10s", 10, "10s"),
        ("90s", 90, "90s"),
        ("60s", 60, "1m"),
        ("15m", 900, "15m"),
        ("1.5m", 90, "90s"),
        ("60m", 3600, "1h"),
        ("90m", 5400, "90m"),
        ("2h", 7200, "2h"),
        ("24h", 86_400, "1d"),
        ("2d", 172_800, "2d"),
        ("0s", 0, "0s"),
        ("0.5s", 0.5, "0.5s"),
        ("none", float("inf"), "none"),
    ],
)
def test_a_duration_is_read_and_written(text, seconds, written):
    assert parse_duration(text) == seconds
    assert str(parse_duration(text)) == written
    assert parse_duration(written) == seconds


@pytest.mark.parametrize("text", ["", "10", "s", "-1s", "infs", "nans", "1w", 10, None])
def test_another_text_is_not_a_duration(text):
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


class Inner(msgspec.Struct):
    wait: Duration = Duration(1)


class Outer(msgspec.Struct):
    name: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 3
    inner: Inner = msgspec.field(default_factory=Inner)
    many: dict[str, Inner] = {}
    words: list[str] | None = None
    either: Annotated[Inner | None, msgspec.Meta(description="x")] = None


def read(text, path=()):
    return validate_data(yaml_lines.parse(text, "x.yaml"), Outer, path)


def test_data_becomes_a_struct():
    text = "name: a\ncount: 5\ninner: {wait: 2m}\nmany: {k: {wait: 3s}}\nwords: [p, q]\neither: {}"
    found = read(text)
    assert (found.name, found.count, found.inner.wait, found.many["k"].wait) == ("a", 5, 120, 3)
    assert found.words == ["p", "q"]
    assert found.either == Inner()


def test_a_key_that_was_left_empty_has_its_default():
    assert read("name: a\ncount:\ninner:\nmany:\n").count == 3
    assert read("deep:\n  er: {name: b}", ("deep", "er")).name == "b"


@pytest.mark.parametrize(
    ("text", "message", "line", "hint"),
    [
        ("count: 1", "the file has no 'name'", None, "add `name: …`"),
        ("", "the file has no 'name'", None, "add `name: …`"),
        ("name: a\ncuont: 1", "unknown key 'cuont'", 2, "did you mean `count`?"),
        ("name: a\nzzzz: 1", "unknown key 'zzzz'", 2, "known here: name, count"),
        ("name: a\ninner:\n  wiat: 1s", "unknown key 'inner.wiat'", 3, "did you mean `wait`?"),
        ("name: a\ncount: 0", "count: expected a whole number of at least 1", 2, "config explain"),
        ("name: 12", "name: expected text, got a whole number", 1, "put quotes around"),
        ("name: a\nmany:\n  k:\n    wait: soon", "many.k.wait: expected a duration", 4, "explain"),
        ("name: a\nwords:\n  - p\n  - [q]", "words.1: expected", 4, "explain"),
        ("name:", "name: expected text, got nothing", 1, "explain"),
    ],
)
def test_a_mistake_is_named_with_its_line(text, message, line, hint):
    with pytest.raises(ManifestError) as caught:
        read(text)
    assert message in str(caught.value)
    assert caught.value.line == line
    assert hint in caught.value.hint


def test_the_struct_of_an_annotation():
    fields = list_fields(Outer)
    assert list(fields) == ["name", "count", "inner", "many", "words", "either"]
    assert [find_struct(kind) for kind in fields.values()] == [None, None, Inner, None, None, Inner]


def test_json_with_durations():
    data = validation.encode_json(Inner(Duration(90)))
    assert data == b'{"wait":"90s"}'
    assert validation.decode_json(data, Inner) == Inner(Duration(90))
    for convert in (
        lambda: validation.encode_custom(object()),
        lambda: validation.decode_custom(int, 1),
    ):
        with pytest.raises(NotImplementedError):
            convert()


def test_a_key_with_its_meaning_and_unit():
    meta = validation.describe_key("Text.", "seconds", ge=1)
    assert (meta.description, meta.extra_json_schema, meta.ge) == (
        "Text.",
        {"x-unit": "seconds"},
        1,
    )
    assert validation.describe_key("Text.").extra_json_schema is None


def test_a_path_in_words():
    assert join_path(("agents", "a", 0)) == "agents.a.0"
