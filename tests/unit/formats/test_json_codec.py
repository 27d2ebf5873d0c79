"""JSON at the border: hostile bytes in, plain lines out."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.errors import DocumentError, NewerSchemaError
from rekindle.formats import json_codec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON)
def test_what_is_written_reads_back(value):
    """Compact or pretty, it is the same data; compact, it is one line."""
    compact = json_codec.encode(value, "x")
    pretty = json_codec.encode_pretty(value, "x")
    assert json_codec.decode(compact, "x") == json_codec.decode(pretty, "x") == value
    assert json.loads(compact) == value
    assert b"\n" not in compact
    assert pretty.endswith(b"\n")


@given(JSON)
def test_order_can_be_left_to_the_keys(value):
    """Sorted, two equal objects are the same bytes whatever order they were made in."""
    turned = dict(reversed(value.items())) if isinstance(value, dict) else value
    assert json_codec.encode(value, "x", order="sorted") == json_codec.encode(
        turned, "x", order="sorted"
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"{}{}",
        b"{'a': 1}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1e400}',
        b'{"a": ' + b"1" * 5_000 + b"}",
        b'"\\ud800"',
        b'"\xff"',
        b'"\x00"',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_not_json_is_refused(data):
    """Every way in which a decoder can fail ends in one error that names the document."""
    with pytest.raises(DocumentError, match="thing: is not valid JSON"):
        json_codec.decode(data, "thing")


@given(st.binary(max_size=80))
def test_any_bytes_are_json_or_refused(data):
    """Nothing else comes out."""
    try:
        value = json_codec.decode(data, "thing")
    except DocumentError:
        return
    assert json_codec.decode(json_codec.encode(value, "thing"), "thing") == value


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, {1: object()}, nested(100_000)])
def test_what_json_cannot_hold_is_refused(value):
    """Surrogates, objects and endless nesting, compact or pretty."""
    for write in (json_codec.encode, json_codec.encode_pretty):
        with pytest.raises(DocumentError, match="thing: cannot be written as JSON"):
            write(value, "thing")


@pytest.mark.parametrize("data", [b"[]", b"1", b'"a"', b"null", b"true"])
def test_only_an_object_is_an_object(data):
    """Other JSON is refused by name."""
    with pytest.raises(DocumentError, match="thing: is not a JSON object"):
        json_codec.decode_object(data, "thing", schema=1)


@pytest.mark.parametrize("version", ["0", "1", "2", "-5"])
def test_an_object_of_our_schema_or_an_older_one_is_read(version):
    """The same holds for one without a schema, or with a schema that is not a number."""
    data = b'{"v": %s}' % version.encode()
    assert json_codec.decode_object(data, "thing", schema=2) == json.loads(data)
    assert json_codec.decode_object(b"{}", "thing", schema=2) == {}


@pytest.mark.parametrize("version", [3, 10**100])
def test_a_newer_object_is_refused_by_its_versions(version):
    """The error carries both."""
    with pytest.raises(
        NewerSchemaError, match=f"thing: has schema {version}, .* up to 2"
    ) as refused:
        json_codec.decode_object(b'{"v": %d}' % version, "thing", schema=2)
    assert (refused.value.found, refused.value.known) == (version, 2)


def test_of_two_equal_keys_the_last_counts():
    """Every common reader does so."""
    assert json_codec.decode(b'{"a": 1, "a": 2}', "thing") == {"a": 2}


def test_a_fingerprint_is_the_sha256_of_the_bytes():
    """Anybody can check it with sha256sum."""
    assert json_codec.hash_bytes(b"a") == hashlib.sha256(b"a").hexdigest()


@pytest.mark.parametrize("version", ["true", "null", '"9"', "1.5", "[]"])
def test_a_version_that_cannot_be_read_is_refused(version):
    """A schema that is not a number is not taken for ours."""
    with pytest.raises(DocumentError, match="not a number"):
        json_codec.decode_object(b'{"v": %s}' % version.encode(), "thing", schema=2)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"a\ud83d"', "a\ufffd"),
        (rb'"\ude00b"', "\ufffdb"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\\ud83d"', r"\ud83d"),
        (rb'"\\\ud83d\n"', "\\\ufffd\n"),
        (b'"a\xffb"', "a\ufffdb"),
    ],
)
def test_the_json_of_other_programs_is_read_with_half_characters_replaced(data, value):
    """JavaScript cuts a string between the halves of a character."""
    assert json_codec.decode_foreign(data, "thing") == value


def test_foreign_text_that_is_not_json_is_refused():
    """As any other."""
    with pytest.raises(DocumentError, match="thing: is not valid JSON"):
        json_codec.decode_foreign(b"{", "thing")


def test_a_key_that_is_given_twice_is_refused():
    """At any depth, by its name; a mark of the byte order is not part of the text."""
    json_codec.refuse_repeated_keys(b'\xef\xbb\xbf{"a": {"b": 1}, "b": [{"b": 1}, {"b": 2}]}', "x")
    for data in (b'{"a": 1, "b": 2, "b": 3}', b'{"a": [{"b": 1, "a": 0, "b": 1}]}'):
        with pytest.raises(DocumentError, match="thing: has the key 'b' twice"):
            json_codec.refuse_repeated_keys(data, "thing")
    long = b"k" * 5_000
    with pytest.raises(DocumentError) as refused:
        json_codec.refuse_repeated_keys(b'{"%s": 1, "%s": 2}' % (long, long), "thing")
    assert len(str(refused.value)) < 1_000


def test_pretty_json_is_indented_by_two_spaces():
    """With an end of line."""
    assert json_codec.encode_pretty({"a": [1]}, "x") == b'{\n  "a": [\n    1\n  ]\n}\n'
