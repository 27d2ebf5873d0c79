"""Tests of single values: tables of values, and of the lengths at which an answer changes."""

import random
import string

import pytest

from rekindle.policy.redact import value_tests

PREDICATES = (
    "is_placeholder",
    "is_uuid",
    "has_uuid",
    "is_word",
    "is_phrase",
    "is_hex",
    "is_number",
    "is_file",
    "is_code",
    "is_expression",
    "is_tag",
    "is_random_letters",
    "has_digit",
    "is_random",
    "has_mixed_characters",
)
VALUES = {
    "0f8fad5b-d9cb-469f-a165-70867728950e": (
        "is_uuid has_uuid has_digit is_random has_mixed_characters"
    ),
    "hunter2": "is_code has_digit has_mixed_characters",
    "Tr0ub4dor&3": "has_digit has_mixed_characters",
    "correcthorse": "is_word is_code",
    "correcthorsebattery": "is_word is_code",
    "correct-horse-battery-staple": "is_phrase is_code",
    "one.two-three_four": "is_phrase is_code",
    "one.two.six": "is_code",
    "changeme": "is_placeholder is_code",
    "change-me": "is_placeholder is_code",
    "your_token": "is_placeholder is_code",
    "my-token": "is_placeholder is_code",
    "xxx": "is_placeholder is_code",
    "xxxx": "is_placeholder is_code",
    "xx": "is_code",
    "x***": "is_placeholder has_mixed_characters",
    "***": "is_placeholder",
    "...": "is_placeholder is_number",
    "…": "is_placeholder",
    "aaaaaaaa": "is_placeholder is_hex is_code",
    "aaaaaaa": "is_hex is_code",
    "abababab": "is_placeholder is_hex is_code",
    "abcabcab": "is_placeholder is_hex is_code",
    "abcdabcd": "is_word is_hex is_code",
    "null": "is_placeholder is_code",
    "None": "is_placeholder is_code",
    "nil": "is_placeholder is_code",
    "true": "is_placeholder is_code",
    "FALSE": "is_placeholder is_code",
    "no": "is_placeholder is_code",
    "off": "is_placeholder is_code",
    "n/a": "is_placeholder",
    "NA": "is_placeholder is_code",
    "todo": "is_placeholder is_code",
    "string": "is_placeholder is_code",
    "boolean": "is_placeholder is_code",
    "$TOKEN": "is_placeholder is_code has_mixed_characters",
    "${TOKEN}": "is_placeholder is_code has_mixed_characters",
    "$(pass)": "is_placeholder is_code has_mixed_characters",
    "%TOKEN%": "is_placeholder has_mixed_characters",
    "%s": "is_placeholder has_mixed_characters",
    "{{token}}": "is_placeholder is_code has_mixed_characters",
    "<token>": "is_placeholder is_code has_mixed_characters",
    "[token]": "is_placeholder is_code has_mixed_characters",
    "secret": "is_placeholder is_code",
    "password": "is_placeholder is_code",
    "token": "is_placeholder is_code",
    "key": "is_placeholder is_code",
    "api-key": "is_placeholder is_code",
    "foo": "is_placeholder is_code",
    "bar": "is_placeholder is_code",
    "abcdef": "is_placeholder is_hex is_code",
    "abcdefg": "is_code",
    "redacted-by": "is_placeholder is_code",
    "dummy-key": "is_placeholder is_code",
    "example-1": "is_placeholder is_code has_digit has_mixed_characters",
    "0f8fad5b-d9cb-469f-a165-70867728950": "has_digit is_random has_mixed_characters",
    "id-0f8fad5b-d9cb-469f-a165-70867728950e": "has_uuid has_digit is_random has_mixed_characters",
    "deadbeef": "is_word is_hex is_code",
    "DEADBEEF": "is_hex is_code",
    "DeadBeef": "is_code",
    "0123456789abcdef": "is_hex is_random_letters has_digit has_mixed_characters",
    "0123456789abcde": "is_hex has_digit has_mixed_characters",
    "fedcba9876543210": "is_hex is_random_letters has_digit has_mixed_characters",
    "1111222233334444": "is_hex is_number has_digit has_mixed_characters",
    "0000111122223333aa": "is_hex is_random_letters has_digit has_mixed_characters",
    "123": "is_hex is_number has_digit",
    "-1.5": "is_number has_digit",
    "+1,000": "is_number has_digit has_mixed_characters",
    "1e9": "is_hex is_number has_digit has_mixed_characters",
    "1e-9": "is_number has_digit has_mixed_characters",
    "12a": "is_hex has_digit has_mixed_characters",
    "3.14}": "is_number is_code has_digit has_mixed_characters",
    "1_000],": "is_number is_code has_digit has_mixed_characters",
    ".": "is_number",
    "v1.2.3": "is_code has_digit has_mixed_characters",
    "1.2": "is_number is_code has_digit",
    "1.2.3-rc1": "is_code has_digit has_mixed_characters",
    "v1": "is_code has_digit has_mixed_characters",
    "2.": "is_number has_digit",
    "/etc/passwd": "is_file is_code",
    "~/x": "is_file is_code has_mixed_characters",
    "./a": "is_file is_code",
    "../b/c": "is_file is_code",
    "config.json": "is_file is_code",
    "a/b.pem": "is_file is_code",
    "notes.md": "is_file is_code",
    "x.unknown": "is_code",
    "/aB3dE5fG7hJ9kL1mN3pQ5": "has_digit is_random has_mixed_characters",
    "/aB3dE5fG7hJ9kL1mN3pQ5.txt": "is_file is_code has_digit is_random has_mixed_characters",
    "/short": "is_file is_code",
    "aB3/dE5.key": "is_file is_code has_digit has_mixed_characters",
    "os.environ": "is_code",
    "get_token": "is_code",
    "user.name": "is_code",
    "foo-bar": "is_code",
    "foo12": "is_code has_digit has_mixed_characters",
    "foo123": "has_digit has_mixed_characters",
    "$var": "is_placeholder is_code has_mixed_characters",
    "_x": "is_code",
    "call()": "is_code is_expression has_mixed_characters",
    "a::b": "is_code is_expression",
    "a->b": "is_code has_mixed_characters",
    "a=>b": "is_code has_mixed_characters",
    "a&&b": "is_code is_expression has_mixed_characters",
    "x<y": "is_code is_expression has_mixed_characters",
    "[1]": "is_placeholder is_code has_digit has_mixed_characters",
    "a.b.c(": "is_code is_expression has_mixed_characters",
    "a==b": "has_mixed_characters",
    "a===b": "is_expression has_mixed_characters",
    "a!==b": "is_expression has_mixed_characters",
    "&ref": "is_expression has_mixed_characters",
    "x||y": "is_code is_expression has_mixed_characters",
    "!Ref": "is_tag has_mixed_characters",
    "!Sub/x": "is_tag has_mixed_characters",
    "arn:aws:iam::1:role/x": "is_code is_expression is_tag has_digit has_mixed_characters",
    "arn:aws-cn:s3:::b": "is_code is_expression is_tag has_digit has_mixed_characters",
    "!1": "has_digit has_mixed_characters",
    "qwrtpsdfghjk": "is_word is_code is_random_letters",
    "zxcvbnmlkjhg": "is_word is_code is_random_letters",
    "bcdfghjklmnp": "is_word is_code is_random_letters",
    "information": "is_word is_code",
    "administrator": "is_word is_code",
    "ABCDEFGHIJKL": "is_code is_random_letters",
    "JBSWY3DPEHPK3PXP": "is_random_letters has_digit is_random has_mixed_characters",
    "MFRGGZDFMZTWQ2LK": "is_random_letters has_digit has_mixed_characters",
    "aB3dE5fG7hJ9": "has_digit has_mixed_characters",
    "aB3dE5fG7hJ9kL1m": "has_digit is_random has_mixed_characters",
    "aBcDeFgHiJkLmNoP": "is_code is_random_letters is_random",
    "abcdefghijkl123": "has_digit has_mixed_characters",
    "abc1def2ghi3jkl4": "has_digit is_random has_mixed_characters",
    "UserAccountManager": "is_code",
    "userAccountManager2": "is_code has_digit has_mixed_characters",
    "Passw0rd": "has_digit has_mixed_characters",
    "passw0rd": "has_digit has_mixed_characters",
    "password1": "is_code has_digit has_mixed_characters",
    "Password!": "is_placeholder has_mixed_characters",
    "p@ssword": "has_mixed_characters",
    "pw1": "is_code has_digit has_mixed_characters",
    "Aa": "is_code",
    "aA": "is_code",
    "aA1": "is_code has_digit has_mixed_characters",
    "1a": "is_hex has_digit has_mixed_characters",
    "a1b2": "is_hex has_digit has_mixed_characters",
    "abc!": "is_placeholder has_mixed_characters",
    "ABCdef": "is_placeholder is_code",
    "x-y_z": "is_code",
    "a.b/c:d,e": "",
    "12345678": "is_hex is_number has_digit has_mixed_characters",
    "abcdefg1": "is_code has_digit has_mixed_characters",
    "abcdef1": "is_hex is_code has_digit has_mixed_characters",
    "ABCDEFGH1": "is_code has_digit has_mixed_characters",
    "two words here now": "is_phrase",
    "correct horse battery staple": "is_phrase",
    "a b": "",
    "x\x02y": "is_placeholder has_mixed_characters",
    "": "",
}
"""Each value, and every question that is answered with yes."""


