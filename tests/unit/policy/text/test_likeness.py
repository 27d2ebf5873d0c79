"""The similarity of two texts."""

import json
from pathlib import Path

from rekindle.policy.text.likeness import (
    find_significant_words,
    find_swapped_word,
    measure_likeness,
)

TABLES = json.loads(Path(__file__).with_name("likeness.json").read_text())


def test_the_similarity_of_two_texts():
    """It is between 0 and 1, in either order."""
    for pair, expected in TABLES["likeness"].items():
        one, other = json.loads(pair)
        assert round(measure_likeness(one, other), 6) == expected, pair
        assert measure_likeness(one, other) == measure_likeness(other, one)


def test_the_one_word_that_changed():
    """Empty if more changed, or if there are too few words to tell."""
    for pair, expected in TABLES["swapped"].items():
        assert find_swapped_word(*json.loads(pair)) == expected, pair


def test_what_a_text_is_about():
    texts = {text: sorted(find_significant_words(text)) for text in TABLES["significant"]}
    assert texts == TABLES["significant"]
