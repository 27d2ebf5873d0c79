"""Redaction: what it finds, what it leaves alone, and what it never breaks."""

import base64
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes import FAMILIES, drawn, fakes, password
from rekindle.policy.redact.find_secrets import (
    RULES,
    find_secrets,
    redact_text,
    render_placeholder,
)
from sampling import examples

RNG = random.Random(4)


@pytest.fixture(autouse=True)
def _drawn_for_this_test(request):
    """Make the random values depend on the test alone, not on earlier tests of the worker."""
    RNG.seed(request.node.name)


MADE = list(fakes(4, 4 * len(FAMILIES)))
PIECES = [
    *(fake.line for fake in MADE[: len(FAMILIES)]),
    *("password", "token", "key", "secret", "=", ": ", '"', "'", "\\", "\\n", '\\"', "\n", "\t"),
    *(" ", ",", ";", "&", "?", "{", "}", "[", "]", "(", ")", "://", "@", "-----BEGIN ", "eyJ"),
    *(
        "[redacted:password:3f]",
        "[redacted:",
        "]",
        "sk-",
        "abc",
        "Xy9",
        "12345678",
        "İ",
        "é",
        "密码",
    ),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=25).map("".join)


@pytest.mark.parametrize("fake", MADE[: len(FAMILIES)], ids=list(FAMILIES))
def test_no_character_of_a_secret_survives(fake):
    """Each family, as it would be written down: the secret is gone, the words around it stay."""
    cleaned = redact_text(fake.line)
    assert fake.secret not in cleaned
    assert "[redacted:" in cleaned
    (before, after) = fake.line.split(fake.secret)
    assert cleaned.startswith(before[:4])
    assert cleaned.endswith(after)


@pytest.mark.parametrize(
    "margin", ["", "+", "   12\t", "[2026-04-09 12:00:00] [worker-1] ", "    ", "> "]
)
@pytest.mark.parametrize("escapes", [0, 1, 2])
def test_what_stands_around_a_text_hides_nothing(margin, escapes):
    """The same in a diff, a listing, a log, a quotation, and inside JSON inside JSON."""
    for fake in MADE:
        text = f"{margin}first line\n{margin}{fake.line}\n{margin}last line"
        for _ in range(escapes):
            text = json.dumps({"content": text})
        assert fake.secret not in redact_text(text), text


def test_a_key_block_goes_line_by_line():
    """The body of a private key is redacted, its frame and its place in the text stay."""
    body = [drawn(RNG, 64) for _ in range(4)] + [drawn(RNG, 10) + "=="]
    frame = "-----{} PRIVATE " + "KEY-----"
    text = "\n".join(["before", frame.format("BEGIN"), *body, frame.format("END"), "after"])
    cleaned = redact_text(text).split("\n")
    assert [cleaned[0], cleaned[1], cleaned[-2], cleaned[-1]] == [
        "before",
        frame.format("BEGIN"),
        frame.format("END"),
        "after",
    ]
    assert all(line.startswith("[redacted:private-key:") for line in cleaned[2:-2])
    assert all(line not in redact_text(json.dumps({"key": text})) for line in body)


def test_a_wrapped_token_goes_with_its_second_line():
    """The part that a narrow terminal put into the next line belongs to the token."""
    secret = "gh" + "p_" + drawn(RNG, 36)
    cleaned = redact_text(f"  12\texport X={secret[:25]}\n  13\t{secret[25:]}\n  14\tmake")
    assert secret[25:] not in cleaned
    assert cleaned.endswith("\n  14\tmake")


@pytest.mark.parametrize("start", ["\x1b[32m", "\\u001b[32m", "\\x1b[1m", "\\033[0;33m", "\\e[1m"])
def test_colours_hide_nothing(start):
    """A terminal's colours around a secret, or in the middle of one, are read over."""
    end = start.replace("32", "0")
    for fake in MADE:
        text = fake.line.replace(fake.secret, f"{start}{fake.secret}{end}")
        assert fake.secret not in redact_text(text), text
    token = "gh" + "p_" + drawn(RNG, 36)
    assert token[4:] not in redact_text(f"x {start}gh{end}{token[2:]}")


