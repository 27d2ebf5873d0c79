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


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Keep two thousand lines.", "Keep 2,000 lines."),
        ("Cover ninety percent.", "Cover 90%."),
        ("Stop after twenty-five tries.", "Stop after 25 tries."),
        ("Read three hundred and fifty rows.", "Read 350 rows."),
        ("Take a million and two hundred thousand.", "Take 1200000."),
        ("Wait for a hundred and Twelve seconds.", "Wait for 112 seconds."),
    ],
)
def test_a_number_is_known_in_words(known, text):
    assert KnownNames([known]).find_unknown(text) == set()


@pytest.mark.parametrize(
    ("known", "text", "unknown"),
    [
        ("Keep two thousand lines.", "Keep 20,000 lines.", {"20000"}),
        ("Keep two thousand lines.", "Keep 1000 lines.", {"1000"}),
        ("Stop after twenty-five tries.", "Stop after 20 tries.", {"20"}),
        ("Tenfold is often enough.", "Try 10 times.", {"10"}),
    ],
)
def test_another_number_is_unknown(known, text, unknown):
    assert KnownNames([known]).find_unknown(text) == unknown
