"""Names and numbers are found as a whole, and known only as a whole."""

import pytest

from rekindle.policy.summaries.exact_names import KnownNames, find_names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Upload it to https://example.org/reports.", {"https://example.org/reports"}),
        ("Change src/parser.sh and port 4444", {"src/parser.sh", "4444"}),
        ("kill process 1", {"1"}),
        ("Run the tests twice, e.g. at night.", set()),
    ],
)
def test_the_names_of_a_text(text, names):
    assert find_names(text) == names


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("Change parser.py", set()),
        ("Change src/parser.sh", {"src/parser.sh"}),
        ("Read example.org/parser.py", {"example.org/parser.py"}),
    ],
)
def test_a_file_is_known_by_the_end_of_its_path(text, unknown):
    assert KnownNames(["Fix src/parser.py"]).find_unknown(text) == unknown
