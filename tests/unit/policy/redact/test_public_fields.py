"""Public fields are overwritten before the search, and nothing else is."""

import pytest

from rekindle.policy.redact import public_fields
from rekindle.policy.redact.literal_search import LiteralSearch
from rekindle.policy.redact.public_fields import hide_public_fields

SEARCH = LiteralSearch(public_fields.LITERALS)


def find_literals(text):
    return SEARCH.find(text.lower())


HIDDEN = "\x02"
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 4


def hide(text):
    return hide_public_fields(text, text.lower(), find_literals(text))


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ('{"encrypted_content":"', "gAAAAA" + MIXED, '"}'),
        ('{\x01"encryptedContent\x01": \x01"', "E" + MIXED, '\x01"}'),
        ('{"thought_signature": "', MIXED, '"}'),
        ('{"signature":"', "Eq" + MIXED, '"}'),
        ('{"signature":"', "Cv" + MIXED, "…"),
        ('{"type":"redacted_thinking","data":"', "Eo" + MIXED, '"}'),
        ('ETag: "', "33a64df551425fcc", '"'),
        ('etag: W/\x01"', "0815-a", '\x01"'),
        ("If-None-Match: ", MIXED[:40], ""),
        ('"ETag": "\x01"', MIXED[:40], '\x01""'),
        ('{"kty": "RSA", "n": "', MIXED, '"}'),
        ("{n: '", MIXED, "', kty: 'RSA'}"),
        ('{"kty":"EC","x5c":[', f'"{MIXED}"', "]}"),
    ],
)
def test_the_value_of_a_public_field_is_hidden(before, value, after):
    assert hide(before + value + after) == before + HIDDEN * len(value) + after


@pytest.mark.parametrize(
    "text",
    [
        f'{{"content":"gAAAAA{MIXED}"}}',
        f'{{"signature":"{MIXED}"}}',
        '{"signature":"Eq' + MIXED[:40] + '"}',
        f'{{"data":"Eo{MIXED}"}}',
        f'{{"encrypted_content":"{MIXED[:30]}"}}',
        f'{{"x": "{MIXED}"}} {{"kty": "EC"}}',
        f'{{"kty": "EC", "d": "{MIXED}"}}',
        f'"kty": "EC" {" " * 9000}"x": "{MIXED}"',
        "ETag: gh" + "p_" + MIXED[:36],
        f"etagere-{MIXED[:30]}",
    ],
)
def test_other_fields_stay(text):
    assert hide(text) == text


def test_fields_that_overlap_are_hidden_once():
    """A key that contains an ETag keeps its length."""
    text = f'{{"kty": "EC", "kid": "etag:{MIXED[:40]}", "x": "{MIXED[:43]}", "d": "{MIXED[:43]}"}}'
    hidden = hide(text)
    assert len(hidden) == len(text)
    assert hidden.count(HIDDEN) == len("etag:") + 40 + 43
    assert f'"d": "{MIXED[:43]}"}}' in hidden


def test_each_key_of_a_set_is_hidden():
    """The public fields in front of the type are those of the same key."""
    key = f'{{"n": "{MIXED}", "kty": "RSA"}}'
    assert hide(f'"n": "{MIXED}", [{key}, {key}]').count(HIDDEN) == 2 * len(MIXED)


@pytest.mark.parametrize(("size", "count"), [(200, 0), (201, 201)])
def test_a_long_value_is_not_a_token(size, count):
    value = "gh" + "p_" + (MIXED * 2)[: size - 4]
    assert hide(f'{{"kty": "RSA", "n": "{value}"}}').count(HIDDEN) == count


@pytest.mark.parametrize(("gap", "hides"), [(7_990, True), (8_000, False)])
def test_a_key_ends_after_a_while(gap, hides):
    """Without a closing brace, fields far behind the type are not those of the key."""
    text = f'{{"kty":{" " * gap}"x": "{MIXED}'
    assert (HIDDEN in hide(text)) is hides
