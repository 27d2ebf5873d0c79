"""A text that forbids is told from one that asks."""

import pytest

from rekindle.policy.summaries.negations import has_other_negations, list_clauses


def stems(text):
    return frozenset(word for word in text.split() if len(word) > 3)


@pytest.mark.parametrize(
    ("text", "source", "is_other"),
    [
        ("run tests daily", "run tests daily", False),
        ("do not run tests daily", "run tests daily", True),
        ("run tests daily", "do not run tests daily", True),
        ("do not run tests daily", "never run tests daily", False),
    ],
)
def test_a_prohibition_needs_a_source_that_forbids(text, source, is_other):
    said, known = (list(list_clauses(each, stems)) for each in (text, source))
    assert has_other_negations(said, known, frozenset()) == is_other