@pytest.mark.parametrize("size", [9_000, 20_000])
@pytest.mark.parametrize(
    "line",
    [
        "DB_PASSWORD={}",
        '"client_secret": "{}"',
        "gh" + "p_{}",
        "Authorization: Bearer {}",
        "postgres://app:{}@db.example.com/main",
        "https://example.com/?access_token={}",
        "Cookie: sid={}",
        "ey" + "JhbGciOiJIUzI1NiJ9.{}.abc",
        "api_token: '{}'",
    ],
)
def test_a_long_secret_is_removed_to_its_end(line, size):
    """However long a value is, its tail is removed too."""
    secret = drawn(RNG, size)
    cleaned = redact_text(line.format(secret))
    assert secret[-8:] not in cleaned
    assert len(cleaned) < 200


def test_a_placeholder_says_nothing_about_what_follows_it():
    """The words in a placeholder are not read as names of the text after it."""
    for rule in RULES:
        text = f"[redacted:{rule}:8b3b] Xy9-kQ4z71 next"
        assert redact_text(text) == text


def test_what_is_found_is_what_is_replaced():
    """The findings, put into the original text, give what `redact` prints."""
    for fake in MADE:
        text = f"{fake.line} and {MADE[0].line}\n{fake.line}"
        found = find_secrets(text)
        for one in reversed(found):
            secret = text[one.start : one.end]
            label = render_placeholder(one.rule, secret)
            text = f"{text[: one.start]}[redacted:{label}]{text[one.end :]}"
        assert find_secrets(text) == []
        assert fake.secret not in text


def test_a_secret_that_was_encoded_is_found():
    """Base64 and hexadecimal dumps of a file with secrets are read."""
    lines = f"NODE_ENV=production\nDB_PASSWORD={password(RNG)}\nAPI_TOKEN={drawn(RNG, 32)}\n"
    encoded = base64.b64encode(lines.encode()).decode()
    assert encoded not in redact_text(f"$ base64 -w0 .env\n{encoded}\n")
    rows = [lines.encode()[at : at + 16] for at in range(0, len(lines), 16)]
    dump = "\n".join(
        f"{16 * number:08x}: {row.hex(' ', 2):<39}  {row.decode().replace(chr(10), '.')}"
        for number, row in enumerate(rows)
    )
    cleaned = redact_text(dump)
    assert all(row.hex(" ", 2) not in cleaned for row in rows)


@pytest.mark.parametrize(
    "line",
    [
        "password = getpass.getpass()",
        "def login(user: str, password: str) -> Session:",
        "max_tokens: 4096, input_tokens=1820",
        "sudo: a password is required",
        "The password must be at least 12 characters long.",
        "secret_key = settings.SECRET_KEY",
        'export API_TOKEN="${API_TOKEN}"',
        "token: <your-token>",
        "password: changeme",
        "key = lambda x: x.secret",
        "commit 3f2a9c41d0b7e8f6a5c4d3e2f1a0b9c8d7e6f5a4",
        "session c45a8f85-3f65-4499-a831-79bf7d891be2 ended",
        "see https://example.com:8080/path@v2 and a@example.com",
        "tests/test_tokens.py::test_token_roundtrip[abc-True] PASSED",
    ],
)
def test_text_that_is_not_a_secret_stays(line):
    """Code, prose, hashes and placeholders that mention secrets contain none."""
    assert find_secrets(line) == []


def test_the_same_secret_has_the_same_placeholder():
    """Two mentions stay one secret; another secret has another placeholder."""
    first, second = ("gh" + "p_" + drawn(RNG, 36) for _ in range(2))
    cleaned = redact_text(f"a {first} b {second} c {first} d").split()
    assert cleaned[1] == cleaned[5] != cleaned[3]
    assert cleaned[1] == f"[redacted:{render_placeholder('github-token', first)}]"


def test_a_short_secret_shows_less_of_its_hash():
    """A guessable secret shows only 8 bits: a matching guess proves nothing."""
    assert len(render_placeholder("password", "Tundra-77").partition(":")[2]) == 2
    assert len(render_placeholder("password", drawn(RNG, 40)).partition(":")[2]) == 4


def test_the_manifest_allows_by_text_by_pattern_and_by_label():
    """A user can allow a secret by its label, without writing it down again."""
    secret = "gh" + "p_" + drawn(RNG, 36)
    for entry in (secret, secret[:8] + "*", render_placeholder("github-token", secret)):
        assert redact_text(f"use {secret}", [entry]) == f"use {secret}"
    assert secret not in redact_text(f"use {secret}", ["something else"])


