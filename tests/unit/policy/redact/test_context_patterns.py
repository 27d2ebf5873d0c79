"""Patterns of URLs, headers, commands and hashes."""

import pytest

from rekindle.policy.redact import context_patterns
from rekindle.policy.redact.context_patterns import find_by_pattern
from rekindle.policy.redact.literal_search import LiteralSearch

SEARCH = LiteralSearch(context_patterns.LITERALS)


def find_literals(text):
    return SEARCH.find(text.lower())


RANDOM = "aB3dE5fG7hJ9kL1mN3pQ"


@pytest.mark.parametrize(
    ("text", "rule", "secret"),
    [
        (f"https://ann:{RANDOM}@host/x", "url-password", RANDOM),
        (f"Authorization: Bearer {RANDOM}", "authorization", RANDOM),
        (f"GET /x?access_token={RANDOM}&a=1", "url-signature", RANDOM),
        (f"curl -u ann:{RANDOM} host", "password", RANDOM),
        (f"mysql -p{RANDOM} shop", "password", RANDOM),
        (f"::add-mask::{RANDOM}", "token", RANDOM),
        ("CREATE USER a IDENTIFIED BY 'tundra-77x'", "password", "tundra-77x"),
    ],
)
def test_the_value_in_a_format_is_a_secret(text, rule, secret):
    found = [
        (rule, text[start:end])
        for start, end, rule in find_by_pattern(text, text.lower(), find_literals(text))
    ]
    assert (rule, secret) in found


@pytest.mark.parametrize(
    "text",
    [
        "https://ann:8080/x@host",
        "Authorization: Bearer <token>",
        "cp -p some/file2.txt other",
        "curl -u ann:name host",
    ],
)
def test_an_ordinary_value_is_not(text):
    assert list(find_by_pattern(text, text.lower(), find_literals(text))) == []


def test_a_labelled_key_needs_twenty_characters_besides_its_padding():
    for key, found in ((f"{RANDOM}==", True), (f"{RANDOM[:-1]}===", False)):
        text = f"Unseal Key 1: {key}"
        assert bool(list(find_by_pattern(text, text.lower(), find_literals(text)))) is found, key
