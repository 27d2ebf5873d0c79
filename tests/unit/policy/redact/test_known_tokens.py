"""Tokens that their beginning, or their shape, gives away."""

import json
import random
import string
from pathlib import Path

from rekindle.policy.redact import known_tokens
from rekindle.policy.redact.known_tokens import find_tokens, is_public_id

TABLES = json.loads(Path(__file__).with_name("known_tokens.json").read_text())


def draw(alphabet, size=60):
    rng = random.Random(alphabet)
    return "".join(rng.choice(alphabet) for _ in range(size))


SAMPLES = {
    "mixed": draw(string.ascii_letters + string.digits),
    "hex": draw("0123456789abcdef"),
    "small": draw(string.ascii_lowercase + string.digits),
    "capital": draw(string.ascii_uppercase + string.digits),
    "words": "the_information_of_the_system_administrator_is_not_available",
}


def find_lengths(before, sample, after=""):
    """Return the lengths of a body with which a token is found, as spans, each with its rule."""
    spans = []
    for size in range(1, 61):
        run = before + SAMPLES[sample][:size] + after
        rules = "+".join(f"{rule}@{start}" for start, end, rule in find_tokens(run))
        if not rules:
            continue
        if spans and spans[-1][1] == size - 1 and spans[-1][2] == rules:
            spans[-1][1] = size
        else:
            spans.append([size, size, rules])
    return " ".join(f"{first}-{last}:{rules}" for first, last, rules in spans)


def test_from_which_length_on_a_body_is_a_token():
    """Behind each beginning, with letters of several kinds."""
    for row, expected in TABLES["lengths"].items():
        sample, _, prefix = row.partition(" ")
        assert find_lengths(prefix, sample) == expected, row


def test_what_may_come_behind_a_body():
    for row, expected in TABLES["endings"].items():
        sample, before, after = row.split(" ")
        assert find_lengths(before, sample, after) == expected, row


def test_ids_that_open_nothing():
    assert {word: is_public_id(word) for word in TABLES["public"]} == TABLES["public"]


def test_every_known_beginning_is_one():
    """No beginning of the list is so short that it would be found everywhere."""
    assert all(len(prefix) >= 3 for prefix in known_tokens._RULE_OF)
