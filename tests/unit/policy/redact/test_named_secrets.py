"""Secrets that their names give away: which texts have them, and how long they must be."""

import json
import random
import string
from pathlib import Path

import pytest

from rekindle.policy.redact import named_secrets, named_values, value_tests
from rekindle.policy.redact.literal_search import LiteralSearch

SEARCH = LiteralSearch(named_secrets.LITERALS)


def find_literals(text):
    return SEARCH.find(text.lower())


TABLES = json.loads(Path(__file__).with_name("named_secrets.json").read_text())


def draw(alphabet):
    rng = random.Random(alphabet)
    return "".join(rng.choice(alphabet) for _ in range(40))


SAMPLES = {
    "letters and digits": draw(string.ascii_letters + string.digits),
    "letters": draw(string.ascii_letters),
    "hexadecimal": draw("0123456789abcdef"),
    "small letters": draw(string.ascii_lowercase),
    "written": "hunter2isTheBest!" * 3,
}


def test_the_secrets_of_a_text():
    """Each with its rule."""
    secrets = {
        text: [
            f"{rule} {text[start:end]}"
            for start, end, rule in named_secrets.find_named(
                text, text.lower(), find_literals(text)
            )
        ]
        for text in TABLES["secrets"]
    }
    assert secrets == TABLES["secrets"]


def find_lengths(form, sample):
    """Yield how much of a sample is found as a whole in a form."""
    place = form.index("{}")
    for size in range(1, 41):
        text = form.replace("{}", sample[:size])
        spans = [
            (start, end)
            for start, end, _ in named_secrets.find_named(text, text.lower(), find_literals(text))
        ]
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


def find(text):
    return [
        f"{rule} {text[start:end]}"
        for start, end, rule in named_secrets.find_named(text, text.lower(), find_literals(text))
    ]


def test_no_secret_is_harmless():
    """Once the sign of a cut is removed, every value that is found could be a secret."""
    for text in TABLES["secrets"]:
        for start, end, _ in named_secrets.find_named(text, text.lower(), find_literals(text)):
            secret = text[start:end].rstrip(".…")
            is_harmless = named_values.is_harmless(secret, "assigned", quoted=True)
            assert " " in secret or not is_harmless, text
            assert not value_tests.is_tag(secret), text


NEARBY = "aB3dE5fG7hJ9kL1mN3pQ5r"


@pytest.mark.parametrize(
    ("between", "is_found"), [(1, True), (50, True), (119, True), (120, False), (200, False)]
)
def test_a_random_word_near_a_name_is_a_token(between, is_found):
    """It must begin within 120 characters after the name, and is found to its end."""
    text = f"the token{' ' * between}{NEARBY} ends"
    assert find(text) == ([f"token {NEARBY}"] if is_found else [])
    assert find(f"the token{' ' * (between - 1)}\n{NEARBY} ends") == []


@pytest.mark.parametrize(
    ("word", "is_found"),
    [
        ("aB3dE5fG7hJ9kL1mN3pQ", True),
        ("aB3dE5fG7hJ9kL1mN3p", False),
        ("ab3dE5fG7hJ9kl1mn3pq5r", True),
        ("ab3de5fG7hJ9kl1mn3pq5r", False),
        ("AB3De5Fg7HJ9KL1MN3PQ5r", True),
        ("AB3De5Fg7HJ9KL1MN3PQ5R", False),
        ("aB3dE5fG7hJ9kL1mN3pQ5r.", True),
        ("user_aB3dE5fG7hJ9kL1mN3pQ5r", False),
    ],
)
def test_how_random_a_word_near_a_name_must_be(word, is_found):
    """Twenty characters, with digits, three capitals and three small letters; not a public id."""
    assert find(f"the token here {word} ends") == (
        [f"token {word.rstrip('.')}"] if is_found else []
    )


@pytest.mark.parametrize(
    ("before", "is_found"),
    [
        ("", False),
        ("-", True),
        ("--", True),
        ("x-", False),
        ("set ", True),
        ("x set ", True),
        ("xset ", False),
        ("setenv ", True),
        (";set" + " --abcdefghijkl" * 2 + " " * 3, True),
        (";set" + " --abcdefghijkl" * 2 + " " * 6, False),
    ],
)
def test_a_flag_or_a_setter_before_a_name(before, is_found):
    """After it, a word that is not random is a value."""
    text = f"{before}password hun!x2"
    assert find(text) == (["password hun!x2"] if is_found else [])


def test_the_pieces_of_a_long_literal():
    """At most a hundred after the first one."""
    piece = '"aB3dE5fG7h"'
    for count in (1, 2, 99, 100, 101, 102, 150):
        text = "password = " + " + ".join([piece] * count)
        assert len(find(text)) == min(count, 101), count


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        (
            "arn:aws:secretsmanager:eu:1:secret:a-B3dE5f token=hunter22aB3dE",
            ["token hunter22aB3dE"],
        ),
        ("arn:aws:iam::1:key/aB3dE5fG7hJ9kL1mN3pQ", []),
        ("passphrase: correct-horse-battery-staple", ["password correct-horse-battery-staple"]),
        ("password: correct-horse-battery-staple", []),
        ("DB_PASSWORD=correcthorse", ["password correcthorse"]),
        ("DB_PASSWORD=correct", []),
        ("DB_PASSWORD: correcthorse", []),
        ("db_password=correcthorse", []),
        ('password = "hunter2!" + name', ["password hunter2!"]),
        ("public key aB3dE5fG7hJ9kL1mN3pQ", []),
        ("password=hunter2!;user=x", ["password hunter2!"]),
        ("password=hunter2!&amp;x", ["password hunter2!"]),
        ("?password=hunter2!&x=1", ["password hunter2!"]),
        ("(password=hunter2!)", ["password hunter2!"]),
        ("<password>hunter2!</password>", ["password hunter2!"]),
    ],
)
def test_values_in_context(text, secrets):
    """Up to the end of the field, and not in the name of a cloud resource."""
    assert find(text) == secrets