def draw(alphabet):
    rng = random.Random(alphabet)
    return "".join(rng.choice(alphabet) for _ in range(120))


SAMPLES = {
    "hexadecimal": draw("0123456789abcdef"),
    "letters and digits": draw(string.ascii_letters + string.digits),
    "both cases": draw(string.ascii_letters),
    "small letters": draw(string.ascii_lowercase),
    "capitals": draw(string.ascii_uppercase),
    "base32": draw(string.ascii_uppercase + "234567"),
    "digits": draw(string.digits),
    "base64": draw(string.ascii_letters + string.digits + "+/"),
    "path": "/" + draw(string.digits + string.ascii_letters),
    "ten characters": draw("aBcDeFgH12"),
    "eight characters": draw("aBcDeF12"),
    "five letters": draw("qxzjw"),
    "six letters": draw("qxzjwk"),
    "prose": "theinformationofthesystemadministratorisnotavailableinthisversion" * 2,
    "words": "correct-horse-battery-staple-" * 5,
    "names": "userAccountManagerForTheSystem2" * 5,
    "three characters": "aB3" * 40,
    "few digits": "abcdefghijklmnopqrs7tuvwx" * 5,
}

LENGTHS = {
    ("hexadecimal", "is_random_letters"): "16-120",
    ("hexadecimal", "is_random"): "20-120",
    ("hexadecimal", "has_mixed_characters"): "3-120",
    ("letters and digits", "is_code"): "1-4",
    ("letters and digits", "is_random_letters"): "12-42",
    ("letters and digits", "is_random"): "16-120",
    ("letters and digits", "has_mixed_characters"): "4-120",
    ("both cases", "is_code"): "1-120",
    ("both cases", "is_random_letters"): "12-120",
    ("both cases", "is_random"): "16-120",
    ("small letters", "is_word"): "8-120",
    ("small letters", "is_code"): "1-120",
    ("small letters", "is_random_letters"): "12-120",
    ("capitals", "is_code"): "1-120",
    ("capitals", "is_random_letters"): "12-120",
    ("base32", "is_code"): "1-3",
    ("base32", "is_random_letters"): "12-120",
    ("base32", "is_random"): "16-120",
    ("base32", "has_mixed_characters"): "3-120",
    ("digits", "has_mixed_characters"): "8-120",
    ("base64", "is_random"): "18-120",
    ("base64", "has_mixed_characters"): "2-120",
    ("path", "is_file"): "1-20",
    ("path", "is_code"): "1-20",
    ("path", "is_random"): "17-120",
    ("path", "has_mixed_characters"): "4-120",
    ("ten characters", "is_random"): "21-120",
    ("ten characters", "has_mixed_characters"): "2-120",
    ("eight characters", "has_mixed_characters"): "2-120",
    ("five letters", "is_word"): "8-120",
    ("five letters", "is_code"): "1-120",
    ("six letters", "is_word"): "8-120",
    ("six letters", "is_code"): "1-120",
    ("six letters", "is_random_letters"): "12-120",
    ("prose", "is_word"): "8-120",
    ("prose", "is_code"): "1-120",
    ("words", "is_phrase"): "25-120",
    ("words", "is_code"): "1-120",
    ("names", "is_code"): "1-31",
    ("names", "has_mixed_characters"): "31-120",
    ("three characters", "is_placeholder"): "8-120",
    ("three characters", "is_code"): "1-3",
    ("three characters", "has_mixed_characters"): "3-120",
    ("few digits", "is_placeholder"): "3 5-6",
    ("few digits", "is_word"): "8-19",
    ("few digits", "is_code"): "1-20",
    ("few digits", "is_random_letters"): "12-120",
    ("few digits", "is_random"): "46-49",
    ("few digits", "has_mixed_characters"): "20-120",
}
"""The lengths of the beginning of a sample for which the answer is yes."""


