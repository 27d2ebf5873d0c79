"""Values of names: which of them are secrets."""

import json
from pathlib import Path

import pytest

from rekindle.policy.redact.named_values import is_harmless, is_secret
from rekindle.policy.redact.secret_names import NameStrength

RANDOM = "aB3dE5fG7hJ9kL1mN3pQ"


@pytest.mark.parametrize(
    ("value", "form", "quoted", "expected"),
    [
        (RANDOM, "assigned", False, False),
        ("changeme", "assigned", True, True),
        ("config/keys.pem", "assigned", True, True),
        ("!Ref Secret", "assigned", True, True),
        ("two words", "assigned", True, True),
        ("https://example.org", "assigned", True, True),
        ("123456789", "assigned", False, True),
        ("123456789", "assigned", True, False),
        ("load(path)", "assigned", False, True),
        ("getName", "called", True, True),
        ("getName", "assigned", True, False),
    ],
)
def test_a_harmless_value_is_not_a_secret_under_any_name(value, form, quoted, expected):
    assert is_harmless(value, form, quoted=quoted) is expected


@pytest.mark.parametrize(
    ("value", "strength", "aside", "expected"),
    [
        (RANDOM, NameStrength.WEAK, False, True),
        (RANDOM, NameStrength.MEDIUM, True, True),
        ("hunter2!", NameStrength.STRONG, False, True),
        ("hunter2!", NameStrength.MEDIUM, False, False),
        ("hunter2!", NameStrength.WEAK, False, False),
        ("c45a8f85-3f65-4499-a831-79bf7d891be2", NameStrength.MEDIUM, False, True),
        ("c45a8f85-3f65-4499-a831-79bf7d891be2", NameStrength.WEAK, False, False),
        ("v2-3f2a9c41d0b7e8f6a5c4", NameStrength.WEAK, False, False),
    ],
)
def test_a_weak_name_needs_a_random_value(value, strength, aside, expected):
    assert is_secret(value, strength, aside=aside, quoted=False, form="assigned") is expected


@pytest.mark.parametrize(("form", "expected"), [("element", True), ("prose", False)])
def test_code_is_a_password_only_if_it_is_all_of_an_element(form, expected):
    """In a sentence, a word beside the name may be code."""
    value = "hunter2(!)"
    assert is_secret(value, NameStrength.STRONG, aside=True, quoted=False, form=form) is expected


CONTEXTS = {
    "quoted": (False, True, "assigned"),
    "bare": (False, False, "assigned"),
    "called": (False, True, "called"),
    "element": (True, False, "element"),
    "prose": (True, False, "prose"),
}
"""For each context: whether the value is only close to its name, its quotes and its form."""
TABLE = json.loads(Path(__file__).with_name("named_values.json").read_text())


@pytest.mark.parametrize("strength", list(NameStrength))
def test_in_which_contexts_a_value_is_a_secret(strength):
    """A weaker name needs a more random value, and so does a value that is only close to it."""
    for value, contexts in TABLE.items():
        found = [
            context
            for context, (aside, quoted, form) in CONTEXTS.items()
            if is_secret(value, strength, aside=aside, quoted=quoted, form=form)
        ]
        assert " ".join(found) == contexts[strength.name.lower()], value


@pytest.mark.parametrize(
    ("value", "form", "quoted", "expected"),
    [
        ("a\tb", "assigned", True, True),
        ("a b", "assigned", False, True),
        ("a://b", "assigned", False, True),
        ("!Ref", "assigned", True, True),
        ("arn:aws:iam::1:x", "assigned", True, True),
        ("<token>", "assigned", False, True),
        ("./keys", "assigned", False, True),
        ("-4.5e9", "assigned", False, True),
        ("a&&b", "assigned", False, True),
        ("a&&b", "assigned", True, False),
        ("hunter2!", "called", True, False),
        ("getName", "called", False, False),
        ("getName9aB3dE5fG7hJ", "called", True, False),
        ("load(aB3dE5fG7hJ9kL)", "called", True, False),
        ("load(path)", "called", True, True),
    ],
)
def test_values_that_are_never_secrets(value, form, quoted, expected):
    """Placeholders, files, tags, texts with spaces, numbers without quotes, and code."""
    assert is_harmless(value, form, quoted=quoted) is expected
