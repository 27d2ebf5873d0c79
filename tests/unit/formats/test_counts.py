"""Numbers agree with their nouns."""

import re
from pathlib import Path

import pytest

import rekindle
from rekindle.formats.counts import render_count

BY_HAND = re.compile(r"\{'' if [^{}]+ == 1 else 's'\}|\{'s' if [^{}]+ > 1 else ''\}")


@pytest.mark.parametrize(
    ("number", "words", "rendered"),
    [
        (0, ("loop",), "0 loops"),
        (1, ("loop",), "1 loop"),
        (2, ("loop",), "2 loops"),
        (1, ("process", "processes"), "1 process"),
        (1200, ("process", "processes"), "1,200 processes"),
        (1.0, ("hour",), "1 hour"),
        (1.5, ("hour",), "1.5 hours"),
    ],
)
def test_a_noun_follows_its_number(number, words, rendered):
    assert render_count(number, *words) == rendered


def test_no_module_forms_a_plural_by_hand():
    """A search finds them, and `render_count` is used instead."""
    assert BY_HAND.search("f\"{n} turn{'' if n == 1 else 's'}\"")
    found = [
        f"{path.name}: {match[0]}"
        for path in Path(rekindle.__file__).parent.rglob("*.py")
        for match in BY_HAND.finditer(path.read_text())
        if path.name != "summary.py"  # "turns 3-7" has no number before its noun
    ]
    assert found == []
