"""Lists of items: which can be used, and how their workers are named."""

import hashlib
import json
import re

import pytest

from rekindle.policy.pipelines.matrix_items import find_field, make_key, read_items
from rekindle.thresholds.pipeline_limits import MATRIX_BYTES, MATRIX_ITEMS, WORKER_KEY_CHARACTERS


def read(value, key=None):
    return read_items(json.dumps(value).encode(), key)


def test_items_are_numbered_without_a_key():
    data = b'["one", 2, 2.5, {"id": "x"}]'
    listed = read_items(data, None)
    assert listed.items == (("1", "one"), ("2", 2), ("3", 2.5), ("4", {"id": "x"}))
    assert listed.keys == ("1", "2", "3", "4")
    assert listed.sha == hashlib.sha256(data).hexdigest()
    assert listed.why == ""


def test_a_field_names_the_workers():
    listed = read([{"id": "Fix_The Bug"}, {"id": 7}, {"id": "Café"}], "id")
    assert listed.keys == ("fix-the-bug", "7", "cafe")
    assert listed.find_item("7") == {"id": 7}
    assert listed.find_item("8") is None


def test_a_field_inside_a_field_names_the_workers():
    assert read([{"task": {"id": "a"}}, {"task": {"id": "b"}}], "task.id").keys == ("a", "b")


def test_a_list_without_items_has_no_workers():
    assert read([]).items == ()
    assert read([], "id").items == ()
    assert read([], "id").why == ""


def test_a_byte_order_mark_is_ignored():
    assert read_items(b'\xef\xbb\xbf["a"]', None).items == (("1", "a"),)


def test_a_long_key_is_cut_without_a_hyphen_at_its_end():
    key = make_key("a" * (WORKER_KEY_CHARACTERS - 1) + " b")
    assert key == "a" * (WORKER_KEY_CHARACTERS - 1)


@pytest.mark.parametrize("text", ["_inputs", "_merge", "a_b", "__"])
def test_no_key_has_an_underscore(text):
    assert "_" not in make_key(text)


def test_the_most_items_that_are_allowed():
    assert len(read(["x"] * MATRIX_ITEMS).items) == MATRIX_ITEMS
    listed = read(["x"] * (MATRIX_ITEMS + 1))
    assert listed.items == ()
    assert f"{MATRIX_ITEMS + 1} items" in listed.why


def test_a_list_that_is_too_large_is_not_parsed():
    listed = read_items(b" " * MATRIX_BYTES + b"]", None)
    assert f"{MATRIX_BYTES + 1:,} bytes" in listed.why


@pytest.mark.parametrize(
    ("data", "key", "why"),
    [
        (b"", None, "the list of items is not valid JSON"),
        (b"[1,", None, "the list of items is not valid JSON"),
        (b"[" * 100_000, None, "the list of items is not valid JSON"),
        (b'{"items": []}', None, "the list of items is not a JSON list"),
        (b'["a", null]', None, "item 2 is null"),
        (b"[true]", None, "item 1 is true or false"),
        (b"[[]]", None, "item 1 is a list"),
        (b'["a"]', "id", "item 1 has no field 'id'"),
        (b'[{"id": 1}, {"name": 2}]', "id", "item 2 has no field 'id'"),
        (
            b'[{"id": null}]',
            "id",
            "item 1 has a value for 'id' that is neither a string nor a number",
        ),
        (b'[{"id": true}]', "id", "item 1 has a value for 'id' that is neither"),
        (b'[{"id": "a b"}, {"id": "x"}, {"id": "a b"}]', "id", "item 3 has the id 'a b'"),
        (b'[{"id": "7"}, {"id": 7}]', "id", "item 2 has the id '7', as item 1 does"),
        (b'[{"id": "!"}, {"id": "!"}]', "id", "give each item a different id"),
    ],
)
def test_a_list_that_cannot_be_used(data, key, why):
    listed = read_items(data, key)
    assert why in listed.why
    assert listed.items == ()
    assert listed.sha == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "names",
    [
        ("a_b.py", "a/b.py"),
        ("tests/__init__.py", "tests/init.py"),
        ("a" * WORKER_KEY_CHARACTERS + "/one.py", "a" * WORKER_KEY_CHARACTERS + "/two.py"),
        ("Fix it", "fix it"),
    ],
)
def test_different_names_with_the_same_letters_get_a_hash(names):
    keys = read([{"id": name} for name in (*names, "other")], "id").keys
    assert len(set(keys)) == 3
    assert keys[2] == "other"
    for name, key in zip(names, keys, strict=False):
        start, _, ending = key.rpartition("-")
        assert make_key(name).startswith(start)
        assert re.fullmatch("[0-9a-z]{6}", ending)
        assert len(key) <= WORKER_KEY_CHARACTERS
    assert read([{"id": name} for name in reversed(names)], "id").keys == keys[1::-1]


def test_a_name_without_a_letter_or_digit_is_a_hash():
    keys = read([{"id": "日"}, {"id": "本"}, {"id": ""}], "id").keys
    assert len(set(keys)) == 3
    assert all(re.fullmatch("[0-9a-z]{6}", key) for key in keys)


def test_a_hash_that_is_another_name_is_refused():
    [hashed, _] = read([{"id": "a b"}, {"id": "a-b"}], "id").keys
    assert "item 3 has the id" in read([{"id": "a b"}, {"id": "a-b"}, {"id": hashed}], "id").why


def test_a_reason_is_one_short_line():
    item = {"id": "\n\x1b[31m!" * 1000}
    why = read([item, item], "id").why
    assert "item 2" in why
    assert "\n" not in why
    assert "\x1b" not in why
    assert len(why) < 1000


def test_fields():
    assert find_field({"a": {"b": None}}, "a.b") is None
    for item, field in (({}, "a"), ("text", "a"), ({"a": "x"}, "a.b"), ([1], "0")):
        with pytest.raises(LookupError):
            find_field(item, field)