@pytest.mark.parametrize("value", VALUES)
def test_what_a_value_is(value):
    yes = [name for name in PREDICATES if getattr(value_tests, name)(value)]
    assert yes == VALUES[value].split()


@pytest.mark.parametrize(("sample", "predicate"), LENGTHS)
def test_from_which_length_on(sample, predicate):
    """An answer depends on how much there is to see; beyond 96 characters nothing changes."""
    ask = getattr(value_tests, predicate)
    lengths = [size for size in range(121) if ask(SAMPLES[sample][:size])]
    assert lengths == spans(LENGTHS[sample, predicate])


@pytest.mark.parametrize(
    ("least", "sizes"),
    [
        (6, ("6-120", "6-120")),
        (10, ("10-120", "10-120")),
        (12, ("12-120", "12-120")),
        (20, ("20-120", "20-120")),
    ],
)
def test_a_caller_sets_the_minimum_length(least, sizes):
    """It applies to random letters and digits, and to random letters."""
    at_random, drawn = map(spans, sizes)
    mixed, small = SAMPLES["letters and digits"], SAMPLES["small letters"]
    assert [size for size in range(121) if value_tests.is_random(mixed[:size], least)] == at_random
    assert [
        size for size in range(121) if value_tests.is_random_letters(small[:size], least)
    ] == drawn


def spans(text):
    """Return the numbers of a text such as "3-5 9"."""
    pairs = [[int(end) for end in span.split("-")] for span in text.split()]
    return [number for pair in pairs for number in range(pair[0], pair[-1] + 1)]
