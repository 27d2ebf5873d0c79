"""JSON edited in its place: what is measured, added and removed."""

import json
from pathlib import Path

import pytest

from rekindle.errors import DocumentError
from rekindle.formats import json_edit

TABLES = json.loads(Path(__file__).with_name("json_edit.json").read_text())
ADDED = [("new", {"k": [1, {"z": "é"}]}), ("second", [])]


def flatten(node):
    parts = [[part.start, part.end, part.key, flatten(part.value)] for part in node.parts]
    return [node.start, node.end, node.kind, parts]


def find_containers(node, depth=0):
    if node.kind != "scalar":
        yield node, depth
        for part in node.parts:
            yield from find_containers(part.value, depth + 1)


def list_removals(count):
    """Return the places to remove: each alone, all, and two of three."""
    removals = [[place] for place in range(count)]
    removals += [list(range(count))] if count > 1 else []
    return removals + ([[0, 1], [0, 2]] if count > 2 else [])


@pytest.mark.parametrize("text", TABLES["texts"])
def test_a_text_is_measured_and_edited(text):
    """In every container two members are added, then one; then members are removed."""
    bare = json_edit.blank_comments(text)
    root = json_edit.parse(bare, "x")
    style = json_edit.detect_style(bare, root)
    edits = []
    for node, depth in find_containers(root):
        values = [("" if node.kind == "array" else key, value) for key, value in ADDED]
        edits += [
            json_edit.apply_edits(
                text, [json_edit.append_members(text, style, node, values[:count], depth)]
            )
            for count in (2, 1)
        ]
        edits += [
            json_edit.apply_edits(text, json_edit.remove_members(text, node, gone))
            for gone in list_removals(len(node.parts))
        ]
    assert TABLES["texts"][text] == {
        "tree": flatten(root),
        "style": [style.indent, style.newline, style.colon, style.comma],
        "edits": edits,
    }


@pytest.mark.parametrize("text", TABLES["refused"])
def test_a_text_that_is_refused(text):
    """The message names the line."""
    with pytest.raises(DocumentError) as caught:
        json_edit.parse(text, "x")
    assert str(caught.value).partition(", ")[0] == TABLES["refused"][text]
    assert "nothing was changed" in caught.value.hint
