"""The files of a call are found under any name."""

import pytest

from rekindle.harnesses.acp.named_paths import find_paths


@pytest.mark.parametrize(
    ("given", "files", "others"),
    [
        ({"filePath": "a", "newPath": "b", "toFile": "c"}, ("a", "b", "c"), ()),
        ({"path": " a\n"}, ("a",), ()),
        ({"mode": "x", "count": 3, "all": True, "none": None}, (), ("x",)),
        ({"file_text": "a", "oldString": "b", "edits": [{"old": "c"}]}, (), ()),
        ({"edits": [{"file": "a", "new": "b"}]}, ("a",), ()),
        ({"unheard_of": ["a", {"x": "b"}]}, (), ("a", "b")),
        ({"content": "+++ b/a\n"}, (), ("a",)),
        ({"patch": "rename from a b\nrename to c"}, ("a b", "c"), ()),
        ({"patch": "*** Add File: a\n*** Move to: b\n--- /dev/null"}, ("a", "b"), ()),
        ({}, (), ()),
    ],
)
def test_files_are_found_by_the_words_of_their_names(given, files, others):
    assert find_paths(given) == (files, others)
