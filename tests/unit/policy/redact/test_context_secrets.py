"""Secrets that a format gives away: which texts have them, and how long they must be."""

import json
import random
import string
from pathlib import Path

from rekindle.policy.redact import (
    context_patterns,
    context_secrets,
    encoded_secrets,
    key_blocks,
)
from rekindle.policy.redact.literal_search import LiteralSearch

SEARCH = LiteralSearch(context_secrets.LITERALS)


def find_literals(text):
    return SEARCH.find(text.lower())


TABLES = json.loads(Path(__file__).with_name("context_secrets.json").read_text())


def draw(alphabet):
    rng = random.Random(alphabet)
    return "".join(rng.choice(alphabet) for _ in range(40))


SAMPLES = {
    "letters and digits": draw(string.ascii_letters + string.digits),
    "letters": draw(string.ascii_letters),
    "hexadecimal": draw("0123456789abcdef"),
    "written": "hunter2isTheBest!" * 3,
}


def find(text):
    """Return the secrets; a decoded text has one if it speaks of a password."""
    return list(
        context_secrets.find_formatted(
            text, text.lower(), find_literals(text), lambda decoded: "password" in decoded
        )
    )


def test_the_secrets_of_a_text():
    """Each with its rule."""
    secrets = {
        text: [f"{rule} {text[start:end]}" for start, end, rule in find(text)]
        for text in TABLES["secrets"]
    }
    assert secrets == TABLES["secrets"]


def find_lengths(form, sample):
    """Yield how much of a sample is found as a whole in a form."""
    place = form.index("{}")
    for size in range(1, 41):
        spans = [(start, end) for start, end, _ in find(form.replace("{}", sample[:size]))]
        if (place, place + size) in spans:
            yield size


def test_from_which_length_on_a_value_is_a_secret():
    """The rows say the first and the last length of each span."""
    for row, spans in TABLES["lengths"].items():
        name, _, form = row.partition(": ")
        lengths = [
            size
            for span in spans.split()
            for size in range(int(span.split("-")[0]), int(span.split("-")[-1]) + 1)
        ]
        assert list(find_lengths(form, SAMPLES[name])) == lengths, row


def test_the_findings_of_patterns_and_keys_are_findings():
    """The parts of the search, each alone, find nothing that the whole does not find."""
    for text in TABLES["secrets"]:
        low = text.lower()
        parts = [
            *context_patterns.find_by_pattern(text, low, find_literals(text)),
            *key_blocks.find_key_blocks(text, find_literals(text)),
            *encoded_secrets.find_encoded(text, lambda decoded: "password" in decoded),
        ]
        assert set(parts) <= set(find(text)), text