@pytest.mark.parametrize("size", [0, 10, 30_000])
def test_a_secret_that_another_one_hid_is_found_in_a_long_text(size):
    """The second search covers the surroundings of the first one's findings, in each place."""
    secret = drawn(RNG, 30)
    hidden = f'secret12345678=$env:API_TOKEN = "{secret}"\n'
    notes = "a line of notes\n" * (size // 16)
    text = notes + hidden + hidden + notes + notes + notes + hidden + notes
    cleaned = redact_text(text)
    assert text.count(secret) == 3
    assert secret not in cleaned
    assert cleaned.count("a line of notes\n") == 5 * (size // 16)
    assert len({*cleaned.split("\n")} - {"a line of notes"}) == len(["hidden", ""])


def test_a_long_text_that_is_json_stays_json():
    secret = drawn(RNG, 30)
    values = ["a line of notes"] * 8_000
    text = json.dumps([*values, f"secret12345678=$env:API_TOKEN = '{secret}'", *values], indent=1)
    cleaned = redact_text(text)
    assert secret not in cleaned
    assert len(json.loads(cleaned)) == 16_001


@settings(max_examples=examples(300))
@given(texts)
def test_redacting_again_changes_nothing(text):
    """Redacted text is left alone, whatever is around it."""
    once = redact_text(text)
    assert redact_text(once) == once


@settings(max_examples=examples(300))
@given(texts)
def test_findings_are_in_order_inside_a_line_and_apart(text):
    """Offsets lie inside the text, no finding holds a line break, none overlap."""
    end = 0
    for one in find_secrets(text):
        assert end <= one.start < one.end <= len(text)
        assert "\n" not in text[one.start : one.end]
        assert one.rule in RULES
        end = one.end
    assert redact_text(text).count("\n") == text.count("\n")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["password", "api_key", "secret", "note"]) | texts, inner, max_size=3
        )
    ),
    max_leaves=6,
)


def shape(value):
    """The kinds of a value, without its texts."""
    if isinstance(value, dict):
        return [shape(one) for one in value.values()]
    return [shape(one) for one in value] if isinstance(value, list) else type(value)


@settings(max_examples=examples(300))
@given(values, st.booleans(), st.sampled_from([None, 2]))
def test_json_stays_json(value, ascii_only, indent):
    """Redacted, it parses, and everything but texts is as it was."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    cleaned = json.loads(redact_text(text))
    if not find_keys_alike(value):
        assert shape(cleaned) == shape(value)


PRETTY = [
    '"authorization": 12345678901',
    '"api_key": true, "stale": false',
    '"pin_secret": 84629173645',
    '"note": "-----BEGIN PRIVATE ' + "KEY-----\\n" + "a7Bk" * 16 + '", "stale": false',
    '"db_password": null, "token": -4.5e9',
    '"a": "\\u0041\\u00e9\\ud83d\\ude00 password=\\u0054undra-77\\u0078 x"',
    '"cookie": "sid=' + "a7Bk9" * 5 + '\\"", "n": 1',
]


@settings(max_examples=examples(300))
@given(
    st.lists(st.sampled_from(PRETTY), min_size=1, max_size=4),
    st.sampled_from([", ", ",\n  "]),
    values,
    st.sampled_from(["", "\x1b[32m", "\\u001b[1m"]),
)
def test_json_keeps_its_shape_its_lines_and_its_literals(pieces, between, value, colour):
    """Redacted JSON parses, with the same shape and lines; numbers, true and null are untouched."""
    rest = json.dumps({"rest": [f"token {colour}", value]}, indent=2)[1:]
    text = "{" + between.join(
        piece.replace('": ', f'{number}": ', 1) for number, piece in enumerate(pieces)
    )
    text = f"{text},{rest}"
    cleaned = redact_text(text)
    assert cleaned.count("\n") == text.count("\n")
    assert redact_text(cleaned) == cleaned
    before, after = json.loads(text), json.loads(cleaned)
    if not find_keys_alike(before):
        assert literals(after) == literals(before)


def literals(value):
    """A value with its texts left out."""
    if isinstance(value, dict):
        return [literals(one) for one in value.values()]
    if isinstance(value, list):
        return [literals(one) for one in value]
    return str if isinstance(value, str) else value


def find_keys_alike(value):
    """Return keys of one object that would become the same placeholder, so that one is lost."""
    if isinstance(value, dict):
        return len({redact_text(json.dumps(key)) for key in value}) < len(value) or any(
            find_keys_alike(one) for one in value.values()
        )
    return isinstance(value, list) and any(find_keys_alike(one) for one in value)
