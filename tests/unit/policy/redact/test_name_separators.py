"""The literal that a separator needs is in each of its matches, within its reach."""

import re
from itertools import product

import pytest

from rekindle.policy.redact.name_separators import SEPARATORS

TEXTS = {
    "assigned": ["=", '": ', " := ", ": str = ", "** (new): "],
    "valued": [
        *('", "value": ', ",\n  value = ", ";" * 40 + "x" * 59 + " value" + " " * 24 + "= "),
        *(
            " {default: ",
            '": {' + "x" * 200 + 'value": ',
            "\x01" * 7 + '"    {value=',
            " {content: ",
        ),
    ],
    "element": [">x"],
    "tagged": [" a='b'>x", '"' + "x" * 60 + ">x", "</key>\n<string>x", "\x01" * 7 + "' >x"],
    "celled": [" | ", "`**" + " " * 24 + "| ", "| "],
    "called": ["('", '", "', "( r'"],
    "prose": [" for staging is ", "s to "],
    "spaced": [" ", " is set", ": "],
}


@pytest.mark.parametrize("form", TEXTS)
def test_a_separator_contains_its_literal(form):
    """Skipping a pattern without its literal therefore loses no match."""
    matched = set()
    for text, separator in product(TEXTS[form], SEPARATORS):
        match = separator.pattern.match(text)
        if separator.form == form and match:
            matched.add(text)
            assert separator.needs in text[: separator.reach or len(text)], text
    assert matched == set(TEXTS[form])


def test_the_first_separator_that_matches_is_an_assignment():
    assert SEPARATORS[0].form == "assigned"
    assert all(isinstance(separator.pattern, re.Pattern) for separator in SEPARATORS)
